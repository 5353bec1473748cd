/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that HVD_EXPORTED shows which variables have changed. */
#include "gpu_binding/base/exported.h"

#include <string.h>

#include "tests/tap.h"

/* True if the entry of the variable matches the value. */
static bool matches(const char *text, const char *name, const char *value)
{
    struct hvd_exported entry;

    while (hvd_exported_next(&text, &entry)) {
        if ((size_t)entry.length == strlen(name) &&
            memcmp(entry.name, name, strlen(name)) == 0) {
            return hvd_exported_matches(&entry, value);
        }
    }
    return false;
}

static int count_of(const char *text)
{
    struct hvd_exported entry;
    int count = 0;

    while (hvd_exported_next(&text, &entry)) {
        count++;
    }
    return count;
}

static void test_values(void)
{
    char text[HVD_EXPORTED_BYTES] = "";

    hvd_exported_add(text, "RANK", "3");
    hvd_exported_add(text, "LOCAL_RANK", "1");
    hvd_exported_add(text, "EMPTY", "");
    tap_ok(count_of(text) == 3 && matches(text, "RANK", "3") &&
               matches(text, "LOCAL_RANK", "1") && matches(text, "EMPTY", ""),
           "values that stay match");
    tap_ok(!matches(text, "RANK", "1") && !matches(text, "RANK", "") &&
               !matches(text, "LOCAL_RANK", "3") && !matches(text, "EMPTY", "0"),
           "values that change do not match");
    hvd_exported_add(text, "RANK", "7");
    tap_ok(count_of(text) == 3 && matches(text, "RANK", "7") &&
               !matches(text, "RANK", "3"),
           "a new value replaces the old one");
    hvd_exported_remove(text, "LOCAL_RANK");
    hvd_exported_remove(text, "LOCAL");
    tap_ok(count_of(text) == 2 && matches(text, "EMPTY", "") &&
               matches(text, "RANK", "7"),
           "a variable can be removed");
    hvd_exported_remove(text, "EMPTY");
    hvd_exported_remove(text, "RANK");
    tap_ok(text[0] == '\0', "nothing is left after the last one");
}

static void test_path(void)
{
    char text[HVD_EXPORTED_BYTES] = "";

    hvd_exported_add(text, "PYTHONPATH", "/opt/hvd");
    tap_ok(matches(text, "PYTHONPATH", "/mine:/opt/hvd") &&
               matches(text, "PYTHONPATH", "/opt/hvd:/image") &&
               matches(text, "PYTHONPATH", "/mine:/opt/hvd:/image"),
           "directories may be added before and behind the one that was recorded");
    tap_ok(!matches(text, "PYTHONPATH", "/mine:/opt/hvd2") &&
               !matches(text, "PYTHONPATH", "/image"),
           "a path without the directory does not match");
}

static void test_malformed(void)
{
    static const char *const texts[] = {"",
                                        ",",
                                        ":",
                                        "RANK",
                                        "RANK:",
                                        "RANK=",
                                        "RANK:1234",
                                        ":12345678",
                                        "RANK:1234567",
                                        "RANK:123456789",
                                        "A,B:12345678"};
    bool good = true;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        good = count_of(texts[i]) == 0 && good;
    }
    tap_ok(good, "malformed texts have no entries");
}

static void test_full(void)
{
    char text[HVD_EXPORTED_BYTES] = "";
    char name[16];

    for (int i = 0; i < HVD_EXPORTED_BYTES; i++) {
        snprintf(name, sizeof(name), "NAME%d", i);
        hvd_exported_add(text, name, "value");
    }
    tap_ok(strlen(text) < HVD_EXPORTED_BYTES && matches(text, "NAME100", "value") &&
               count_of(text) > 200,
           "a text that is full keeps its entries");
}

int main(void)
{
    test_values();
    test_path();
    test_malformed();
    test_full();
    return tap_done();
}
