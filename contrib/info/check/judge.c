/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/info/check/pairs.h"

enum scope {
    SCOPE_NODE, /* the first rank of each node speaks for it */
    SCOPE_RANK,
    SCOPE_LINK, /* one value for each round */
};

static const struct rule {
    const char *name; /* also in thresholds.conf */
    enum hvd_info_value value;
    enum scope scope;
    bool is_cost; /* less is better */
    const char *unit;
    const char *advice;
} rules[] = {
    {"cpus", HVD_INFO_CORES, SCOPE_NODE, false, "",
     "use nodes of one kind, or see whether cpus are offline"},
    {"memory", HVD_INFO_MEMORY_GIB, SCOPE_NODE, false, "GiB",
     "look for a failed memory module"},
    {"shm", HVD_INFO_SHM_MIB, SCOPE_NODE, false, "MiB free",
     "enlarge /dev/shm, or remove old files from it"},
    {"memlock", HVD_INFO_MEMLOCK_MIB, SCOPE_NODE, false, "MiB",
     "set LimitMEMLOCK=infinity for slurmd"},
    {"binding", HVD_INFO_CPUS_LOST, SCOPE_RANK, true, "cpus lost",
     "see which program changes the binding after srun"},
    {"clock", HVD_INFO_CLOCK_PERCENT, SCOPE_RANK, false, "% of the highest frequency",
     "check the governor, the cooling and power limits"},
    {"compute", HVD_INFO_GFLOPS, SCOPE_RANK, false, "GFLOP/s",
     "check the cpu clock, and look for other programs on these cores"},
    {"copy", HVD_INFO_COPY_GBS, SCOPE_RANK, false, "GB/s",
     "check the memory modules, and look for other programs on the node"},
    {"local", HVD_INFO_LOCAL_GBS, SCOPE_RANK, false, "GB/s",
     "check the binding of the ranks of the node"},
    {"gpu_memory", HVD_INFO_GPU_USED_MIB, SCOPE_RANK, true, "MiB of GPU memory in use",
     "look for processes that an earlier job has left on the GPU"},
    {"gpu_copy", HVD_INFO_GPU_COPY_GBS, SCOPE_RANK, false, "GB/s",
     "see whether PCIe has lost lanes or speed (nvidia-smi -q), and check the binding"},
    {"gpu_pair", HVD_INFO_GPU_PAIR_GBS, SCOPE_RANK, false, "GB/s",
     "check NVLink (nvidia-smi nvlink --status) and what NCCL uses (NCCL_DEBUG=INFO)"},
    {"gpu_allreduce", HVD_INFO_GPU_ALLREDUCE_GBS, SCOPE_RANK, false, "GB/s",
     "look at the links"},
    {"link", HVD_INFO_LINK_GBS, SCOPE_LINK, false, "GB/s",
     "check cable, card, MTU and cpu clock"},
    {"allreduce", HVD_INFO_ALLREDUCE_MS, SCOPE_RANK, true, "ms for 4 MiB",
     "look at the links"},
    {"init", HVD_INFO_INIT_S, SCOPE_RANK, true, "s",
     "see whether libraries come from a slow file system"},
    {"latency", HVD_INFO_LINK_US, SCOPE_LINK, true, "us",
     "check cable, card and interrupts"},
};

static const char *const subjects[] = {
    "hvd",       "kernel",        "Slurm",   "Python", "cpu governor",
    "GPU model", "CUDA driver",   "NCCL",    "UCX",    "UCX settings",
    "start",     "between nodes", "kernels",
};

/* A value, and where it was found. */
struct sample {
    double value;
    int rank;
    int peer; /* -1, or the first rank of the node at the other end */
};

/* The slow links of a node are one finding if they are all that it has. */
enum bundle {
    BUNDLE_BOTH,
    BUNDLE_SENT,
    BUNDLE_RECEIVED,
    BUNDLES,
};

struct node_links {
    int sent, slow_sent;
    int received, slow_received;
    bool is_told[BUNDLES];
};

/* A check that is under way. */
struct judge {
    const struct hvd_info_nodes *nodes;
    const double *values;
    const char *const *texts;
    const struct hvd_info_thresholds *thresholds;
    const int *firsts; /* the first rank of each node */
    struct sample *samples;
    int count;
    struct node_links *links; /* by node */
    bool *is_named; /* by rank */
    int *ranks;
    struct hvd_info_findings *findings;
};

int hvd_info_findings_add(const struct hvd_info_nodes *nodes, const int *ranks, int count,
                          const struct hvd_info_finding *finding,
                          struct hvd_info_findings *findings, struct hvd_error *err)
{
    struct hvd_info_finding *item;
    size_t bytes;
    FILE *out;
    int status = 0;

    if (findings->count == findings->most) {
        int most = 2 * findings->most + 16;
        void *items = realloc(findings->items, (size_t)most * sizeof(*findings->items));

        if (items == NULL) {
            return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d findings", most);
        }
        findings->items = items;
        findings->most = most;
    }
    item = &findings->items[findings->count];
    *item = *finding;
    item->nodes = NULL;
    out = open_memstream(&item->nodes, &bytes);
    if (out == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the names of nodes");
    }
    findings->count++;
    if (finding->nodes != NULL) {
        fputs(finding->nodes, out);
    } else {
        status = hvd_info_nodes_print(nodes, ranks, count, out, err);
    }
    fclose(out);
    return status;
}

void hvd_info_findings_finish(struct hvd_info_findings *findings)
{
    for (int i = 0; i < findings->count; i++) {
        free(findings->items[i].nodes);
    }
    free(findings->items);
    *findings = (struct hvd_info_findings){0};
}

static double value_of(const struct judge *judge, int rank, int value)
{
    return judge->values[(size_t)rank * HVD_INFO_VALUES + (size_t)value];
}

static void add_sample(struct judge *judge, int rank, int peer, int value)
{
    double found = value_of(judge, rank, value);

    if (!isnan(found)) {
        judge->samples[judge->count++] = (struct sample){found, rank, peer};
    }
}

static void take_samples(struct judge *judge, const struct rule *rule)
{
    const struct hvd_info_nodes *nodes = judge->nodes;

    judge->count = 0;
    for (int rank = 0; rank < nodes->ranks && rule->scope == SCOPE_RANK; rank++) {
        add_sample(judge, rank, -1, rule->value);
    }
    for (int node = 0; node < nodes->count && rule->scope == SCOPE_NODE; node++) {
        add_sample(judge, judge->firsts[node], -1, rule->value);
    }
    for (int node = 0; node < nodes->count && rule->scope == SCOPE_LINK; node++) {
        for (int round = 0; round < HVD_INFO_ROUNDS; round++) {
            int partner = hvd_info_pairs_partner(node, nodes->count, round);

            if (partner >= 0) {
                add_sample(judge, judge->firsts[node], judge->firsts[partner],
                           (int)rule->value + round);
            }
        }
    }
}

static int compare_samples(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;

    return a->value < b->value ? -1 : a->value > b->value ? 1 : a->rank - b->rank;
}

/* The better one of the two in the middle, so that of two links the slower one can be
 * named. */
static double find_median(const struct judge *judge, bool is_cost)
{
    return judge->samples[is_cost ? (judge->count - 1) / 2 : judge->count / 2].value;
}

/* Finds the limits for the rate of the network of a node. */
static const struct hvd_info_threshold *rate_limits(const struct judge *judge, int rank)
{
    double rdma = value_of(judge, rank, HVD_INFO_RDMA_GBITS);
    double ethernet = value_of(judge, rank, HVD_INFO_ETHERNET_MBITS);
    char name[64] = "";

    if (!isnan(rdma)) {
        snprintf(name, sizeof(name), "link_rdma_%.0f", rdma);
    } else if (!isnan(ethernet)) {
        snprintf(name, sizeof(name), "link_ethernet_%.0f", ethernet);
    }
    return hvd_info_thresholds_find(judge->thresholds, name);
}

/* Returns the first fact about a subject, up to the end of its line; "" if there is
 * none. */
static const char *find_fact(const char *text, const char *subject, size_t *length)
{
    size_t bytes = strlen(subject);

    while (*text != '\0') {
        *length = strcspn(text, "\n");
        if (strncmp(text, subject, bytes) == 0 && text[bytes] == ':') {
            return text;
        }
        text += *length + (text[*length] == '\n');
    }
    *length = 0;
    return "";
}

/* Finds the limits for NVLink between GPUs of the rank's model. */
static const struct hvd_info_threshold *nvlink_limits(const struct judge *judge, int rank)
{
    static const char before[] = "GPU model: ";
    size_t length;
    const char *fact = find_fact(judge->texts[rank], "GPU model", &length);

    /* a slice of a GPU has no NVLink */
    return length >= sizeof(before) && memmem(fact, length, " MIG ", 5) == NULL
               ? hvd_info_thresholds_match(judge->thresholds, "gpu_pair_",
                                           fact + sizeof(before) - 1)
               : NULL;
}

static bool is_beyond(const struct rule *rule, const struct hvd_info_limit *limit,
                      double value, double median, double *bound)
{
    double factor = limit->is_relative ? median : 1;

    if (isnan(limit->value)) {
        return false;
    }
    *bound = limit->value * factor;
    return rule->is_cost ? value > *bound : value < *bound;
}

/* Compares a sample with one threshold, which may be NULL, and raises the level. */
static void compare_with(const struct hvd_info_threshold *threshold,
                         const struct rule *rule, const struct sample *sample,
                         struct hvd_info_finding *finding)
{
    double bound;

    if (threshold == NULL) {
        return;
    }
    if (is_beyond(rule, &threshold->red, sample->value, finding->median, &bound)) {
        finding->level = HVD_INFO_RED;
        finding->limit = bound;
    } else if (is_beyond(rule, &threshold->yellow, sample->value, finding->median,
                         &bound) &&
               finding->level == HVD_INFO_GREEN) {
        finding->level = HVD_INFO_YELLOW;
        finding->limit = bound;
    }
}

static struct hvd_info_finding judge_sample(const struct judge *judge,
                                            const struct rule *rule,
                                            const struct sample *sample, double median)
{
    struct hvd_info_finding finding = {.check = rule->name,
                                       .value = sample->value,
                                       .median = median,
                                       .limit = NAN,
                                       .unit = rule->unit,
                                       .advice = ""};

    compare_with(hvd_info_thresholds_find(judge->thresholds, rule->name), rule, sample,
                 &finding);
    if (rule->value == HVD_INFO_LINK_GBS) {
        compare_with(rate_limits(judge, sample->rank), rule, sample, &finding);
    } else if (rule->value == HVD_INFO_GPU_PAIR_GBS) {
        compare_with(nvlink_limits(judge, sample->rank), rule, sample, &finding);
    }
    if (finding.level != HVD_INFO_GREEN) {
        finding.advice = rule->advice;
    }
    return finding;
}

/* Counts the links of each node, and those of them that are not green. */
static void count_links(struct judge *judge, const struct rule *rule, double median)
{
    memset(judge->links, 0, (size_t)judge->nodes->count * sizeof(*judge->links));
    for (int i = 0; i < judge->count; i++) {
        const struct sample *sample = &judge->samples[i];
        struct node_links *sender = &judge->links[judge->nodes->node_of[sample->rank]];
        struct node_links *receiver = &judge->links[judge->nodes->node_of[sample->peer]];
        bool is_slow = judge_sample(judge, rule, sample, median).level != HVD_INFO_GREEN;

        sender->sent++;
        sender->slow_sent += is_slow;
        receiver->received++;
        receiver->slow_received += is_slow;
    }
}

static bool has_bundle(const struct node_links *links, enum bundle bundle)
{
    const bool sends_slowly = links->sent > 1 && links->slow_sent == links->sent;
    const bool receives_slowly =
        links->received > 1 && links->slow_received == links->received;

    switch (bundle) {
    case BUNDLE_BOTH:
        return sends_slowly && receives_slowly;
    case BUNDLE_SENT:
        return sends_slowly;
    case BUNDLE_RECEIVED:
    case BUNDLES:
        break;
    }
    return receives_slowly;
}

/* Finds the bundle of a slow link and its node. Returns BUNDLES if it has none. */
static enum bundle find_bundle(const struct judge *judge, int sender, int receiver,
                               int *node)
{
    for (int bundle = BUNDLE_BOTH; bundle < BUNDLES; bundle++) {
        if (bundle != BUNDLE_RECEIVED &&
            has_bundle(&judge->links[sender], (enum bundle)bundle)) {
            *node = sender;
            return (enum bundle)bundle;
        }
        if (bundle != BUNDLE_SENT &&
            has_bundle(&judge->links[receiver], (enum bundle)bundle)) {
            *node = receiver;
            return (enum bundle)bundle;
        }
    }
    return BUNDLES;
}

/* Adds a slow link, or its bundle if that has not been added before. */
static int add_link(struct judge *judge, const struct sample *sample,
                    struct hvd_info_finding finding, struct hvd_error *err)
{
    const struct hvd_info_nodes *nodes = judge->nodes;
    const int sender = nodes->node_of[sample->rank];
    const int receiver = nodes->node_of[sample->peer];
    const char *from = nodes->names[sender], *to = nodes->names[receiver];
    int node;
    enum bundle bundle = find_bundle(judge, sender, receiver, &node);
    char link[600];

    if (bundle != BUNDLES && judge->links[node].is_told[bundle]) {
        return 0;
    }
    if (bundle != BUNDLES) {
        judge->links[node].is_told[bundle] = true;
    }
    if (bundle == BUNDLE_BOTH) {
        snprintf(link, sizeof(link), "%.250s", nodes->names[node]);
    } else {
        snprintf(link, sizeof(link), "%.250s to %.250s",
                 bundle == BUNDLE_RECEIVED ? "all others" : from,
                 bundle == BUNDLE_SENT ? "all others" : to);
    }
    finding.nodes = link;
    return hvd_info_findings_add(nodes, NULL, 0, &finding, judge->findings, err);
}

/* Adds one finding for all samples of a level; for links, one each or one for a bundle.
 * Samples are sorted by their values. */
static int add_level(struct judge *judge, const struct rule *rule, double median,
                     enum hvd_info_level level, struct hvd_error *err)
{
    const struct hvd_info_nodes *nodes = judge->nodes;
    struct hvd_info_finding worst = {0};
    int count = 0;
    int status = 0;

    memset(judge->is_named, 0, (size_t)nodes->ranks * sizeof(*judge->is_named));
    for (int i = 0; i < judge->count && status == 0; i++) {
        const struct sample *sample =
            &judge->samples[rule->is_cost ? judge->count - 1 - i : i];
        struct hvd_info_finding finding = judge_sample(judge, rule, sample, median);

        if (finding.level != level) {
            continue;
        }
        if (rule->scope == SCOPE_LINK && level != HVD_INFO_GREEN) {
            status = add_link(judge, sample, finding, err);
            continue;
        }
        if (count == 0) {
            worst = finding;
        }
        judge->is_named[sample->rank] = true;
        count++;
    }
    if (count == 0 || status != 0) {
        return status;
    }
    count = 0;
    for (int rank = 0; rank < nodes->ranks; rank++) {
        /* unless ranks are compared, all ranks of a node share its fault */
        if (judge->is_named[rule->scope == SCOPE_RANK
                                ? rank
                                : judge->firsts[nodes->node_of[rank]]]) {
            judge->ranks[count++] = rank;
        }
    }
    return hvd_info_findings_add(nodes, judge->ranks, count, &worst, judge->findings,
                                 err);
}

static int apply_rule(struct judge *judge, const struct rule *rule, struct hvd_error *err)
{
    int before = judge->findings->count;
    double median;
    int status;

    take_samples(judge, rule);
    if (judge->count == 0) {
        return 0;
    }
    qsort(judge->samples, (size_t)judge->count, sizeof(*judge->samples), compare_samples);
    median = find_median(judge, rule->is_cost);
    if (rule->scope == SCOPE_LINK) {
        count_links(judge, rule, median);
    }
    status = add_level(judge, rule, median, HVD_INFO_RED, err);
    if (status == 0) {
        status = add_level(judge, rule, median, HVD_INFO_YELLOW, err);
    }
    return status == 0 && judge->findings->count == before
               ? add_level(judge, rule, median, HVD_INFO_GREEN, err)
               : status;
}

static int *find_firsts(const struct hvd_info_nodes *nodes)
{
    int *firsts = calloc((size_t)nodes->count, sizeof(*firsts));

    for (int rank = nodes->ranks - 1; rank >= 0 && firsts != NULL; rank--) {
        firsts[nodes->node_of[rank]] = rank;
    }
    return firsts;
}

int hvd_info_judge(const struct hvd_info_nodes *nodes, const double *values,
                   const char *const *texts, const struct hvd_info_thresholds *thresholds,
                   struct hvd_info_findings *findings, struct hvd_error *err)
{
    size_t room = (size_t)nodes->ranks * HVD_INFO_ROUNDS;
    int *firsts = find_firsts(nodes);
    struct judge judge = {.nodes = nodes,
                          .values = values,
                          .texts = texts,
                          .thresholds = thresholds,
                          .firsts = firsts,
                          .samples = calloc(room, sizeof(*judge.samples)),
                          .links = calloc((size_t)nodes->count, sizeof(*judge.links)),
                          .is_named =
                              calloc((size_t)nodes->ranks, sizeof(*judge.is_named)),
                          .ranks = calloc((size_t)nodes->ranks, sizeof(*judge.ranks)),
                          .findings = findings};
    int status = 0;

    if (firsts == NULL || judge.samples == NULL || judge.links == NULL ||
        judge.is_named == NULL || judge.ranks == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for %zu values", room);
    } else {
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && status == 0; i++) {
            status = apply_rule(&judge, &rules[i], err);
        }
    }
    free(firsts);
    free(judge.samples);
    free(judge.links);
    free(judge.is_named);
    free(judge.ranks);
    return status;
}

/* --- texts --- */

static bool has_fact(const char *text, const char *subject, const char *fact,
                     size_t length)
{
    size_t found;
    const char *own = find_fact(text, subject, &found);

    return found == length && memcmp(own, fact, length) == 0;
}

/* Finds the fact that most ranks share: the candidate that outlives all pairs of
 * different facts. */
static const char *find_common(const char *const *texts, int ranks, const char *subject,
                               size_t *length)
{
    const char *common = "";
    int lead = 0;

    *length = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (lead == 0) {
            common = find_fact(texts[rank], subject, length);
        }
        lead += has_fact(texts[rank], subject, common, *length) ? 1 : -1;
    }
    return common;
}

int hvd_info_judge_texts(const struct hvd_info_nodes *nodes, const char *const *texts,
                         struct hvd_info_findings *findings, struct hvd_error *err)
{
    int *ranks = calloc((size_t)nodes->ranks, sizeof(*ranks));
    int status = 0;

    if (ranks == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", nodes->ranks);
    }
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]) && status == 0; i++) {
        const struct hvd_info_finding finding = {
            .level = HVD_INFO_YELLOW,
            .check = subjects[i],
            .value = NAN,
            .median = NAN,
            .limit = NAN,
            .unit = "",
            .advice = "is not as on most nodes: install and set the same on all"};
        size_t length;
        const char *common = find_common(texts, nodes->ranks, subjects[i], &length);
        int count = 0;

        for (int rank = 0; rank < nodes->ranks; rank++) {
            if (!has_fact(texts[rank], subjects[i], common, length)) {
                ranks[count++] = rank;
            }
        }
        if (count > 0) {
            status = hvd_info_findings_add(nodes, ranks, count, &finding, findings, err);
        }
    }
    free(ranks);
    return status;
}
