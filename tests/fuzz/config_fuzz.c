/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML file for hvdrun's option --config-file. */
#include "pmix_boot/hvdrun/options.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hvdrun_options options = {0};
    struct hvd_error err = {0};

    if (hvdrun_options_set(&options, "config-file", fuzz_file(data, size), &err) < 0 &&
        err.text[0] == '\0') {
        fuzz_fail("a file that is refused has a message");
    }
    hvdrun_options_finish(&options);
    return 0;
}
