/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a rank spends in named sections. */
#include "collectives/trace/straggler_sections.h"

#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

enum {
    MUCH_DEPTH = 3 * HVD_SECTION_DEPTH
};

static struct hvd_straggler_sections sections;
static struct hvd_straggler_section taken[HVD_SECTIONS];

/* Returns the time in a section among those that were taken last; -1: not there. */
static int64_t time_of(const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(taken[i].name, name) == 0) {
            return taken[i].ns;
        }
    }
    return -1;
}

static void test_nesting(void)
{
    int count;

    hvd_straggler_sections_init(&sections);
    hvd_straggler_sections_begin(&sections, "epoch", 100);
    hvd_straggler_sections_begin(&sections, "data", 110);
    hvd_straggler_sections_end(&sections, 150);
    hvd_straggler_sections_end(&sections, 155);
    count = hvd_straggler_sections_take(&sections, 200, taken);
    tap_ok(count == 2 && time_of("data", count) == 40 && time_of("epoch", count) == 15,
           "time counts for the innermost section, and for none outside");
    tap_ok(hvd_straggler_sections_end(&sections, 210) == HVD_ERR_STATE,
           "a section that has not begun cannot end");
    hvd_straggler_sections_finish(&sections);
}

static void test_take(void)
{
    int count;

    hvd_straggler_sections_init(&sections);
    hvd_straggler_sections_begin(&sections, "data", 100);
    count = hvd_straggler_sections_take(&sections, 130, taken);
    tap_ok(time_of("data", count) == 30, "an open section counts until it is taken");
    hvd_straggler_sections_end(&sections, 140);
    count = hvd_straggler_sections_take(&sections, 150, taken);
    tap_ok(time_of("data", count) == 10, "and its remainder counts the next time");
    hvd_straggler_sections_begin(&sections, "data", 160);
    count = hvd_straggler_sections_take(&sections, 0, taken);
    tap_ok(time_of("data", count) == 0, "a time in the past adds nothing");
    hvd_straggler_sections_finish(&sections);
}

static void test_depth(void)
{
    int count, ended = 0;

    hvd_straggler_sections_init(&sections);
    for (int i = 0; i < MUCH_DEPTH; i++) {
        hvd_straggler_sections_begin(&sections, i < HVD_SECTION_DEPTH ? "deep" : "deeper",
                                     i);
    }
    count = hvd_straggler_sections_take(&sections, MUCH_DEPTH, taken);
    while (hvd_straggler_sections_end(&sections, 1000) == 0) {
        ended++;
    }
    tap_ok(count == 1 && time_of("deep", count) == MUCH_DEPTH && ended == MUCH_DEPTH,
           "sections nested too deeply count for the one around them, and can be ended");
    hvd_straggler_sections_finish(&sections);
}

static void test_names(void)
{
    static const char much[] = "a name of more than thirty-one bytes";
    char name[16];
    int count;

    hvd_straggler_sections_init(&sections);
    hvd_straggler_sections_begin(&sections, much, 1);
    hvd_straggler_sections_end(&sections, 2);
    hvd_straggler_sections_begin(&sections, much, 3);
    hvd_straggler_sections_end(&sections, 4);
    count = hvd_straggler_sections_take(&sections, 4, taken);
    tap_ok(count == 1 && time_of("a name of more than thirty-one ", count) == 2,
           "a long name is cut, and is still one section");
    for (int i = 0; i < 2 * HVD_SECTIONS; i++) {
        snprintf(name, sizeof(name), "section %d", i);
        hvd_straggler_sections_begin(&sections, name, 10 + i);
        hvd_straggler_sections_end(&sections, 11 + i);
    }
    count = hvd_straggler_sections_take(&sections, 100, taken);
    tap_ok(count == HVD_SECTIONS && time_of("section 0", count) == 1 &&
               time_of("(others)", count) == HVD_SECTIONS + 2,
           "of more than 16 names, the last stands for all others");
    hvd_straggler_sections_finish(&sections);
}

int main(void)
{
    test_nesting();
    test_take();
    test_depth();
    test_names();
    return tap_done();
}
