/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the option --hvd, which the plugin reads as root in slurmstepd. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "spank/site_rules.h"
#include "tests/fuzz/fuzz.h"

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (!isprint((unsigned char)*text)) {
            return false;
        }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char *text = fuzz_text(&input, size);
    struct hvd_spank_options options, before;
    const struct hvd_spank_site_rules rules = {"elastic,report,metrics,bind=none",
                                               "max=4,elastic"};
    struct hvd_error err = {0};

    memset(&options, 0x5a, sizeof(options));
    before = options;
    if (hvd_spank_options_parse(text, &options, &err) != 0) {
        if (memcmp(&options, &before, sizeof(options)) != 0) {
            fuzz_fail("a text that is refused does not change the record");
        }
        if (!is_printable(err.text) || err.text[0] == '\0') {
            fuzz_fail("the message can be printed");
        }
    } else {
        if (options.min_ranks < 0 || options.max_ranks < 0 || options.spares < 0 ||
            options.reset_limit < -1) {
            fuzz_fail("numbers are in their range");
        }
        if (hvd_spank_site_rules_apply(&rules, text, &options, &err) != 0 &&
            (!is_printable(err.text) || err.text[0] == '\0')) {
            fuzz_fail("the message about a rule can be printed");
        }
    }
    free(text);
    return 0;
}
