/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the targets share. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void take(struct fuzz_input *input, void *to, size_t bytes)
{
    size_t taken = bytes < input->bytes ? bytes : input->bytes;

    memset(to, 0, bytes);
    if (taken > 0) {
        memcpy(to, input->data, taken);
        input->data += taken;
        input->bytes -= taken;
    }
}

uint8_t fuzz_byte(struct fuzz_input *input)
{
    uint8_t value;

    take(input, &value, sizeof(value));
    return value;
}

uint32_t fuzz_word(struct fuzz_input *input)
{
    uint32_t value;

    take(input, &value, sizeof(value));
    return value;
}

void *fuzz_copy(struct fuzz_input *input, size_t bytes, size_t *taken)
{
    void *copy;

    *taken = bytes < input->bytes ? bytes : input->bytes;
    copy = malloc(*taken > 0 ? *taken : 1);
    if (copy == NULL) {
        abort();
    }
    take(input, copy, *taken);
    return copy;
}

char *fuzz_text(struct fuzz_input *input, size_t bytes)
{
    size_t length = bytes < input->bytes ? bytes : input->bytes;
    const uint8_t *end = length > 0 ? memchr(input->data, '\0', length) : NULL;
    size_t used = end != NULL ? (size_t)(end - input->data) : length;
    char *text = malloc(used + 1);

    if (text == NULL) {
        abort();
    }
    if (used > 0) {
        memcpy(text, input->data, used);
    }
    text[used] = '\0';
    input->data += length;
    input->bytes -= length;
    return text;
}

char *fuzz_line(struct fuzz_input *input)
{
    const uint8_t *end =
        input->bytes > 0 ? memchr(input->data, '\n', input->bytes) : NULL;
    size_t length = end != NULL ? (size_t)(end - input->data) : input->bytes;
    char *line;

    if (input->bytes == 0) {
        return NULL;
    }
    line = fuzz_text(input, length);
    if (end != NULL) {
        (void)fuzz_byte(input);
    }
    return line;
}

const char *fuzz_file(const void *data, size_t bytes)
{
    static char path[64];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, bytes, 0) != (ssize_t)bytes) {
        abort();
    }
    return path;
}

void fuzz_touch(const void *data, size_t bytes)
{
    const volatile unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++) {
        (void)at[i];
    }
}

FILE *fuzz_nowhere(void)
{
    static FILE *nowhere;

    if (nowhere == NULL) {
        nowhere = fopen("/dev/null", "we");
    }
    return nowhere;
}

void fuzz_fail(const char *promise)
{
    fprintf(stderr, "broken promise: %s\n", promise);
    abort();
}
