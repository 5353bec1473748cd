/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a job, and which of them begin together as ranks. Pure: no clock, no
 * sockets.
 *
 * A member is a process that is connected. It joins, that is, it asks to begin.
 *
 * --- A static job ---
 *
 * Each rank names the ranks with which it begins: all of the launch, or a list. These
 * ranks make a round (roster_round.h):
 *   all of them wait           each gets its rank, its place in the list
 *   one that waited is gone,   those that wait get an error that names it, and so does
 *   another has ended, or      each of the others when it joins
 *   the time is up
 * A rank whose connection was reset has HVD_ROSTER_RETURN_MS to join again before it
 * counts as gone.
 * A rank that has its answer and joins again begins a new round.
 *
 * --- An elastic job ---
 *
 * A member joins when it starts, when it has lost a peer, and at its next commit after it
 * was told that ranks come or leave.
 *
 *   connects ---> idle -joins--> waiting --a generation forms--> running ---> gone
 *                   ^             |   ^                             |
 *                   +--dismissed, +   +-----------joins-------------+
 *                      refused
 *
 *   gone        its connection has closed; or others have waited for it for timeout_ms
 *               (DROP): it is stopped or hangs, and hvdrun, or the service under srun,
 *               kills it
 *   dismissed   its slot was removed, or the job is done: the process is not needed
 *   refused     the job cannot go on: too few members, too many generations, or no
 *               member has the state
 *
 * As soon as no member runs, the waiting ones form the next generation:
 *   the first     np members wait (fewer, if some died), or start_ms passed and min wait;
 *                 one whose connection was reset has HVD_ROSTER_RETURN_MS to join again
 *   later ones    min members wait
 * Members that have the training's state get the first ranks, in their old order; new
 * ones follow in the order of their slots. So rank 0 can give its state to all.
 *
 * Members beyond `max` are spares: they stay waiting, and the running members are not
 * told of them. When a running member is gone, the next generation takes a spare in its
 * place.
 *
 * The job is done when the first of its ranks succeeds. The running ones have timeout_ms
 * to end or to join. When none runs, the launcher ends the remaining processes, which
 * have not joined yet (OVER). */
#ifndef HVD_ROSTER_H
#define HVD_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/rendezvous/roster_round.h"

struct hvd_roster_rules {
    bool is_elastic;
    /* number of members that the launcher starts; 0 if a static job does not know it
     * yet */
    int np;
    /* for elastic jobs */
    int min;
    int max; /* further members are spares: they wait until others are gone */
    int start_ms;
    int timeout_ms; /* how long members wait if a generation cannot begin */
    int reset_limit; /* generations after the first; -1: any number */
};

enum hvd_member_state {
    HVD_MEMBER_IDLE, /* neither waits for an answer nor runs in a generation */
    HVD_MEMBER_WAITING,
    HVD_MEMBER_RUNNING, /* elastic jobs only */
};

struct hvd_member {
    int id;
    int slot;
    enum hvd_member_state state;
    /* round in which the member waits; NULL in an elastic job */
    struct hvd_roster_round *round;
    int rank; /* rank in the round, or in the last generation; -1: in none */
    bool has_state;
    int64_t arrived_ms; /* joined for the first time; -1: has not joined */
};

struct hvd_roster_slot {
    int number;
    struct hvd_missing_end end; /* of a slot whose process has ended */
    int64_t return_ms; /* of a lost slot: when it has to be back */
};

/* Zeroed slots are empty. */
struct hvd_roster_slots {
    struct hvd_roster_slot *all; /* [count] */
    int count;
};

/* Changes of the ranks, a bit field with Horovod's numbers. */
enum hvd_roster_change {
    HVD_ROSTER_REMOVED = 1,
    HVD_ROSTER_ADDED = 2,
};

struct hvd_roster {
    struct hvd_roster_rules rules;
    struct hvd_member *members;
    int count;
    int capacity;
    int *ids; /* [capacity], members of a step */
    /* Slots whose processes have ended for good, as the launcher has reported; in the
     * order of their ends. */
    struct hvd_roster_slots ended;
    /* used by static jobs */
    struct hvd_missing_hosts hosts;
    struct hvd_roster_round **rounds;
    int round_count;
    /* used by elastic jobs */
    int generation; /* the last one; 0: none yet */
    int size; /* of the last generation */
    /* before the first generation: members that left, and slots of members whose
     * connections were reset and that have not joined again */
    int gone;
    struct hvd_roster_slots lost;
    int expected; /* members that the launcher expects in the first generation */
    struct hvd_roster_slots leaving; /* removed by the launcher */
    bool had_state; /* some member has had the state of the training */
    bool is_done;
    bool is_over_told; /* the launcher was told to end the rest */
    bool is_short_told; /* the log says that more members are needed */
    unsigned told; /* changes of which the running members were told */
    /* since when members wait for others; -1: none waits */
    int64_t waiting_since_ms;
    int64_t lost_ms; /* when a running member last disappeared */
    int64_t done_ms;
};

enum hvd_roster_act {
    HVD_ROSTER_WAIT,
    HVD_ROSTER_FORM, /* the members begin, in the order of their ranks */
    HVD_ROSTER_REFUSE, /* tell the members the failure */
    HVD_ROSTER_DISMISS, /* tell the members that they are not needed */
    HVD_ROSTER_DROP, /* remove the members, and have their processes killed */
    HVD_ROSTER_TELL, /* tell the running members of the changes */
    HVD_ROSTER_SHORT, /* log the failure: more members are needed */
    /* have the launcher end all processes: the job is done, and no rank runs */
    HVD_ROSTER_OVER,
};

struct hvd_roster_step {
    enum hvd_roster_act act;
    /* The members of FORM, REFUSE, DISMISS and DROP: [count], borrowed until the next
     * step. */
    const int *ids;
    int count;
    /* When to call hvd_roster_next again at the latest; -1: after the next event. */
    int64_t again_ms;
    struct hvd_roster_failure failure; /* of REFUSE, DISMISS, DROP and SHORT */
    unsigned changes; /* of TELL */
};

void hvd_roster_init(struct hvd_roster *roster, const struct hvd_roster_rules *rules);
void hvd_roster_finish(struct hvd_roster *roster);

/* Adds a process that has connected. Returns 0 or HVD_ERR_NOMEM. */
int hvd_roster_add(struct hvd_roster *roster, int id);

/* Finds a member; NULL if there is none. Valid until the next add or remove. */
struct hvd_member *hvd_roster_find(struct hvd_roster *roster, int id);

/* Lets a member join. If this fails, the failure is the answer to this member alone. */
int hvd_roster_join(struct hvd_roster *roster, int id, const struct hvd_roster_join *join,
                    int64_t now_ms, struct hvd_roster_failure *failure);

/* Returns whether a member of an elastic job waits because a generation has begun with as
 * many ranks as the job may have; and how many members do. */
bool hvd_roster_is_spare(const struct hvd_roster *roster,
                         const struct hvd_member *member);
int hvd_roster_count_spares(const struct hvd_roster *roster);

/* Records that a member has the state of the training. */
void hvd_roster_ready(struct hvd_roster *roster, int id);

/* Removes a member that is gone; `host` is for the error. Returns its rank in the running
 * generation, or -1. */
int hvd_roster_remove(struct hvd_roster *roster, int id, const char *host,
                      int64_t now_ms);

/* Like hvd_roster_remove, for a member whose connection was reset: a rank of a static
 * job, and a member of an elastic job that has not begun, has HVD_ROSTER_RETURN_MS to
 * join again. */
int hvd_roster_lose(struct hvd_roster *roster, int id, const char *host, int64_t now_ms);

/* Records the host of a rank of a static job, for errors that name the rank. Returns 0,
 * HVD_ERR_NOMEM, or HVD_ERR_ARG: no launch has such a rank. */
int hvd_roster_locate(struct hvd_roster *roster, int rank, const char *host);

/* Records that the process of a slot has ended for good. The launcher, or the process
 * itself, may report this before the member is seen to leave, or even to join. Returns 0
 * or HVD_ERR_NOMEM. */
int hvd_roster_end(struct hvd_roster *roster, const struct hvd_missing_end *end);

/* Tells how many members the launcher of an elastic job expects at the start. */
void hvd_roster_expect(struct hvd_roster *roster, int count);

/* Records that the launcher removes a slot, or takes that back. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_roster_leave(struct hvd_roster *roster, int slot);
void hvd_roster_stay(struct hvd_roster *roster, int slot);

/* Records that a rank has succeeded. */
void hvd_roster_done(struct hvd_roster *roster, int64_t now_ms);

/* Chooses the next action. Call it after each event, until it returns WAIT. */
void hvd_roster_next(struct hvd_roster *roster, int64_t now_ms,
                     struct hvd_roster_step *step);

#endif
