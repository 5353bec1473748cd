/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the facts of this rank, starts hvd, measures, and gathers everything to rank
 * 0, which judges. */
#include "contrib/info/check/check.h"

#include <assert.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contrib/info/check/compute.h"
#include "contrib/info/check/fold.h"
#include "contrib/info/check/gpu.h"
#include "contrib/info/check/judge.h"
#include "contrib/info/check/library.h"
#include "contrib/info/check/links.h"
#include "contrib/info/check/node.h"
#include "contrib/info/check/programs.h"
#include "contrib/info/check/report.h"
#include "contrib/info/check/values.h"
#include "contrib/info/check/variables.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"

enum {
    TEXT_BYTES = 4096,
    GATHER_MS = 60000,
    SECONDS = 8, /* for measurements, by default */
    /* A rank that fails stays for so long. When its end makes srun end the step, Slurm
     * loses output that it has not read by then (seen with 22.05). */
    LINGER_MS = 1000,
};

/* The fact that decides about the verdict. */
static const char usable[] = "GPU tensors: can be used\n";
static const char unneeded[] =
    "GPU tensors: cannot be used, but no GPU is here and none was asked for\n";
static const char broken[] = "GPU tensors: cannot be used\n";

/* The facts about this rank and its node. */
struct facts {
    char *text; /* one fact a line */
    size_t bytes;
    int start_status; /* 0, or the status with which hvd_init would fail */
    char start[TEXT_BYTES]; /* how ranks find each other, or why they cannot */
    bool has_gpu; /* that hvd can use */
    double values[HVD_INFO_VALUES];
};

/* The check, with what it has loaded. */
struct check {
    const struct hvd_info_check_options *options;
    hvd_info_lookup lookup;
    struct hvd_info_library library;
    struct hvd_info_thresholds thresholds;
};

/* --- the facts of this rank --- */

/* Writes how PMIx checks who connects. If it offers several modes, the client chooses
 * one; an attacker would choose native, which is not secure. */
static void write_pmix_security(FILE *out)
{
    const char *modes = getenv(HVD_ENV_PMIX_SECURITY);

    if (modes == NULL) {
        return;
    }
    if (strcmp(modes, "munge") == 0) {
        fputs("PMIx: asks munge for the user of each process that connects\n", out);
    } else {
        fprintf(out,
                "PMIx: believes the user id that a process claims (" HVD_ENV_PMIX_SECURITY
                "=%.60s), so any user of this node can end a step: an administrator "
                "can change that in mpi.conf, see security.md\n",
                modes);
    }
}

/* Chooses the fact about GPU tensors. They have to be usable only where there is a GPU,
 * or where the job has asked for one. */
static int judge_gpus(hvd_info_lookup lookup, int gpu_status, const char **fact,
                      struct hvd_error *err)
{
    struct hvd_topology_source source = {0};
    struct hvd_topology topology;
    struct hvd_info_job job;
    int status;

    hvd_info_job_read(lookup, &job);
    if (gpu_status == 0 || hvd_info_job_has_gpus(&job)) {
        *fact = gpu_status == 0 ? usable : broken;
        return 0;
    }
    status = hvd_topology_load(&topology, &source, err);
    if (status < 0) {
        return status;
    }
    *fact = topology.gpu_count > 0 ? broken : unneeded;
    hvd_topology_finish(&topology);
    return 0;
}

static void write_versions(const struct check *check, FILE *out)
{
    const char *launcher = check->lookup(HVD_ENV_LAUNCH_VERSION);

    fprintf(out, "hvd: libhvd %s, hvd-info %s", check->library.version(), HVD_VERSION);
    if (launcher != NULL) {
        fprintf(out, ", started by %.60s", launcher);
    }
    fputc('\n', out);
}

static int collect_facts(const struct check *check, struct facts *facts,
                         struct hvd_error *err)
{
    char gpus[TEXT_BYTES] = "";
    char model[HVD_INFO_GPU_MODEL_BYTES];
    const char *gpu_fact = NULL;
    int status;
    FILE *out;

    for (int i = 0; i < HVD_INFO_VALUES; i++) {
        facts->values[i] = NAN;
    }
    facts->start_status =
        check->library.start_describe(facts->start, sizeof(facts->start));
    status = judge_gpus(check->lookup, check->library.gpu_describe(gpus, sizeof(gpus)),
                        &gpu_fact, err);
    if (status != 0) {
        return status;
    }
    facts->has_gpu = gpu_fact == usable;
    out = open_memstream(&facts->text, &facts->bytes);
    if (out == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the facts of this node");
    }
    fprintf(out, "start: %s%s\n",
            facts->start_status == 0 ? "by " : "impossible: ", facts->start);
    write_pmix_security(out);
    write_versions(check, out);
    hvd_info_variables_print(check->lookup, out);
    hvd_info_ucx_print(out);
    if (check->thresholds.count == 0) {
        fputs("thresholds: none, so no number is judged: this installation has no "
              "thresholds.conf, name a file by --thresholds\n",
              out);
    }
    hvd_info_node_read(check->lookup, facts->values, out);
    hvd_info_programs_print(check->lookup, out);
    hvd_info_gpu_model(model);
    if (model[0] != '\0') {
        fprintf(out, "GPU model: %s\n", model);
    }
    fprintf(out, "%s%s", gpus, gpu_fact);
    return fclose(out) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "no memory for the facts of this node");
}

/* --- the facts of all ranks --- */

/* Adds a fault if GPU tensors cannot be used on some nodes although they should. */
static int judge_usable(const struct hvd_info_nodes *nodes, const char *const *texts,
                        struct hvd_info_findings *findings, struct hvd_error *err)
{
    static const struct hvd_info_finding finding = {
        .level = HVD_INFO_RED,
        .check = "GPU tensors",
        .value = NAN,
        .median = NAN,
        .limit = NAN,
        .unit = "",
        .advice = "cannot be used: the facts of these nodes say why"};
    int *ranks = calloc((size_t)nodes->ranks, sizeof(*ranks));
    int count = 0;
    int status = 0;

    if (ranks == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", nodes->ranks);
    }
    for (int rank = 0; rank < nodes->ranks; rank++) {
        if (strstr(texts[rank], broken) != NULL) {
            ranks[count++] = rank;
        }
    }
    if (count > 0) {
        status = hvd_info_findings_add(nodes, ranks, count, &finding, findings, err);
    }
    free(ranks);
    return status;
}

/* Fails if there is a red finding, with a sentence that names the first one. */
static int fail_of(const struct hvd_info_findings *findings, struct hvd_error *err)
{
    for (int i = 0; i < findings->count; i++) {
        const struct hvd_info_finding *item = &findings->items[i];

        if (item->level == HVD_INFO_RED && isnan(item->value)) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED, "GPU tensors cannot be used on %s",
                            item->nodes);
        }
        if (item->level == HVD_INFO_RED) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                            "%d of the checks failed, the first is %s on %.200s",
                            hvd_info_findings_count(findings, HVD_INFO_RED), item->check,
                            item->nodes);
        }
    }
    return 0;
}

static void print_verdict(const struct hvd_info_findings *findings, int ranks)
{
    int warnings = hvd_info_findings_count(findings, HVD_INFO_YELLOW);

    if (hvd_info_findings_count(findings, HVD_INFO_RED) > 0) {
        printf("verdict: bad\n");
        return;
    }
    printf("verdict: good, %d rank%s", ranks,
           ranks == 1 ? " starts" : "s find each other");
    if (warnings > 0) {
        printf(", %d warning%s", warnings, warnings > 1 ? "s" : "");
    }
    putchar('\n');
}

static void print_findings(const struct check *check,
                           const struct hvd_info_findings *findings, int ranks)
{
    hvd_info_findings_print(
        findings, isatty(STDOUT_FILENO) && check->lookup(HVD_ENV_NO_COLOR) == NULL,
        stdout);
    print_verdict(findings, ranks);
}

/* Prints the facts, those of a lone rank without its node, the findings and the
 * verdict. */
static int print_all(const struct check *check, const struct hvd_info_nodes *nodes,
                     const char *const *texts, const struct hvd_info_findings *findings,
                     struct hvd_error *err)
{
    int status = 0;

    if (check->options->is_json) {
        status = hvd_info_findings_json(nodes, texts, findings, stdout, err);
    } else {
        if (nodes->ranks == 1) {
            fputs(texts[0], stdout);
        } else {
            status = hvd_info_fold_print(nodes, texts, stdout, err);
        }
        print_findings(check, findings, nodes->ranks);
    }
    return status < 0 || fflush(stdout) == 0
               ? status
               : hvd_fail(err, HVD_ERR_SYS, "cannot write to standard output: %m");
}

static int report(const struct check *check, const struct hvd_info_nodes *nodes,
                  const char *const *texts, const double *values, struct hvd_error *err)
{
    struct hvd_info_findings findings = {0};
    int status = hvd_info_judge_texts(nodes, texts, &findings, err);

    if (status == 0) {
        status = hvd_info_judge(nodes, values, texts, &check->thresholds, &findings, err);
    }
    if (status == 0) {
        status = judge_usable(nodes, texts, &findings, err);
    }
    if (status == 0) {
        status = print_all(check, nodes, texts, &findings, err);
    }
    if (status == 0) {
        status = fail_of(&findings, err);
    }
    hvd_info_findings_finish(&findings);
    return status;
}

/* Reports about this node only; with a cause, that of the check which has failed: the
 * facts with the node's name, and the failed check as the only finding. */
static int report_own(const struct check *check, const struct facts *facts,
                      const char *failed, const char *cause, struct hvd_error *err)
{
    const struct hvd_info_finding failure = {.level = HVD_INFO_RED,
                                             .check = failed,
                                             .value = NAN,
                                             .median = NAN,
                                             .limit = NAN,
                                             .unit = "",
                                             .advice = cause};
    char host[256] = "";
    const char *const hosts[] = {host};
    const char *const texts[] = {facts->text};
    const int ranks[] = {0};
    struct hvd_info_findings findings = {0};
    struct hvd_info_nodes nodes = {0};
    int status;

    if (gethostname(host, sizeof(host) - 1) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot find the name of this node: %m");
    }
    status = hvd_info_nodes_init(&nodes, hosts, 1, err);
    assert(status != 0 || nodes.ranks == 1);
    if (status == 0 && cause == NULL) {
        status = report(check, &nodes, texts, facts->values, err);
    } else if (status == 0) {
        status = hvd_info_findings_add(&nodes, ranks, 1, &failure, &findings, err);
    }
    if (status == 0 && cause != NULL && check->options->is_json) {
        status = hvd_info_findings_json(&nodes, texts, &findings, stdout, err);
    } else if (status == 0 && cause != NULL) {
        status = hvd_info_fold_print(&nodes, texts, stdout, err);
        print_findings(check, &findings, nodes.ranks);
    }
    fflush(stdout);
    hvd_info_findings_finish(&findings);
    hvd_info_nodes_finish(&nodes);
    if (cause != NULL && check->lookup(HVD_ENV_SLURM_STEP) != NULL) {
        poll(NULL, 0, LINGER_MS);
    }
    return status;
}

/* --- all ranks --- */

/* Gathers a vector to rank 0, which gets the concatenation of all. */
static int gather(const struct hvd_info_library *library, const void *data, int64_t count,
                  enum hvd_dtype dtype, void **all, struct hvd_error *err)
{
    const struct hvd_tensor tensor = {.name = dtype == HVD_UINT8 ? "texts" : "values",
                                      .input = data,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = dtype,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    int64_t rows;
    int status = library->gather_start(&tensor, 0, HVD_SET_GLOBAL, &request, err);

    if (status != 0) {
        return status;
    }
    status = library->wait_for(request, GATHER_MS, err);
    if (status == HVD_INPROGRESS) {
        return hvd_fail(err, HVD_ERR_TIMEOUT,
                        "the facts of all ranks have not arrived within %d seconds",
                        GATHER_MS / 1000);
    }
    if (status == 0) {
        status = library->request_take(request, 0, all, &rows);
    }
    library->request_free(request);
    return status;
}

/* Rank 0 reports; texts follow each other, each with its null byte. */
static int report_texts(const struct check *check, const struct hvd_info_nodes *nodes,
                        const char *text, const double *values, struct hvd_error *err)
{
    const char **texts = calloc((size_t)nodes->ranks, sizeof(*texts));
    int status;

    if (texts == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", nodes->ranks);
    }
    for (int rank = 0; rank < nodes->ranks; rank++) {
        texts[rank] = text;
        text += strlen(text) + 1;
    }
    status = report(check, nodes, texts, values, err);
    free(texts);
    return status;
}

static int gather_and_report(const struct check *check,
                             const struct hvd_info_nodes *nodes, struct facts *facts,
                             struct hvd_error *err)
{
    void *texts = NULL;
    void *values = NULL;
    int status = gather(&check->library, facts->text, (int64_t)strlen(facts->text) + 1,
                        HVD_UINT8, &texts, err);

    if (status == 0) {
        status = gather(&check->library, facts->values, HVD_INFO_VALUES, HVD_FLOAT64,
                        &values, err);
    }
    if (status == 0 && texts != NULL && values != NULL) { /* only rank 0 gets them */
        status = report_texts(check, nodes, texts, values, err);
    }
    check->library.free(texts);
    check->library.free(values);
    return status;
}

/* Measures the cores, links and GPUs of this rank for about as many seconds, together
 * with the other ranks. */
static int measure(const struct hvd_info_library *library,
                   const struct hvd_info_nodes *nodes, double seconds,
                   struct facts *facts, struct hvd_error *err)
{
    double *values = facts->values;
    struct hvd_info_gpu gpu;
    int status;

    hvd_info_compute(seconds / 8, values);
    status = hvd_info_links(library, nodes, seconds / 16, values, err);
    if (status != 0) {
        return status;
    }
    hvd_info_gpu_open(&gpu, hvd_info_links_local_number(nodes, library->rank()));
    hvd_info_gpu_measure(&gpu, seconds / 16, values);
    status = hvd_info_links_gpus(library, nodes, &gpu, facts->has_gpu, seconds / 16,
                                 values, err);
    hvd_info_gpu_close(&gpu);
    return status;
}

/* Reports, among the ranks of a job that has started, and measures first. */
static int check_job(const struct check *check, struct facts *facts,
                     struct hvd_error *err)
{
    const struct hvd_info_library *library = &check->library;
    double seconds = check->options->seconds > 0 ? check->options->seconds : SECONDS;
    int ranks = library->size();
    struct hvd_error cause = {0};
    const char **hosts = calloc((size_t)ranks, sizeof(*hosts));
    struct hvd_info_nodes nodes = {0};
    int status;

    if (hosts == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", ranks);
    }
    for (int rank = 0; rank < ranks; rank++) {
        hosts[rank] = library->host(rank);
    }
    status = hvd_info_nodes_init(&nodes, hosts, ranks, err);
    if (status == 0 && ranks > 1) { /* a lone rank has nobody to be compared with */
        status = measure(library, &nodes, seconds, facts, &cause);
        if (status != 0) { /* the ranks may not be able to gather any more */
            (void)report_own(check, facts, "links", cause.text, err);
            status = hvd_fail(err, status, "%s", cause.text);
        }
    }
    if (status == 0) {
        status = gather_and_report(check, &nodes, facts, err);
    }
    hvd_info_nodes_finish(&nodes);
    free(hosts);
    return status;
}

static int start_and_check(const struct check *check, struct facts *facts,
                           struct hvd_error *err)
{
    struct hvd_error cause = {0};
    int64_t start_ns = hvd_clock_ns();
    int status;

    if (facts->start_status != 0) {
        status = report_own(check, facts, "start", facts->start, err);
        return status == 0 ? hvd_fail(err, HVD_ERR_STATE, "hvd.init() would fail here")
                           : status;
    }
    if (check->library.init(&cause) != 0) {
        status = report_own(check, facts, "start", cause.text, err);
        return status == 0 ? hvd_fail(err, HVD_ERR_STATE,
                                      "hvd.init() would fail here: %s", cause.text)
                           : status;
    }
    facts->values[HVD_INFO_INIT_S] = (double)(hvd_clock_ns() - start_ns) / 1e9;
    status = check_job(check, facts, err);
    check->library.shutdown();
    return status;
}

int hvd_info_check(const struct hvd_info_check_options *options, hvd_info_lookup lookup,
                   struct hvd_error *err)
{
    struct check check = {.options = options, .lookup = lookup};
    struct facts facts = {0};
    int status = hvd_info_library_open(&check.library, err);

    if (status == 0) {
        status = hvd_info_thresholds_read(options->thresholds, &check.thresholds, err);
    }
    if (status == 0) {
        status = collect_facts(&check, &facts, err);
    }
    if (status == 0 && options->is_node) {
        status = report_own(&check, &facts, NULL, NULL, err);
    } else if (status == 0) {
        status = start_and_check(&check, &facts, err);
    }
    free(facts.text);
    return status;
}
