/* SPDX-License-Identifier: Apache-2.0 */
/* A round: ranks of a static job that wait for each other, those of a list or all of the
 * launch. Pure: no clock, no sockets. The roster decides when members are told. */
#ifndef HVD_ROSTER_ROUND_H
#define HVD_ROSTER_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

/* More ranks than that are taken for a mistake. */
#define HVD_ROSTER_MOST_RANKS (1 << 20)

/* What a member says of itself when it joins; borrowed for the call, not trusted. */
struct hvd_roster_join {
    int slot; /* the number that the launcher gave the process: in a static job its rank */
    int count; /* of the ranks that begin together; 0: elastic, so the roster decides */
    /* Of a static job: */
    int index; /* among them */
    const int32_t *ranks; /* [count], of the launch; NULL: all, 0 ... count - 1 */
    int timeout_ms; /* how long the first waits for the last */
};

/* Why members cannot begin. */
struct hvd_roster_failure {
    struct hvd_error error;
    int culprit; /* the rank of the launch that has failed; -1: none is known */
};

struct hvd_roster_round {
    int count;
    int32_t *ranks; /* [count], of the launch; NULL: all */
    unsigned char *places; /* [count]: awaited, here or answered */
    int here;
    int awaited; /* with none here or awaited, the round is over */
    int timeout_ms;
    int64_t deadline_ms;
    struct hvd_roster_failure failure; /* why it cannot begin; status 0: it can */
};

/* Whether the rank has a place in a job of that size, the one in its list. */
bool hvd_roster_join_is_possible(const struct hvd_roster_join *join);

/* Of possible joins. NULL: no memory. */
struct hvd_roster_round *hvd_roster_round_create(const struct hvd_roster_join *join,
                                                 int64_t now_ms);
void hvd_roster_round_destroy(struct hvd_roster_round *round);

/* Whether the round is of the same list of ranks. */
bool hvd_roster_round_is_of(const struct hvd_roster_round *round,
                            const struct hvd_roster_join *join);

/* Puts the rank into its place. Fails, for this rank alone, with what it is to be told;
 * it has got its answer then. */
int hvd_roster_round_join(struct hvd_roster_round *round,
                          const struct hvd_roster_join *join,
                          struct hvd_roster_failure *failure);

/* Each fails the round, if it has not failed before: the rank in this place, which was
 * here, is gone; the process of this rank has ended, if it is awaited; the time is up. */
void hvd_roster_round_leave(struct hvd_roster_round *round, int index, const char *host);
void hvd_roster_round_end(struct hvd_roster_round *round, int rank, int wait_status);
void hvd_roster_round_expire(struct hvd_roster_round *round, int64_t now_ms);

/* All that are here get their answer. */
void hvd_roster_round_answer(struct hvd_roster_round *round);
bool hvd_roster_round_has_answered(const struct hvd_roster_round *round, int index);

#endif
