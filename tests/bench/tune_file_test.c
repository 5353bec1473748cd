/* SPDX-License-Identifier: Apache-2.0 */
/* Sections are put into a file that has other sections. */
#include "contrib/bench/hvd_bench/tune_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/run/algorithm_file.h"
#include "contrib/bench/hvd_bench/explain.h"
#include "tests/tap.h"

static char path[64];

static struct hvd_algorithm_section section_of(int nodes, int ranks, const char *measured)
{
    const struct hvd_job_shape shape = {.nodes = nodes, .ranks = ranks};
    struct hvd_algorithm_section section = {.least = shape, .most = shape};

    snprintf(section.measured, sizeof(section.measured), "%s", measured);
    hvd_algorithm_choices_builtin(section.least, &section.choices);
    return section;
}

static bool writes(const struct hvd_algorithm_section *section)
{
    struct hvd_error err = {0};

    if (bench_tune_file_write(path, section, &err) != 0) {
        tap_note("%s", err.text);
        return false;
    }
    return true;
}

static bool has(const char *text)
{
    static char all[8192];
    FILE *file = fopen(path, "r");
    size_t length = fread(all, 1, sizeof(all) - 1, file);

    all[length] = '\0';
    fclose(file);
    return strstr(all, text) != NULL;
}

static bool reads(const struct hvd_algorithm_section *section, int count)
{
    struct hvd_algorithm_table *table = NULL;
    struct hvd_error err = {0};
    const struct hvd_algorithm_section *found;
    bool is_right;

    if (hvd_algorithm_file_read(path, &table, &err) != 0) {
        tap_note("%s", err.text);
        return false;
    }
    found = hvd_algorithm_table_find(table, section->least);
    is_right = found != NULL && table->count == count &&
               strcmp(found->measured, section->measured) == 0;
    hvd_algorithm_table_destroy(table);
    return is_right;
}

static void append(const char *text)
{
    FILE *file = fopen(path, "a");

    fputs(text, file);
    fclose(file);
}

static bool is_uneven(const char *text, char *remark, size_t room)
{
    struct hvd_layout layout;
    bool uneven;

    if (bench_layout_parse(text, &layout, NULL) != 0) {
        exit(1);
    }
    uneven = bench_tune_is_uneven(&layout, remark, room);
    hvd_layout_finish(&layout);
    return uneven;
}

static void test_uneven(void)
{
    char text[400] = "";

    tap_ok(!is_uneven("4,4", text, sizeof(text)) && !is_uneven("8", text, sizeof(text)),
           "nodes with equal numbers of ranks need no remark");
    tap_ok(is_uneven("7,1", text, sizeof(text)) &&
               strstr(text, "have 7,1 ranks") != NULL &&
               strstr(text, "[nodes=2 ranks=7]") != NULL &&
               strstr(text, "--nodes=2 --ntasks-per-node=4") != NULL,
           "for 7,1 it says which jobs use the section, and how to get 4,4");
    tap_ok(is_uneven("3,3,2", text, sizeof(text)) &&
               strstr(text, "--nodes=3 --ntasks-per-node=3") != NULL,
           "if ranks cannot be spread evenly, it proposes more of them");
}

int main(void)
{
    char folder[] = "/tmp/tune_file.XXXXXX";
    struct hvd_algorithm_section one = section_of(1, 4, "one before"),
                                 two = section_of(2, 2, "b");
    struct hvd_algorithm_table *table = NULL;
    struct hvd_error err = {0};

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(path, sizeof(path), "%s/table", folder);
    tap_ok(hvd_algorithm_file_read(path, &table, &err) == HVD_ERR_SYS &&
               strstr(err.text, path) != NULL && table == NULL,
           "a missing file is named");
    tap_ok(hvd_algorithm_file_read("builtin", &table, &err) == 0 && table == NULL,
           "builtin means the built-in table, not a file");
    tap_ok(writes(&one) && reads(&one, 1) && has("# Used if"),
           "a section is written to a new file");
    tap_ok(writes(&two) && reads(&one, 2) && reads(&two, 2), "a second section is added");
    append("# by hand\n\n");
    snprintf(one.measured, sizeof(one.measured), "again");
    tap_ok(writes(&one) && reads(&one, 2) && reads(&two, 2) && !has("one before") &&
               has("# by hand") && has("# Used if") && !has("\n\n\n"),
           "a section replaces the one for the same shape; everything else stays");
    append("nonsense\n");
    tap_ok(bench_tune_file_write(path, &one, &err) == HVD_ERR_ARG &&
               strstr(err.text, "found \"nonsense\"") != NULL && has("nonsense"),
           "a file that is not a table is not changed");
    unlink(path);
    rmdir(folder);
    tap_ok(bench_tune_file_write(path, &one, &err) == HVD_ERR_SYS &&
               strstr(err.text, path) != NULL,
           "a file that cannot be written is named");
    test_uneven();
    return tap_done();
}
