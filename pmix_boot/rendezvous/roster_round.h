/* SPDX-License-Identifier: Apache-2.0 */
/* A round: ranks of a static job that wait for each other, either those of a list or all
 * of the launch. Pure: no clock, no sockets. The roster decides when members get their
 * answers. */
#ifndef HVD_ROSTER_ROUND_H
#define HVD_ROSTER_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/rendezvous/missing.h"

/* More ranks than this are taken for a mistake. */
#define HVD_ROSTER_MOST_RANKS (1 << 20)

enum {
    /* How long a rank whose connection was reset may take to join again, as on a busy or
     * swapping node. If its process has ended, the launcher reports that sooner. */
    HVD_ROSTER_RETURN_MS = 30000,
};

/* A member's data when it joins; borrowed for the call, not trusted. */
struct hvd_roster_join {
    /* the number that the launcher gave the process: its rank in a static job */
    int slot;
    /* number of ranks that begin together; 0 in an elastic job, where the roster
     * decides */
    int count;
    /* Static jobs only: */
    int index; /* index of this rank in ranks */
    const int32_t *ranks; /* [count] ranks of the launch; NULL: all, 0 ... count - 1 */
    int timeout_ms; /* how long the first rank waits for the last one */
};

/* The reason why members cannot begin. */
struct hvd_roster_failure {
    struct hvd_error error;
    int culprit; /* the rank of the launch that has failed; -1 if none is known */
};

struct hvd_roster_round {
    int count;
    int32_t *ranks; /* [count] ranks of the launch; NULL: all */
    unsigned char *places; /* [count] whether each rank is awaited, here or answered */
    int here;
    int awaited; /* the round is over when no rank is here or awaited */
    int timeout_ms;
    int64_t deadline_ms;
    /* index of an awaited rank that was here before its connection was reset, -1: none;
     * when it has to be back; and what the others are told if it is not */
    int lost;
    int64_t return_ms;
    struct hvd_roster_failure loss;
    /* why the round cannot begin; status 0 if it can */
    struct hvd_roster_failure failure;
};

/* Returns whether the data are consistent: the index is below the count, and the list has
 * this rank at the index. */
bool hvd_roster_join_is_possible(const struct hvd_roster_join *join);

/* Creates the round of a join that is possible. NULL if memory runs out. */
struct hvd_roster_round *hvd_roster_round_create(const struct hvd_roster_join *join,
                                                 int64_t now_ms);
void hvd_roster_round_destroy(struct hvd_roster_round *round);

/* Returns whether the round has the same list of ranks as the join. */
bool hvd_roster_round_is_of(const struct hvd_roster_round *round,
                            const struct hvd_roster_join *join);

/* Enters the rank. A failure is the answer to this rank alone; if the round itself has
 * failed, the rank counts as answered. */
int hvd_roster_round_join(struct hvd_roster_round *round,
                          const struct hvd_roster_join *join,
                          struct hvd_roster_failure *failure);

/* The connection of the rank with this index, which was here, was reset: awaits the rank
 * again, for HVD_ROSTER_RETURN_MS. Returns false if the round awaits another such rank
 * already, or has failed. */
bool hvd_roster_round_lose(struct hvd_roster_round *round, int index, const char *host,
                           int64_t now_ms);

/* Each of these fails the round, unless it has failed already. leave: the rank with this
 * index was here and is gone. end: the process of an awaited rank has ended. expire: the
 * time limit has passed; the error names the hosts that are known. */
void hvd_roster_round_leave(struct hvd_roster_round *round, int index, const char *host);
void hvd_roster_round_end(struct hvd_roster_round *round,
                          const struct hvd_missing_end *end);
void hvd_roster_round_expire(struct hvd_roster_round *round, int64_t now_ms,
                             const struct hvd_missing_hosts *hosts);

/* Marks all ranks that are here as answered. */
void hvd_roster_round_answer(struct hvd_roster_round *round);
bool hvd_roster_round_has_answered(const struct hvd_roster_round *round, int index);

#endif
