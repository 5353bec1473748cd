/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which texts count as numbers, and the nouns that follow a number. */
#include "gpu_binding/base/number.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static const char variable[] = "HVD_NUMBER_TEST";

static int value_of(const char *text)
{
    setenv(variable, text, 1);
    return hvd_number_of_variable(variable);
}

int main(void)
{
    static const char *const wrong[] = {"",   " 1", "1 ",  "+1", "-1",
                                        "1a", "x",  "0x1", "1.0"};
    int accepted = 0;

    tap_ok(hvd_number_parse("0", 7) == 0 && hvd_number_parse("007", 7) == 7,
           "digits are a number");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        accepted += hvd_number_parse(wrong[i], LONG_MAX) != -1;
    }
    tap_ok(accepted == 0, "blanks, signs and letters are not");
    tap_ok(hvd_number_parse("8", 7) == -1, "a number above the limit is rejected");
    tap_ok(hvd_number_parse("99999999999999999999", LONG_MAX) == -1,
           "a number that no long can hold is rejected");
    tap_ok(value_of("2147483647") == INT_MAX && value_of("2147483648") == -1,
           "a variable holds a number up to INT_MAX");
    unsetenv(variable);
    tap_ok(hvd_number_of_variable(variable) == -1, "an unset variable has no number");
    tap_ok(strcmp(hvd_number_plural(1), "") == 0 &&
               strcmp(hvd_number_plural(0), "s") == 0 &&
               strcmp(hvd_number_plural(2), "s") == 0,
           "only one thing is named in the singular");
    return tap_done();
}
