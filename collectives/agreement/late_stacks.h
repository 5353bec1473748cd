/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the ranks that a warning of the stall inspector names where they are:
 *
 *   rank 0     STACK down, with the number of a late rank; for the first few of them
 *   that rank  a SHOW_STACK event: its caller finds out where the main thread is
 *   that rank  STACK up, with a text; on rank 0, the text is a STACK event
 *
 * The driver of a late rank answers, because its main thread does not come. If no answer
 * comes in time, rank 0 says so. */
#ifndef HVD_LATE_STACKS_H
#define HVD_LATE_STACKS_H

#include <stdint.h>

struct hvd_agreement;
struct hvd_branch_message;
struct hvd_record;

enum {
    HVD_LATE_STACKS_MOST = 4, /* ranks to ask after one warning */
    HVD_LATE_STACKS_BYTES = 4096, /* of a text, with its null byte */
};

/* All zeros: no rank has been asked. */
struct hvd_late_stacks {
    /* on rank 0: the ranks that have not answered */
    int ranks[HVD_LATE_STACKS_MOST];
    int count;
    int64_t until_ns; /* the end of their time; 0: it has not begun */
};

/* On rank 0: asks these ranks, at most the first HVD_LATE_STACKS_MOST of them, unless
 * ranks that were asked earlier still have time to answer. */
int hvd_late_stacks_ask(struct hvd_agreement *agreement, const int *ranks, int count);

/* Handles the question, which all ranks get. */
int hvd_late_stacks_take_question(struct hvd_agreement *agreement, uint64_t rank);

/* Answers for this rank. text: "" if the rank does not show its stack. */
int hvd_late_stacks_tell(struct hvd_agreement *agreement, const char *text);

/* Passes an answer of a branch up or, on rank 0, queues the event. */
int hvd_late_stacks_take_answer(struct hvd_agreement *agreement,
                                struct hvd_branch_message *message,
                                const struct hvd_record *record);

/* On rank 0, if ranks have been asked: warns of those whose time is over. */
void hvd_late_stacks_look(struct hvd_agreement *agreement, int64_t now_ns);

/* Returns when hvd_late_stacks_look must be called; -1: never. */
int64_t hvd_late_stacks_deadline(const struct hvd_late_stacks *late, int64_t now_ns);

#endif
