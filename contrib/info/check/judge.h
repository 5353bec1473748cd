/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the numbers of all ranks with thresholds and medians. Pure. */
#ifndef HVD_INFO_JUDGE_H
#define HVD_INFO_JUDGE_H

#include "contrib/info/check/fold.h"
#include "contrib/info/check/thresholds.h"
#include "contrib/info/check/values.h"

enum hvd_info_level {
    HVD_INFO_GREEN,
    HVD_INFO_YELLOW,
    HVD_INFO_RED,
};

/* A check without faults, or one fault of a check. */
struct hvd_info_finding {
    enum hvd_info_level level;
    const char *check;
    char *nodes; /* "n[1-4]", "n1 to n2", "n1 to all others" */
    double value; /* the worst one; NAN: the check compares texts */
    double median;
    double limit; /* NAN: none */
    const char *unit;
    const char *advice; /* "" if green */
};

struct hvd_info_findings {
    int count;
    int most;
    struct hvd_info_finding *items;
};

/* Adds the findings about numbers: those of rank i are values[i * HVD_INFO_VALUES]. Its
 * facts, texts[i], have the model of its GPU; they may be NULL if no GPU was measured. */
int hvd_info_judge(const struct hvd_info_nodes *nodes, const double *values,
                   const char *const *texts, const struct hvd_info_thresholds *thresholds,
                   struct hvd_info_findings *findings, struct hvd_error *err);

/* Adds a warning for each subject, such as "UCX", whose fact differs between nodes, with
 * the nodes that are not as most nodes. */
int hvd_info_judge_texts(const struct hvd_info_nodes *nodes, const char *const *texts,
                         struct hvd_info_findings *findings, struct hvd_error *err);

/* Adds a finding without a number. `ranks` are sorted. */
int hvd_info_findings_add(const struct hvd_info_nodes *nodes, const int *ranks, int count,
                          const struct hvd_info_finding *finding,
                          struct hvd_info_findings *findings, struct hvd_error *err);

void hvd_info_findings_finish(struct hvd_info_findings *findings);

#endif
