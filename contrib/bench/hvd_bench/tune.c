/* SPDX-License-Identifier: Apache-2.0 */
/* --tune: times the algorithms that a table can name, on this job, and writes the
 * table. */
#include "contrib/bench/hvd_bench/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectives/schedule/algorithm.h"
#include "contrib/bench/hvd_bench/alternatives.h"
#include "contrib/bench/hvd_bench/report.h"
#include "contrib/bench/hvd_bench/tune_file.h"
#include "gpu_binding/base/number.h"

enum {
    /* each turn measures all sizes, so that the turns of one size are far apart */
    TURNS = 3,
};

/* The measurement of one collective. */
struct sweep {
    struct bench_field *field;
    enum bench_collective collective;
    enum hvd_collective kind;
    struct hvd_job_shape shape;
    struct bench_alternatives alternatives;
    /* each of these chooses one alternative */
    struct hvd_algorithm_choices choices[BENCH_MOST_ALTERNATIVES];
    struct bench_sweep_size sizes[BENCH_MOST_SIZES];
    int chosen[BENCH_MOST_SIZES];
    struct bench_sizes wanted; /* ascending */
};

static int compare_sizes(const void *a, const void *b)
{
    const int64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

static void begin_sweep(struct sweep *sweep, struct bench_field *field,
                        enum bench_collective collective)
{
    *sweep = (struct sweep){.field = field,
                            .collective = collective,
                            .kind = (enum hvd_collective)hvd_collective_find(
                                bench_collective_name(collective)),
                            .shape = hvd_job_shape_here(&field->job->layout),
                            .wanted = field->options->sizes};
    qsort(sweep->wanted.bytes, (size_t)sweep->wanted.count, sizeof(int64_t),
          compare_sizes);
    bench_alternatives_list(sweep->kind, sweep->shape, &sweep->alternatives);
    for (int i = 0; i < sweep->alternatives.count; i++) {
        hvd_algorithm_choices_builtin(sweep->shape, &sweep->choices[i]);
        sweep->choices[i].of[sweep->kind].count = 1;
        sweep->choices[i].of[sweep->kind].rows[0] = sweep->alternatives.items[i].row;
    }
}

/* Makes the contenders of a size. The usual alternative comes first, since ratios are
 * relative to the first. */
static int gather_contenders(struct sweep *sweep, const struct bench_sweep_size *size,
                             int *numbers, struct hvd_error *err)
{
    const struct bench_alternatives *all = &sweep->alternatives;
    int count = 0, status = 0;

    numbers[count++] = size->usual;
    for (int i = 0; i < all->count; i++) {
        if (i != size->usual && bench_alternative_fits(&all->items[i], size->bytes)) {
            numbers[count++] = i;
        }
    }
    sweep->field->count = 0;
    for (int i = 0; i < count && status == 0; i++) {
        status =
            bench_forced_create(&sweep->choices[numbers[i]], all->items[numbers[i]].name,
                                &sweep->field->contenders[i], err);
        sweep->field->count += status == 0;
    }
    return status;
}

static void release_field(struct bench_field *field)
{
    for (int i = 0; i < field->count; i++) {
        field->contenders[i].ops->destroy(field->contenders[i].self);
    }
    field->count = 0;
}

static int measure_size(struct sweep *sweep, int64_t wanted,
                        struct bench_sweep_size *size, struct hvd_error *err)
{
    struct bench_work *work = calloc(1, sizeof(*work));
    struct bench_row rows[BENCH_MOST_CONTENDERS];
    int numbers[BENCH_MOST_ALTERNATIVES] = {0};
    int status;

    if (work == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    *work = (struct bench_work){.collective = sweep->collective,
                                .dtype = HVD_FLOAT32,
                                .op = HVD_SUM,
                                .wanted = wanted,
                                .rank = sweep->field->job->rank,
                                .size = sweep->field->job->size};
    status = bench_job_agree(bench_work_init(work, err), err);
    size->bytes = work->bytes;
    size->usual = bench_alternative_usual(&sweep->alternatives, sweep->kind, sweep->shape,
                                          work->bytes);
    status = status == 0 ? gather_contenders(sweep, size, numbers, err) : status;
    status = status == 0 ? bench_measure(sweep->field, work, rows, err) : status;
    for (int i = 0; status == 0 && i < sweep->field->count; i++) {
        if (rows[i].is_there) {
            bench_cell_add(&size->cells[numbers[i]], rows[i].seconds.median,
                           &rows[i].ratios);
        }
    }
    release_field(sweep->field);
    bench_work_finish(work);
    free(work);
    return status;
}

static void print_cell(const struct sweep *sweep, int at, int alternative)
{
    const struct bench_sweep_size *size = &sweep->sizes[at];
    const char *mark = alternative == sweep->chosen[at] ? "**" : "";

    if (size->cells[alternative].turns == 0) {
        printf(" - |");
    } else {
        printf(" %s%.4g%s%s |", mark, size->cells[alternative].seconds * 1e6, mark,
               alternative == size->usual ? " u" : "");
    }
}

static void print_table(const struct sweep *sweep)
{
    char size[32];

    printf("\n%s, %d node%s, %d rank%s on a node: us per call. **Bold**: chosen; u: the "
           "built-in table's; the last column is the ratio of these two times\n\n| "
           "bytes |",
           bench_collective_name(sweep->collective), sweep->shape.nodes,
           hvd_number_plural(sweep->shape.nodes), sweep->shape.ranks,
           hvd_number_plural(sweep->shape.ranks));
    for (int i = 0; i < sweep->alternatives.count; i++) {
        printf(" %s |", sweep->alternatives.items[i].name);
    }
    printf(" chosen / u |\n|---:|");
    for (int i = 0; i <= sweep->alternatives.count; i++) {
        printf("---:|");
    }
    for (int at = 0; at < sweep->wanted.count; at++) {
        const struct bench_sweep_size *one = &sweep->sizes[at];

        printf("\n| %s |", hvd_algorithm_size_write(one->bytes, size, sizeof(size)));
        for (int i = 0; i < sweep->alternatives.count; i++) {
            print_cell(sweep, at, i);
        }
        printf(" %.2f |", one->cells[sweep->chosen[at]].middle);
    }
    printf("\n");
    fflush(stdout);
}

static int tune_one(struct sweep *sweep, struct hvd_algorithm_section *section,
                    struct hvd_error *err)
{
    int status = 0;

    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < sweep->wanted.count && status == 0; i++) {
            status = measure_size(sweep, sweep->wanted.bytes[i], &sweep->sizes[i], err);
        }
    }
    if (status != 0) {
        return status;
    }
    for (int i = 0; i < sweep->wanted.count; i++) {
        sweep->chosen[i] =
            bench_alternative_choose(&sweep->sizes[i], sweep->alternatives.count);
    }
    bench_alternatives_rows(&sweep->alternatives, sweep->kind, sweep->shape, sweep->sizes,
                            sweep->chosen, sweep->wanted.count,
                            &section->choices.of[sweep->kind]);
    if (sweep->field->job->rank == 0) {
        bench_progress_erase(&sweep->field->progress);
        print_table(sweep);
    }
    return 0;
}

static void describe_section(struct hvd_algorithm_section *section)
{
    time_t now = time(NULL);
    char date[32] = "", host[65] = "", processor[100];
    struct tm when;

    if (gmtime_r(&now, &when) != NULL) {
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &when);
    }
    gethostname(host, sizeof(host) - 1);
    bench_processor_read(processor, sizeof(processor));
    snprintf(section->measured, sizeof(section->measured),
             "by hvd-bench --tune of hvd %s, %s, on %s: %ld cpus%s%s", hvd_version(),
             date, host, sysconf(_SC_NPROCESSORS_ONLN), processor[0] != '\0' ? ", " : "",
             processor);
}

static int tune_all(struct sweep *sweep, struct bench_field *field,
                    struct hvd_algorithm_section *section, struct hvd_error *err)
{
    const struct bench_options *options = field->options;
    int status = 0;

    bench_progress_begin(&field->progress,
                         TURNS * options->collectives.count * options->sizes.count,
                         bench_now());
    for (int i = 0; i < options->collectives.count && status == 0; i++) {
        begin_sweep(sweep, field, (enum bench_collective)options->collectives.items[i]);
        status = tune_one(sweep, section, err);
    }
    return status;
}

static int write_section(const struct bench_field *field,
                         const struct hvd_algorithm_section *section,
                         struct hvd_error *err)
{
    int status = bench_tune_file_write(field->options->tune, section, err);

    if (status == 0) {
        printf("\n%s now has this section:\n\n", field->options->tune);
        hvd_algorithm_section_write(section, stdout);
    }
    return status;
}

int bench_tune(struct bench_field *field, struct hvd_error *err)
{
    struct hvd_job_shape shape = hvd_job_shape_of(&field->job->layout);
    struct hvd_algorithm_section section = {.least = shape, .most = shape};
    struct sweep *sweep = malloc(sizeof(*sweep));
    char remark[400];
    int status;

    if (sweep == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    if (field->job->rank == 0 &&
        bench_tune_is_uneven(&field->job->layout, remark, sizeof(remark))) {
        fprintf(stderr, "hvd-bench: warning: %s\n", remark);
    }
    status = field->job->size > 1
                 ? tune_all(sweep, field, &section, err)
                 : hvd_fail(err, HVD_ERR_ARG, "--tune needs at least two ranks");
    free(sweep);
    if (status == 0 && field->job->rank == 0) {
        describe_section(&section);
        status = write_section(field, &section, err);
    }
    return bench_job_agree(status, err);
}
