/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered calls (call of struct hvd_tensor): all ranks of a process set make them in one
 * order. If the calls of two ranks differ, neither ends, and all ranks are told so, with
 * both calls.
 *
 * Calls are matched by their names, in any order; their numbers are compared only when
 * one has waited for half a second, so they cost nothing while calls end soon.
 *
 *   any rank   CALL up: number and text of its first call of a set that has waited so long. A call that
 *              all have agreed on does not wait; one that a replay has started may do
 *   nodes      pass it on, unless another rank has said the same
 *   rank 0     two texts of one number: the ranks disagree.
 *              Two numbers: a rank waits in the higher one, so that its lower one has ended. If
 *              the lower one was the same call on all ranks, all have agreed on it by now: CALL down
 *              asks who still waits in a call before the higher one
 *   members    CALL up as an answer, if such a call waits here: certain, unless a replay has
 *              started it; then rank 0 ends the replay and asks again
 *   rank 0     a certain answer: the ranks disagree. The set is lost: set_aborts.h
 *
 * A program may hold back a call whose name is in use, and submit the next one. A rank
 * that has not submitted all numbers up to its last one has gaps: nothing follows from
 * what it has not. An unordered call leaves a gap, as another rank may have made another
 * one under its number. */
#ifndef HVD_CALL_ORDER_H
#define HVD_CALL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_agreement;
struct hvd_branch_message;
struct hvd_entry;
struct hvd_record;

/* A call that waits on some rank. */
struct hvd_waiting_call {
    uint64_t number; /* 0: there is none */
    int rank;
    bool has_gaps; /* the rank */
    char *text; /* the name, or of a call without a tensor what it is */
};

/* The numbered calls of one process set. */
struct hvd_call_line {
    uint64_t first; /* of this rank's calls; 0: there was none */
    uint64_t last;
    uint64_t count; /* of those that are ordered */
    uint64_t said; /* the last one that this rank has said to wait */
    const struct hvd_entry *oldest; /* that waits here; valid during one look */
    struct hvd_waiting_call highest; /* of the calls that this rank has heard of */
    bool asks_later; /* rank 0: when the replay has ended */
};

/* Zeroed: there are none. */
struct hvd_call_order {
    struct hvd_call_line *lines; /* [count] by set */
    int count;
    int64_t look_ns; /* there is nothing to do before */
};

/* This rank submits a numbered call. Returns 0 or HVD_ERR_NOMEM. */
int hvd_call_order_add(struct hvd_agreement *agreement, const struct hvd_entry *entry);

/* It is look_ns, and numbered calls are under way: says so if one waits too long; sets
 * look_ns anew. */
int hvd_call_order_look(struct hvd_agreement *agreement, int64_t now_ns);

/* A report of a branch, rank 0's question, the end of a replay. The records have been
 * taken already. */
int hvd_call_order_take(struct hvd_agreement *agreement,
                        struct hvd_branch_message *message,
                        const struct hvd_record *record);
int hvd_call_order_answer(struct hvd_agreement *agreement, int set, uint64_t number);
int hvd_call_order_after_replay(struct hvd_agreement *agreement, int set);

/* The set is removed: another may get its number. */
void hvd_call_order_forget(struct hvd_call_order *order, int set);
void hvd_call_order_finish(struct hvd_call_order *order);

#endif
