/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the file of --tune. */
#include "contrib/bench/hvd_bench/tune_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/run/algorithm_file.h"
#include "contrib/bench/hvd_bench/explain.h"
#include "gpu_binding/base/error.h"

static const char head[] =
    "# Maps sizes in bytes to algorithms: a row applies from its size on.\n"
    "# Used if HVD_TUNE_TABLE names this file, or if it is installed as\n"
    "# %s. Each section is for one shape of job, or for\n"
    "# several, as nodes=2-16; the first section that fits is used. hvd-bench --tune\n"
    "# writes sections; hvd-bench --explain COLLECTIVE SIZE shows which row applies.\n";

bool bench_tune_is_uneven(const struct hvd_layout *layout, char *text, size_t room)
{
    struct hvd_job_shape shape = hvd_job_shape_of(layout);
    int each = (layout->size + layout->nodes - 1) / layout->nodes;
    char found[64];

    if (hvd_layout_is_homogeneous(layout)) {
        return false;
    }
    snprintf(
        text, room,
        "--tune: the nodes have %s ranks: the section [nodes=%d ranks=%d] will only be "
        "used by jobs of %d nodes of which the fullest has %d ranks. For %d ranks on "
        "each node: srun --nodes=%d --ntasks-per-node=%d",
        bench_layout_write(layout, found, sizeof(found)), shape.nodes, shape.ranks,
        shape.nodes, shape.ranks, each, shape.nodes, each);
    return true;
}

/* Finds the lines [*begin, *end) of a section, counted from 1. *begin 0: there is no such
 * section; *end 0: it extends to the end of the file. */
static void find_lines(const struct hvd_algorithm_table *table,
                       const struct hvd_algorithm_section *section, int *begin, int *end)
{
    *begin = *end = 0;
    for (int i = 0; table != NULL && i < table->count; i++) {
        const struct hvd_algorithm_section *other = &table->sections[i];

        if (other->least.nodes == section->least.nodes &&
            other->most.nodes == section->most.nodes &&
            other->least.ranks == section->least.ranks &&
            other->most.ranks == section->most.ranks) {
            *begin = other->line;
            *end = i + 1 < table->count ? table->sections[i + 1].line : 0;
            return;
        }
    }
}

/* Copies all lines except [begin, end); end 0: to the end of the file. Blank lines at the
 * end are dropped. */
static void copy_lines(FILE *old, FILE *out, int begin, int end)
{
    char *line = NULL;
    size_t room = 0;
    int number = 0, blanks = 0;

    while (getline(&line, &room, old) >= 0) {
        bool is_cut = ++number >= begin && begin > 0 && (end == 0 || number < end);

        line[strcspn(line, "\n")] = '\0';
        if (!is_cut && line[0] == '\0') {
            blanks++;
        } else if (!is_cut) {
            for (; blanks > 0; blanks--) {
                fputc('\n', out);
            }
            fprintf(out, "%s\n", line);
        }
    }
    free(line);
}

static int replace_file(const char *path, const char *made, FILE *out,
                        struct hvd_error *err)
{
    int failed = ferror(out);

    failed |= fclose(out);
    if (failed != 0 || rename(made, path) != 0) {
        hvd_fail(err, HVD_ERR_SYS, "cannot write %s: %m", path);
        remove(made);
        return HVD_ERR_SYS;
    }
    return 0;
}

static int write_beside(const char *path, const char *made,
                        const struct hvd_algorithm_table *table,
                        const struct hvd_algorithm_section *section,
                        struct hvd_error *err)
{
    FILE *old = table != NULL ? fopen(path, "re") : NULL;
    FILE *out = fopen(made, "we");
    int begin, end;

    if (out == NULL) {
        hvd_fail(err, HVD_ERR_SYS, "cannot write %s: %m", made);
    } else if (old != NULL) {
        find_lines(table, section, &begin, &end);
        copy_lines(old, out, begin, end);
    } else {
        fprintf(out, head, hvd_algorithm_file_path());
    }
    if (old != NULL) {
        fclose(old);
    }
    if (out == NULL) {
        return HVD_ERR_SYS;
    }
    fputc('\n', out);
    hvd_algorithm_section_write(section, out);
    return replace_file(path, made, out, err);
}

int bench_tune_file_write(const char *path, const struct hvd_algorithm_section *section,
                          struct hvd_error *err)
{
    struct hvd_algorithm_table *table = NULL;
    bool is_there = access(path, F_OK) == 0;
    char *made = NULL;
    int status = is_there ? hvd_algorithm_file_read(path, &table, err) : 0;

    if (status == 0 && asprintf(&made, "%s.new", path) < 0) {
        made = NULL;
        status = hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    if (status == 0) {
        status = write_beside(path, made, table, section, err);
    }
    hvd_algorithm_table_destroy(table);
    free(made);
    return status;
}
