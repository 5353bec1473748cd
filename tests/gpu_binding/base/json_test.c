/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that any text becomes a JSON string. */
#include "gpu_binding/base/json.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static void text_is(const char *text, const char *expected, const char *promise)
{
    char escaped[768];
    char quoted[800];
    char *printed = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&printed, &bytes);

    hvd_json_print(text, out);
    fclose(out);
    snprintf(quoted, sizeof(quoted), "\"%s\"", expected);
    tap_ok(hvd_json_escape(text, escaped, sizeof(escaped)) == strlen(expected) &&
               strcmp(escaped, expected) == 0 && strcmp(printed, quoted) == 0,
           "%s", promise);
    free(printed);
}

static void long_text_is_cut(void)
{
    char escaped[10];

    tap_ok(hvd_json_escape("abcdefghij", escaped, sizeof(escaped)) == 9 &&
               strcmp(escaped, "abcdef...") == 0,
           "a text that is too long ends in three dots");
    tap_ok(hvd_json_escape("abcdef\nj", escaped, sizeof(escaped)) == 9 &&
               strcmp(escaped, "abcdef...") == 0,
           "no escape is cut in two");
}

int main(void)
{
    text_is("conv1/weight:0", "conv1/weight:0", "a plain text stays as it is");
    text_is("a\"b\\c", "a\\\"b\\\\c", "quotes and backslashes are escaped");
    text_is("a\nb\x01\x1f\x7f", "a\\u000ab\\u0001\\u001f\x7f",
            "control characters are escaped");
    text_is("gewicht_\xc3\xa4_\xe5\xb1\xa4_\xf0\x9f\x94\xa5",
            "gewicht_\xc3\xa4_\xe5\xb1\xa4_\xf0\x9f\x94\xa5", "UTF-8 stays as it is");
    text_is("\xff_\xc3(_\xc0\x80_\xed\xa0\x80_\xf4\x90\x80\x80",
            "\\ufffd_\\ufffd(_\\ufffd\\ufffd_\\ufffd\\ufffd\\ufffd_"
            "\\ufffd\\ufffd\\ufffd\\ufffd",
            "invalid UTF-8 is replaced");
    text_is("cut off \xe5\xb1", "cut off \\ufffd\\ufffd",
            "a character that is cut in two is replaced");
    long_text_is_cut();
    return tap_done();
}
