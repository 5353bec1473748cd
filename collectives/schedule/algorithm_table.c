/* SPDX-License-Identifier: Apache-2.0 */
/* Finds sections of a table, compares tables and writes them. algorithm_parse.c reads
 * them. */
#include "collectives/schedule/algorithm_table.h"

#include <inttypes.h>
#include <stdlib.h>

void hvd_algorithm_table_destroy(struct hvd_algorithm_table *table)
{
    if (table != NULL) {
        free(table->name);
        free(table->sections);
        free(table);
    }
}

static bool is_within(int number, int least, int most)
{
    return number >= least && number <= most;
}

const struct hvd_algorithm_section *
hvd_algorithm_table_find(const struct hvd_algorithm_table *table,
                         struct hvd_job_shape shape)
{
    for (int i = 0; table != NULL && i < table->count; i++) {
        const struct hvd_algorithm_section *section = &table->sections[i];

        if (is_within(shape.nodes, section->least.nodes, section->most.nodes) &&
            is_within(shape.ranks, section->least.ranks, section->most.ranks)) {
            return section;
        }
    }
    return NULL;
}

void hvd_algorithm_table_choose(const struct hvd_algorithm_table *table,
                                struct hvd_job_shape shape,
                                struct hvd_algorithm_choices *choices)
{
    const struct hvd_algorithm_section *section = hvd_algorithm_table_find(table, shape);

    hvd_algorithm_choices_builtin(shape, choices);
    if (section == NULL) {
        return;
    }
    choices->grid_levels = section->choices.grid_levels;
    for (int i = 0; i < HVD_COLLECTIVES; i++) {
        if (section->choices.of[i].count > 0) {
            choices->of[i] = section->choices.of[i];
        }
    }
}

/* Adds a number to a digest: FNV-1a, eight bytes at a time. */
static uint64_t mix_digest(uint64_t digest, int64_t number)
{
    return (digest ^ (uint64_t)number) * UINT64_C(0x100000001b3);
}

static uint64_t mix_list(uint64_t digest, const struct hvd_algorithm_rows *list)
{
    digest = mix_digest(digest, list->count);
    for (int i = 0; i < list->count; i++) {
        const struct hvd_algorithm_row *row = &list->rows[i];

        digest = mix_digest(digest, row->from);
        digest = mix_digest(digest, (int64_t)row->algorithm);
        digest = mix_digest(digest, row->has_one_slice);
        digest = mix_digest(digest, (int64_t)row->chunk_bytes);
        digest = mix_digest(digest, (int64_t)row->window_bytes);
    }
    return digest;
}

uint64_t hvd_algorithm_table_digest(const struct hvd_algorithm_table *table)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    if (table == NULL || table->count == 0) {
        return 0;
    }
    for (int i = 0; i < table->count; i++) {
        const struct hvd_algorithm_section *section = &table->sections[i];

        digest = mix_digest(digest, section->least.nodes);
        digest = mix_digest(digest, section->most.nodes);
        digest = mix_digest(digest, section->least.ranks);
        digest = mix_digest(digest, section->most.ranks);
        digest = mix_digest(digest, section->choices.grid_levels);
        for (int k = 0; k < HVD_COLLECTIVES; k++) {
            digest = mix_list(digest, &section->choices.of[k]);
        }
    }
    return digest;
}

const char *hvd_algorithm_size_write(int64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"", "K", "M", "G"};
    int unit = 0;

    while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, room, "%" PRId64 "%s", bytes, units[unit]);
    return text;
}

static void write_range(const char *word, int least, int most, FILE *out)
{
    fprintf(out, "%s=%d", word, least);
    if (most != least) {
        fprintf(out, "-%d", most);
    }
}

static void write_size(const char *word, size_t bytes, FILE *out)
{
    char size[32];

    if (bytes > 0) {
        fprintf(out, " %s=%s", word,
                hvd_algorithm_size_write((int64_t)bytes, size, sizeof(size)));
    }
}

static void write_row(enum hvd_collective collective, const struct hvd_algorithm_row *row,
                      FILE *out)
{
    char size[32];

    fprintf(out, "%-13s %8s  %s", hvd_collective_name(collective),
            hvd_algorithm_size_write(row->from, size, sizeof(size)),
            hvd_algorithm_name(row->algorithm));
    fputs(row->has_one_slice ? " lanes=one" : "", out);
    write_size("chunk", row->chunk_bytes, out);
    write_size("window", row->window_bytes, out);
    fputc('\n', out);
}

void hvd_algorithm_section_write(const struct hvd_algorithm_section *section, FILE *out)
{
    fputc('[', out);
    write_range("nodes", section->least.nodes, section->most.nodes, out);
    fputc(' ', out);
    write_range("ranks", section->least.ranks, section->most.ranks, out);
    fputs("]\n", out);
    if (section->measured[0] != '\0') {
        fprintf(out, "measured %s\n", section->measured);
    }
    for (int i = 0; i < HVD_COLLECTIVES; i++) {
        for (int row = 0; row < section->choices.of[i].count; row++) {
            write_row((enum hvd_collective)i, &section->choices.of[i].rows[row], out);
        }
    }
    if (section->choices.grid_levels > 0) {
        fprintf(out, "multilevel levels=%d\n", section->choices.grid_levels);
    }
}
