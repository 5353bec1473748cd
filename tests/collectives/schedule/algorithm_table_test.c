/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of algorithms: parsing, errors, lookup and writing. */
#include "collectives/schedule/algorithm_table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/schedule/schedule_jobs.h"
#include "tests/tap.h"

static const struct hvd_job_shape one_of_four = {.nodes = 1, .ranks = 4};
static const struct hvd_job_shape two_of_two = {.nodes = 2, .ranks = 2};
static const struct hvd_job_shape two_of_one = {.nodes = 2, .ranks = 1};

static const char two_sections[] = "# by hand\n"
                                   "[nodes=1 ranks=3-8]   # many\n"
                                   "measured yesterday, by me\n"
                                   "allreduce 0 ll\n"
                                   "\n"
                                   "allreduce\t25 one_shot chunk=4096 # sic\r\n"
                                   "  allreduce 1M two_shot chunk=128K\n"
                                   "[nodes=2-4 ranks=2]\n"
                                   "allreduce 0 linear lanes=one\n"
                                   "allreduce 2K linear chunk=64K\n"
                                   "broadcast 0 tree chunk=32K\n"
                                   "multilevel levels=2";

static struct hvd_algorithm_table *parse(const char *text)
{
    struct hvd_algorithm_table *table = NULL;
    struct hvd_error err = {0};

    if (hvd_algorithm_table_parse("some/table", text, &table, &err) != 0) {
        tap_note("%s", err.text);
    }
    return table;
}

static bool is_row(const struct hvd_algorithm_choices *choices, int64_t bytes,
                   enum hvd_algorithm algorithm, size_t chunk_bytes)
{
    const struct hvd_algorithm_row *row =
        hvd_algorithm_for(choices, HVD_COLL_ALLREDUCE, bytes);

    return row->algorithm == algorithm && row->chunk_bytes == chunk_bytes;
}

static void test_reading(void)
{
    struct hvd_algorithm_table *table = parse(two_sections);
    const struct hvd_algorithm_section *section =
        hvd_algorithm_table_find(table, one_of_four);
    struct hvd_algorithm_choices choices;

    tap_ok(section != NULL && section->line == 2 &&
               strcmp(section->measured, "yesterday, by me") == 0,
           "finds the section for a shape, with the text where it comes from");
    hvd_algorithm_table_choose(table, one_of_four, &choices);
    tap_ok(is_row(&choices, 0, HVD_ALGORITHM_LL, 0) &&
               is_row(&choices, 24, HVD_ALGORITHM_LL, 0) &&
               is_row(&choices, 25, HVD_ALGORITHM_ONE_SHOT, 4096) &&
               is_row(&choices, (1 << 20) - 1, HVD_ALGORITHM_ONE_SHOT, 4096) &&
               is_row(&choices, 1 << 20, HVD_ALGORITHM_TWO_SHOT, 128 << 10) &&
               hvd_algorithm_for(&choices, HVD_COLL_ALLREDUCE, 1 << 20)->line == 7,
           "a row applies from its size up to the size of the next row");
    tap_ok(choices.of[HVD_COLL_BROADCAST].count > 0 &&
               choices.of[HVD_COLL_BROADCAST].rows[0].line == 0,
           "collectives that a section does not list use the built-in table");
    hvd_algorithm_table_choose(table, two_of_two, &choices);
    tap_ok(hvd_algorithm_for(&choices, HVD_COLL_ALLREDUCE, 8)->has_one_slice &&
               choices.grid_levels == 2,
           "reads lanes=one and levels");
    tap_ok(hvd_algorithm_table_find(table, two_of_one) == NULL &&
               hvd_algorithm_table_find(NULL, two_of_two) == NULL,
           "finds no section for a shape that the table lacks");
    hvd_algorithm_table_destroy(table);
}

/* Whether a text is refused with its line number and with words that say what is
 * wrong. */
static bool refuses(const char *text, int line, const char *words)
{
    struct hvd_algorithm_table *table = NULL;
    struct hvd_error err = {0};
    char location[32];
    int status = hvd_algorithm_table_parse("some/table", text, &table, &err);

    snprintf(location, sizeof(location), "some/table line %d: ", line);
    if (status == HVD_ERR_ARG && strstr(err.text, location) != NULL &&
        strstr(err.text, words) != NULL && table == NULL) {
        return true;
    }
    tap_note("status %d: %s", status, err.text);
    hvd_algorithm_table_destroy(table);
    return false;
}

#define HEAD "[nodes=1 ranks=4]\n"

static void test_refusals(void)
{
    static const struct {
        const char *text;
        int line;
        const char *words;
    } bad[] = {
        {"allreduce 0 one_shot", 1, "expected [nodes=NUMBER ranks=NUMBER] first"},
        {"\n[nodes=1]", 2,
         "ranks=NUMBER or ranks=FROM-TO, found \"the end of the line\""},
        {"[nodes=0 ranks=1]", 1, "found \"nodes=0\""},
        {"[nodes=4-2 ranks=1]", 1, "found \"nodes=4-2\""},
        {"[nodes=4 ranks=1", 1, "expected [nodes=NUMBER ranks=NUMBER]"},
        {"[nodes=4 ranks=1 cpus=2]", 1, "found \"cpus=2\""},
        {HEAD "alreduce 0 one_shot", 2, "found \"alreduce\""},
        {HEAD "allreduce 0 quick", 2,
         "ll, one_shot, two_shot, cma_reduce, pair, linear, direct, found \"quick\""},
        {HEAD "allgather 0 full", 2, "cma_write, ring, found \"full\""},
        {HEAD "allreduce 0 multilevel", 2, "a line of its own"},
        {HEAD "allreduce ll", 2, "a size in bytes, such as 4096 or 64K, found \"ll\""},
        {HEAD "allreduce 0", 2, "found \"the end of the line\""},
        {HEAD "allreduce 1 one_shot", 2, "expected 0 in the first row"},
        {HEAD "allreduce 0 one_shot\nallreduce 2T two_shot", 3, "found \"2T\""},
        {HEAD "allreduce 0 one_shot\nallreduce 9999999999G two_shot", 3,
         "as 4096 or 64K"},
        {HEAD "allreduce 0 one_shot\nallreduce 2K two_shot\nallreduce 1K one_shot", 4,
         "larger"},
        {HEAD "allreduce 0 one_shot\nallreduce 2K two_shot\nallreduce 2K one_shot", 4,
         "larger"},
        {HEAD "allreduce 0 one_shot chunk=0", 2, "found \"chunk=0\""},
        {HEAD "allreduce 0 one_shot window=1K", 2, "expected chunk=BYTES"},
        {HEAD "allreduce 0 one_shot lanes=one", 2, "expected chunk=BYTES"},
        {"[nodes=2 ranks=1]\nallreduce 0 pair chunk=1K", 2, "expected window=BYTES"},
        {HEAD "multilevel levels=4", 2, "found \"levels=4\""},
        {HEAD "allreduce 0 ll", 2, "a row that begins at 25"},
        {HEAD "allreduce 0 pair", 2, "2 nodes of 1 rank"},
        {HEAD "allgather 0 ring", 2, "allgather on 2 or more nodes"},
        {HEAD "allreduce 0 cma_write", 2, "it is for broadcast, allgather and alltoall"},
        {HEAD "broadcast 0 cico", 2, "it is for allgather and alltoall on one node"},
        {HEAD "allgather 0 cma_read chunk=4K", 2, "expected the end of the line"},
        {"[nodes=2 ranks=2]\nalltoall 0 cma_read", 2, "on one node"},
        {"[nodes=1-2 ranks=4]\nallreduce 0 one_shot", 2, "on one node"},
        {"[nodes=2-3 ranks=4]\nallreduce 0 direct", 2, "3 or more nodes"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tap_ok(refuses(bad[i].text, bad[i].line, bad[i].words), "refused: %s",
               bad[i].words);
    }
}

/* Tests that tables with the algorithms' former names choose the same algorithms as
 * tables with the present names. */
static void test_old_names(void)
{
    static const struct {
        const char *old, *now;
    } tables[] = {
        {"[nodes=1 ranks=4]\nallreduce 0 line\nallreduce 25 full\nallreduce 1K lanes\n"
         "allreduce 1M single\nbroadcast 0 slots\nbroadcast 1K single\n"
         "broadcast 1M stores\nallgather 0 slots\nalltoall 0 single\nalltoall 1M stores",
         "[nodes=1 ranks=4]\nallreduce 0 ll\nallreduce 25 one_shot\n"
         "allreduce 1K two_shot\nallreduce 1M cma_reduce\nbroadcast 0 rolling\n"
         "broadcast 1K cma_read\nbroadcast 1M cma_write\nallgather 0 cico\n"
         "alltoall 0 cma_read\nalltoall 1M cma_write"},
        {"[nodes=4 ranks=2]\nallreduce 0 exchange lanes=one\nallreduce 1M direct\n"
         "alltoall 0 shifts\ngrid levels=2",
         "[nodes=4 ranks=2]\nallreduce 0 linear lanes=one\nallreduce 1M direct\n"
         "alltoall 0 pairwise\nmultilevel levels=2"},
    };

    for (int i = 0; i < 2; i++) {
        struct hvd_algorithm_table *old = parse(tables[i].old);
        struct hvd_algorithm_table *now = parse(tables[i].now);

        tap_ok(old != NULL && now != NULL &&
                   hvd_algorithm_table_digest(old) == hvd_algorithm_table_digest(now),
               "%s: old names choose the same as the new ones",
               i == 0 ? "one node" : "several nodes");
        hvd_algorithm_table_destroy(old);
        hvd_algorithm_table_destroy(now);
    }
}

static char *write_section(const struct hvd_algorithm_section *section)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    hvd_algorithm_section_write(section, out);
    fclose(out);
    return text;
}

static void random_list(uint64_t *random, enum hvd_collective collective,
                        struct hvd_job_shape shape, struct hvd_algorithm_rows *list)
{
    int rows = (int)jobs_random_below(random, HVD_ALGORITHM_ROWS + 1);
    int64_t from = 0;

    while (list->count < rows) {
        struct hvd_algorithm_row row = {.from = from};

        row.algorithm = (enum hvd_algorithm)jobs_random_below(random, HVD_ALGORITHMS);
        if (hvd_algorithm_misfit(&row, collective, shape, INT64_MAX) != NULL) {
            continue;
        }
        if (row.algorithm == HVD_ALGORITHM_PAIR) {
            row.window_bytes = jobs_random_below(random, 1 << 20);
        } else if (row.algorithm != HVD_ALGORITHM_CMA_REDUCE &&
                   row.algorithm != HVD_ALGORITHM_CMA_READ &&
                   row.algorithm != HVD_ALGORITHM_CMA_WRITE) {
            row.chunk_bytes = jobs_random_below(random, 3) * 4096;
        }
        row.has_one_slice = (row.algorithm == HVD_ALGORITHM_LINEAR ||
                             row.algorithm == HVD_ALGORITHM_DIRECT) &&
                            jobs_random_below(random, 2) == 0;
        list->rows[list->count++] = row;
        from += 1 + (int64_t)jobs_random_below(random, INT64_C(1) << 40);
    }
}

static bool comes_back(uint64_t *random)
{
    struct hvd_algorithm_section section = {.measured = "here"};
    struct hvd_algorithm_table made = {.sections = &section, .count = 1}, *read;
    char *text;
    bool is_same;

    section.least.nodes = 1 + (int)jobs_random_below(random, 4);
    section.least.ranks = 1 + (int)jobs_random_below(random, 4);
    section.most = section.least;
    section.choices.grid_levels = (int)jobs_random_below(random, 4);
    for (int i = 0; i < HVD_COLLECTIVES; i++) {
        random_list(random, (enum hvd_collective)i, section.least,
                    &section.choices.of[i]);
    }
    text = write_section(&section);
    read = parse(text);
    is_same = read != NULL &&
              hvd_algorithm_table_digest(read) == hvd_algorithm_table_digest(&made) &&
              strcmp(read->sections[0].measured, "here") == 0;
    if (!is_same) {
        tap_note("%s", text);
    }
    hvd_algorithm_table_destroy(read);
    free(text);
    return is_same;
}

static void test_writing(void)
{
    unsigned seed = tap_seed((unsigned)time(NULL));
    uint64_t random = seed * UINT64_C(2) + 1;
    struct hvd_algorithm_table *table = parse(two_sections), *other, *moved;
    bool is_same = true;

    for (int i = 0; i < 500 && is_same; i++) {
        is_same = comes_back(&random);
    }
    tap_ok(is_same, "a section that is written and read again is the same");
    moved = parse("[nodes=1 ranks=4]\nallreduce 0 one_shot\nallreduce 4K two_shot");
    other = parse("[nodes=1 ranks=4]\n#\nallreduce 0 one_shot\nallreduce 4097 two_shot");
    tap_ok(hvd_algorithm_table_digest(moved) != hvd_algorithm_table_digest(other) &&
               hvd_algorithm_table_digest(table) != hvd_algorithm_table_digest(other) &&
               hvd_algorithm_table_digest(table) != 0 &&
               hvd_algorithm_table_digest(NULL) == 0,
           "tables that choose differently have different digests");
    hvd_algorithm_table_destroy(other);
    other = parse(
        "\n[nodes=1 ranks=4]\nallreduce 0 one_shot # so\nallreduce 4096 two_shot\n");
    tap_ok(hvd_algorithm_table_digest(moved) == hvd_algorithm_table_digest(other),
           "tables that only look different have the same digest");
    hvd_algorithm_table_destroy(moved);
    hvd_algorithm_table_destroy(other);
    hvd_algorithm_table_destroy(table);
}

/* Whether the rows of a list begin at size 0, ascend, and each fit the shape of the
 * job. */
static bool is_sound(const struct hvd_algorithm_rows *list,
                     enum hvd_collective collective, struct hvd_job_shape shape)
{
    for (int i = 0; i < list->count; i++) {
        const struct hvd_algorithm_row *row = &list->rows[i];
        int64_t most = i + 1 < list->count ? row[1].from - 1 : INT64_MAX;

        if ((i == 0 && row->from != 0) || most < row->from ||
            hvd_algorithm_misfit(row, collective, shape, most) != NULL) {
            tap_note("%s row %d on %d nodes of %d ranks, cpu %d",
                     hvd_collective_name(collective), i, shape.nodes, shape.ranks,
                     (int)shape.cpu);
            return false;
        }
    }
    return list->count > 0;
}

static uint64_t digest_of(const struct hvd_algorithm_choices *choices)
{
    struct hvd_algorithm_section section = {.choices = *choices};
    const struct hvd_algorithm_table table = {.sections = &section, .count = 1};

    return hvd_algorithm_table_digest(&table);
}

static void test_built_in(void)
{
    static const struct hvd_job_shape pair = {.nodes = 1, .ranks = 2};
    static const struct hvd_job_shape amd = {
        .nodes = 1, .ranks = 2, .cpu = HVD_PROCESSOR_AMD};
    struct hvd_algorithm_choices choices, other;
    /* is_good: the rows fit all shapes; is_one: all processors have the same table */
    bool is_good = true, is_one = true;
    uint64_t first = 0;

    for (int nodes = 1; nodes <= 20; nodes++) {
        for (int ranks = 1; ranks <= 16; ranks++) {
            struct hvd_job_shape shape = {.nodes = nodes, .ranks = ranks};

            for (int cpu = HVD_PROCESSOR_OTHER; cpu <= HVD_PROCESSOR_AMD; cpu++) {
                shape.cpu = (enum hvd_processor)cpu;
                hvd_algorithm_choices_builtin(shape, &choices);
                for (int i = 0; i < HVD_COLLECTIVES; i++) {
                    is_good = is_good &&
                              is_sound(&choices.of[i], (enum hvd_collective)i, shape);
                }
                first = cpu == HVD_PROCESSOR_OTHER ? digest_of(&choices) : first;
            }
            is_one = is_one && (nodes == 1 || digest_of(&choices) == first);
        }
    }
    tap_ok(is_good, "all rows of the built-in table fit their shapes");
    tap_ok(is_one, "on several nodes the table is the same for all processors");
    hvd_algorithm_choices_builtin(pair, &choices);
    hvd_algorithm_choices_builtin(amd, &other);
    tap_ok(is_row(&choices, 1 << 20, HVD_ALGORITHM_CMA_REDUCE, 0) &&
               is_row(&other, 32 << 10, HVD_ALGORITHM_ONE_SHOT, 0) &&
               is_row(&other, 1 << 20, HVD_ALGORITHM_ONE_SHOT, 256 << 10) &&
               is_row(&other, 16 << 20, HVD_ALGORITHM_TWO_SHOT, 0),
           "on one node the table depends on the processor");
}

int main(void)
{
    test_built_in();
    test_reading();
    test_refusals();
    test_old_names();
    test_writing();
    return tap_done();
}
