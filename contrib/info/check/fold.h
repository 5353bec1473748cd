/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what the ranks of a job have found on their nodes: one line for each fact, with
 * the nodes on which it holds. Pure. */
#ifndef HVD_INFO_FOLD_H
#define HVD_INFO_FOLD_H

#include <stdio.h>

#include "gpu_binding/base/error.h"

/* The nodes of a job. */
struct hvd_info_nodes {
    int ranks;
    int *node_of; /* [ranks] the number of the rank's node */
    int count;
    const char **names; /* [count] sorted; borrowed */
    int *ranks_of; /* [count] how many ranks the node has */
};

/* Numbers the nodes of ranks on these hosts, of which each rank names one. */
int hvd_info_nodes_init(struct hvd_info_nodes *nodes, const char *const *hosts, int ranks,
                        struct hvd_error *err);

/* Prints the nodes of these ranks, which are sorted: "n[1-4]". If other ranks run on
 * these nodes, too, the ranks follow: "n[1-4] (ranks 0,8-9)". */
int hvd_info_nodes_print(const struct hvd_info_nodes *nodes, const int *ranks, int count,
                         FILE *out, struct hvd_error *err);

/* Prints the facts in the texts of all ranks, each as "NODES: FACT". A fact is a line,
 * with the following lines that begin with a space. Facts about one subject, the words
 * before the colon, come one after the other, in the order of the lowest ranks. */
int hvd_info_fold_print(const struct hvd_info_nodes *nodes, const char *const *texts,
                        FILE *out, struct hvd_error *err);

/* Frees the arrays; a zeroed record is allowed. */
void hvd_info_nodes_finish(struct hvd_info_nodes *nodes);

#endif
