/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in Slurm's texts, alone and one per node ("4(x2),3"), and what follows. Pure. */
#ifndef HVD_SPANK_COUNTS_H
#define HVD_SPANK_COUNTS_H

#include <stdbool.h>

/* The whole text as a number from 1 to 100,000, which is more than any cluster has; else 0. */
int hvd_number_of(const char *text);

/* A run of nodes with the same number. */
struct hvd_count_run {
    int value;
    int nodes;
};

/* Reads the run at *cursor and moves *cursor behind it. False at the end of the text and
 * where the text is not of this form; then **cursor is '\0' only at a proper end. */
bool hvd_count_next(const char **cursor, struct hvd_count_run *run);

/* The least number in text, or 0 when text is NULL or not of this form. */
int hvd_count_least(const char *text);

/* Where a task stands among the nodes of its step. */
struct hvd_seat {
    int nodes; /* of the step */
    int node; /* its own node's place among them */
    int tasks; /* of the whole step */
    int local_rank;
    int local_size;
};

/* From the tasks per node: the index of the task's node among the nodes that have its local
 * rank, and their number. False, and the outputs untouched, when the text does not agree
 * with the seat (steps of several components, hand-made layouts): then nobody on the node
 * can know. */
bool hvd_seat_cross(const struct hvd_seat *seat, const char *tasks_per_node, int *rank,
                    int *size);

#endif
