/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-bench: measures the collectives of hvd and of other libraries. --help describes its
 * use. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/run/algorithm_file.h"
#include "collectives/schedule/algorithm.h"
#include "contrib/bench/hvd_bench/explain.h"
#include "contrib/bench/hvd_bench/measure.h"
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/outputs.h"
#include "contrib/bench/hvd_bench/peer_mpi.h"
#include "contrib/bench/hvd_bench/report.h"
#include "contrib/bench/hvd_bench/scripts.h"
#include "contrib/bench/hvd_bench/tune.h"
#include "contrib/bench/simulate/simulate.h"
#include "gpu_binding/base/env.h"

static const bench_contender_maker peers[BENCH_PEERS] = {
    [BENCH_MPI] = bench_mpi_create,         [BENCH_GLOO] = bench_gloo_create,
    [BENCH_LIMIT] = bench_limit_create,     [BENCH_UCX_LIMIT] = bench_ucx_limit_create,
    [BENCH_BUILTIN] = bench_builtin_create,
};

/* Whether this rank is rank 0, which prints errors in the options. The other ranks find
 * the same errors and stay silent. */
static bool speaks_first(void)
{
    const char *rank = getenv(HVD_ENV_RANK);

    rank = rank != NULL ? rank : getenv(HVD_ENV_PMIX_RANK);
    return rank == NULL || strcmp(rank, "0") == 0;
}

/* Whether stderr is a terminal, or a launcher's pipe to a terminal. */
static bool has_terminal(void)
{
    const char *said = getenv(HVD_ENV_TERMINAL);

    return isatty(STDERR_FILENO) || (said != NULL && strcmp(said, "1") == 0);
}

/* Adds a contender, or prints why it cannot be measured. */
static void add_contender(struct bench_field *field, const char *name,
                          bench_contender_maker create, const char *program)
{
    struct hvd_error err;
    char what[64];
    int status;

    snprintf(what, sizeof(what), "starting %s", name);
    bench_progress_show(&field->progress, 0, what, bench_now());
    status = create(field->job, program, &field->contenders[field->count], &err);

    if (status == 0) {
        field->count++;
    } else if (field->job->rank == 0) {
        bench_progress_erase(&field->progress);
        printf("# without %s: %s\n", name, err.text);
    }
}

/* Makes the contenders. The levels of hvd come first; ratios are relative to the first
 * one. */
static int gather_field(struct bench_field *field, struct hvd_error *err)
{
    const struct bench_options *options = field->options;

    if (bench_list_has(&options->levels, BENCH_TEAM)) {
        add_contender(field, "team", bench_team_create, NULL);
    }
    if (bench_list_has(&options->levels, BENCH_RUNTIME)) {
        add_contender(field, "runtime", bench_runtime_create, NULL);
    }
    if (field->count == 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "neither level of hvd can run this");
    }
    for (int i = 0; i < options->peers.count; i++) {
        enum bench_peer peer = (enum bench_peer)options->peers.items[i];

        add_contender(field, bench_peer_name(peer), peers[peer], options->programs[i]);
    }
    return 0;
}

static int measure_one(struct bench_field *field, struct bench_report *report,
                       struct bench_work *work, struct hvd_error *err)
{
    struct bench_row rows[BENCH_MOST_CONTENDERS];
    int status;

    work->rank = field->job->rank;
    work->size = field->job->size;
    status = bench_work_init(work, err);
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_measure(field, work, rows, err);
    }
    if (status == 0 && work->rank == 0) {
        bench_report_rows(report, work, rows);
    }
    bench_work_finish(work);
    return status;
}

/* Returns how many works a collective has: one for each combination of type, operation
 * and size. */
static int count_works(const struct bench_options *options,
                       enum bench_collective collective)
{
    if (collective == BENCH_BARRIER) {
        return 1;
    }
    return options->sizes.count * options->dtypes.count *
           (bench_collective_reduces(collective) ? options->ops.count : 1);
}

static int measure_collective(struct bench_field *field, struct bench_report *report,
                              enum bench_collective collective, struct hvd_error *err)
{
    const struct bench_options *options = field->options;
    int works = count_works(options, collective), status = 0;
    int sizes = options->sizes.count;
    int ops = bench_collective_reduces(collective) ? options->ops.count : 1;

    for (int i = 0; i < works && status == 0; i++) {
        struct bench_work work = {
            .collective = collective,
            .dtype = (enum hvd_dtype)options->dtypes.items[i / sizes / ops],
            .op = (enum hvd_op)options->ops.items[i / sizes % ops],
            .wanted = collective == BENCH_BARRIER ? 0 : options->sizes.bytes[i % sizes],
        };

        status = measure_one(field, report, &work, err);
    }
    return status;
}

static int measure_all(struct bench_field *field, int argc, char **argv,
                       struct hvd_error *err)
{
    const struct bench_list *collectives = &field->options->collectives;
    struct bench_report report = {.field = field};
    bool writes = field->job->rank == 0;
    int works = 0, status = 0, ended;

    if (writes) {
        status = bench_report_begin(&report, field, argc, argv, err);
    }
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = gather_field(field, err);
    }
    for (int i = 0; i < collectives->count; i++) {
        works +=
            count_works(field->options, (enum bench_collective)collectives->items[i]);
    }
    bench_progress_begin(&field->progress, works, bench_now());
    for (int i = 0; i < collectives->count && status == 0; i++) {
        status = measure_collective(field, &report,
                                    (enum bench_collective)collectives->items[i], err);
    }
    bench_progress_erase(&field->progress);
    ended = writes ? bench_report_end(&report, status == 0, err) : 0;
    return status < 0 ? status : bench_job_agree(ended, err);
}

static int measure_field(const struct bench_options *options, int argc, char **argv,
                         struct hvd_error *err)
{
    struct bench_job job = {
        .mpi = bench_list_has(&options->peers, BENCH_MPI) ? bench_mpi_start() : NULL};
    struct bench_field *field = calloc(1, sizeof(*field));
    int status = field != NULL ? bench_job_init(&job, err)
                               : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");

    if (status < 0) {
        fprintf(stderr, "hvd-bench: %s\n", err->text);
        bench_mpi_stop(job.mpi);
        free(field);
        return status;
    }
    field->job = &job;
    field->options = options;
    field->progress.out = job.rank == 0 && has_terminal() ? stderr : NULL;
    status = options->what == BENCH_TUNE ? bench_tune(field, err)
                                         : measure_all(field, argc, argv, err);
    bench_progress_erase(&field->progress);
    /* if a rank is lost, rank 0 may be ended before it can tell */
    if (status < 0 && (job.rank == 0 || status == HVD_ERR_PEER)) {
        fprintf(stderr, "hvd-bench: %s\n", err->text);
    }
    for (int i = 0; i < field->count; i++) {
        field->contenders[i].ops->destroy(field->contenders[i].self);
    }
    free(field);
    bench_job_finish(&job);
    bench_mpi_stop(job.mpi);
    return status;
}

/* Runs --explain, which needs no job if the user gives a layout. */
static int explain(const struct bench_options *options, struct hvd_error *err)
{
    struct bench_explain_query query = {
        .collective = (enum bench_collective)options->collectives.items[0],
        .bytes = options->explain_bytes,
        .dtype = (enum hvd_dtype)options->dtypes.items[0],
        .cpu = hvd_processor_here()};
    const char *path = getenv(HVD_ENV_TUNE_TABLE);
    struct hvd_algorithm_table *table = NULL;
    struct hvd_layout layout = {0};
    struct bench_job job = {0};
    bool has_job = options->layout == NULL;
    int status = has_job ? bench_job_init(&job, err)
                         : bench_layout_parse(options->layout, &layout, err);

    query.layout = has_job ? &job.layout : &layout;
    if (status == 0) {
        path = path != NULL && path[0] != '\0' ? path : NULL;
        status = hvd_algorithm_file_read(path, &table, err);
    }
    query.algorithms = table;
    if (status == 0 && (has_job ? job.rank == 0 : speaks_first())) {
        status = bench_explain(&query, stdout, err);
    }
    if (has_job) {
        bench_job_finish(&job);
    }
    hvd_layout_finish(&layout);
    hvd_algorithm_table_destroy(table);
    if (status < 0) {
        fprintf(stderr, "hvd-bench: %s\n", err->text);
    }
    return status;
}

static int exit_code(int status)
{
    return status == 0 ? 0 : status == HVD_ERR_ARG ? 2 : 1;
}

static int act_on_options(const struct bench_options *options, int argc, char **argv)
{
    struct hvd_error err = {0};

    switch (options->what) {
    case BENCH_HELP:
        if (speaks_first()) {
            bench_help_print(stdout);
        }
        return 0;
    case BENCH_VERSION:
        if (speaks_first()) {
            printf("hvd-bench %s\n", hvd_version());
        }
        return 0;
    case BENCH_EXPLAIN_LIST:
        if (speaks_first()) {
            bench_explain_list(stdout);
        }
        return 0;
    case BENCH_EXPLAIN:
        return exit_code(explain(options, &err));
    default:
        return exit_code(measure_field(options, argc, argv, &err));
    }
}

int main(int argc, char **argv)
{
    static struct bench_options options;
    struct hvd_error err;
    int status, outputs;

    if (argc > 1 && strcmp(argv[1], "--lab") == 0) {
        return bench_lab(argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "--simulate") == 0) {
        return hvd_simulate(argc - 1, argv + 1);
    }
    bench_script_set_parts();
    status = bench_options_parse(argc, argv, &options, &err);
    outputs = status == 0 ? bench_outputs_check(&options, &err) : 0;
    if (status == 0 && outputs == 0) {
        return act_on_options(&options, argc, argv);
    }
    if (speaks_first()) {
        fprintf(stderr, "hvd-bench: %s\n", err.text);
        return 2;
    }
    sleep(1); /* a launcher ends all ranks when one fails: let rank 0 print first */
    /* A file that cannot be written here may be writable on rank 0, which alone writes
     * files. */
    return status < 0 ? 2 : act_on_options(&options, argc, argv);
}
