/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered calls (`call` of struct hvd_tensor): all ranks of a process set make them in
 * one order. If the calls of two ranks differ, neither call ends, and all ranks get an
 * error that names both.
 *
 * Calls are matched by their names, in any order. Their numbers are compared only when a
 * call has waited for half a second, so they cost nothing as long as calls end soon.
 *
 *   any rank   CALL up: number and text of its first call of a set that has waited that
 *              long. A call that all ranks have agreed on does not count as waiting,
 *              unless a replay has started it.
 *   nodes      of the tree pass it on, unless another rank has reported the same call.
 *   rank 0     If one number has two texts, the ranks disagree.
 *              A rank that waits in a call has ended its lower calls. If all ranks made
 *              the same lower calls, none of them waits in one any more. To check that,
 *              rank 0 sends CALL down: which members still wait in a lower call?
 *   members    CALL up as an answer, if such a call waits here. The answer is certain,
 *              unless a replay has started the call; then rank 0 ends the replay and asks
 *              again.
 *   rank 0     After a certain answer, the ranks disagree. The set is aborted
 *              (set_aborts.h).
 *
 * A program may hold back a call whose name is in use, and submit the next one first. A
 * rank that has not submitted all numbers up to its highest one has gaps. Rank 0 draws no
 * conclusion from calls that such a rank has not made. An unordered call leaves a gap,
 * too, because another rank may have made a different call under its number. */
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
    bool has_gaps; /* that rank has gaps */
    char *text; /* the call's name; for a call without a tensor, its description */
};

/* The numbered calls of one process set. */
struct hvd_call_line {
    uint64_t first; /* number of this rank's first call; 0: none yet */
    uint64_t last;
    uint64_t count; /* how many ordered calls this rank has made */
    uint64_t said; /* number of the last waiting call that this rank has reported */
    /* oldest waiting call of this rank; valid only while look or answer runs */
    const struct hvd_entry *oldest;
    struct hvd_waiting_call highest; /* the highest call that this rank has heard of */
    bool asks_later; /* rank 0: ask the members when the replay has ended */
};

/* The numbered calls of all process sets; all zeros if there are none. */
struct hvd_call_order {
    struct hvd_call_line *lines; /* [count] indexed by the number of the set */
    int count;
    int64_t look_ns; /* hvd_call_order_look has nothing to do before this time */
};

/* Adds a numbered call that this rank submits. Returns 0 or HVD_ERR_NOMEM. */
int hvd_call_order_add(struct hvd_agreement *agreement, const struct hvd_entry *entry);

/* To be called at look_ns while numbered calls are in flight: reports the calls that have
 * waited too long, and sets look_ns anew. */
int hvd_call_order_look(struct hvd_agreement *agreement, int64_t now_ns);

/* Handle a branch's report, rank 0's question, and the end of a replay. The caller has
 * already read the record. */
int hvd_call_order_take(struct hvd_agreement *agreement,
                        struct hvd_branch_message *message,
                        const struct hvd_record *record);
int hvd_call_order_answer(struct hvd_agreement *agreement, int set, uint64_t number);
int hvd_call_order_after_replay(struct hvd_agreement *agreement, int set);

/* Forgets the calls of a set that is removed, because another set may get its number. */
void hvd_call_order_forget(struct hvd_call_order *order, int set);
void hvd_call_order_finish(struct hvd_call_order *order);

#endif
