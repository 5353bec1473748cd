/* SPDX-License-Identifier: Apache-2.0 */
/* A planted fault, which fuzzing must find: it would take years to guess the four letters
 * without coverage, and nobody would see the fault without AddressSanitizer. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char *text = fuzz_text(&input, size);
    volatile char letter = '\0';

    if (text[0] == 'h' && text[1] == 'v' && text[2] == 'd' && text[3] == '!') {
        letter = text[size + 1];
    }
    (void)letter;
    free(text);
    return 0;
}
