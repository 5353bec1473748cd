/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the targets share. A target is a libFuzzer program: it passes the bytes
 * of an input to code that reads data from others, and aborts if that code breaks one of
 * its promises. Sanitizers find other faults. */
#ifndef HVD_FUZZ_H
#define HVD_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of an input. The functions below take pieces from its front; past its end they
 * return zero or empty pieces. */
struct fuzz_input {
    const uint8_t *data;
    size_t bytes;
};

uint8_t fuzz_byte(struct fuzz_input *input);
uint32_t fuzz_word(struct fuzz_input *input);

/* Returns a copy of the next `bytes` bytes, or of all that are left. Nothing is allocated
 * behind the copy, so that sanitizers find a read past its end. The caller frees it.
 * *taken: number of bytes. */
void *fuzz_copy(struct fuzz_input *input, size_t bytes, size_t *taken);

/* Does the same as fuzz_copy, but returns a text that ends with '\0'. */
char *fuzz_text(struct fuzz_input *input, size_t bytes);

/* Returns the text up to the next line end or the end of the input; the caller frees it.
 * Returns NULL if no input is left. */
char *fuzz_line(struct fuzz_input *input);

/* Returns the path of a file with these bytes, for functions that open a file. Each call
 * writes the same file. */
const char *fuzz_file(const void *data, size_t bytes);

/* Reads every byte, so that sanitizers see all of them. */
void fuzz_touch(const void *data, size_t bytes);

/* Returns a stream whose output is thrown away. */
FILE *fuzz_nowhere(void);

/* Prints the broken promise and aborts. */
void fuzz_fail(const char *promise);

#endif
