/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hvdrun. Each line of the input is an argument. */
#include <stdlib.h>

#include "pmix_boot/hvdrun/options.h"
#include "tests/fuzz/fuzz.h"

enum {
    MOST_ARGUMENTS = 32
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char *arguments[MOST_ARGUMENTS + 2] = {"hvdrun"};
    struct hvdrun_options options = {0};
    struct hvd_error err = {0};
    int count = 1;

    while (count <= MOST_ARGUMENTS && (arguments[count] = fuzz_line(&input)) != NULL) {
        count++;
    }
    arguments[count] = NULL;
    if (hvdrun_options_read(&options, count, arguments, &err) < 0 &&
        err.text[0] == '\0') {
        fuzz_fail("a command line that is refused has a message");
    }
    hvdrun_options_finish(&options);
    for (int i = 1; i < count; i++) {
        free(arguments[i]);
    }
    return 0;
}
