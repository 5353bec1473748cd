/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the plugin in plugstack.conf. Each line of the input is an
 * argument. */
#include <stdlib.h>
#include <string.h>

#include "spank/plugstack.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_spank_plugstack plugstack;
    char *word;

    hvd_spank_plugstack_init(&plugstack, "/opt/hvd/lib/hvd/python");
    while ((word = fuzz_line(&input)) != NULL) {
        struct hvd_error err = {0};

        if (hvd_spank_plugstack_parse(word, &plugstack, &err) != 0 &&
            err.text[0] == '\0') {
            fuzz_fail("an argument that is refused has a message");
        }
        free(word);
    }
    if (plugstack.timeout_s < 1 || plugstack.timeout_s > 3600 ||
        memchr(plugstack.python_dir, '\0', sizeof(plugstack.python_dir)) == NULL ||
        memchr(plugstack.topology, '\0', sizeof(plugstack.topology)) == NULL) {
        fuzz_fail("the record is complete");
    }
    return 0;
}
