/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets share. A target is a program of libFuzzer: it gives the bytes of an
 * input to code that reads what others have written, and ends with an error where a
 * promise of that code does not hold. Sanitizers find the rest. */
#ifndef HVD_FUZZ_H
#define HVD_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes pieces from the front of an input; behind its end everything is zero or empty. */
struct fuzz_input {
    const uint8_t *data;
    size_t bytes;
};

uint8_t fuzz_byte(struct fuzz_input *input);
uint32_t fuzz_word(struct fuzz_input *input);
uint64_t fuzz_number(struct fuzz_input *input);

/* A copy of the next `bytes` bytes, or of all that are left, without room behind it, so
 * that reading too far is found. The caller frees it. *taken: how many. */
void *fuzz_copy(struct fuzz_input *input, size_t bytes, size_t *taken);

/* The same as a text with its '\0'. */
char *fuzz_text(struct fuzz_input *input, size_t bytes);

/* The text up to the next line end or the end of the input; the caller frees it. NULL: no
 * more. */
char *fuzz_line(struct fuzz_input *input);

/* The path of a file with these bytes, for functions that open one; the same file each
 * time. */
const char *fuzz_file(const void *data, size_t bytes);

/* Reads every byte, so that sanitizers see all of them. */
void fuzz_touch(const void *data, size_t bytes);

/* A stream that nobody reads. */
FILE *fuzz_nowhere(void);

/* Ends the program with the sentence. */
void fuzz_fail(const char *promise);

#endif
