/* SPDX-License-Identifier: Apache-2.0 */
/* The members of an elastic job, and when the next generation of ranks begins. Pure: no clock, no
 * sockets.
 *
 * A member is a process that is connected. It asks to begin when it starts, when it has lost a
 * peer, and at its next commit after it was told that ranks are to come or to leave.
 *
 *   connects ---> idle --asks--> waiting --a generation forms--> running ---> gone
 *                   ^             |   ^                             |
 *                   +--dismissed, +   +-----------asks--------------+
 *                      refused
 *
 *   gone        its connection has closed; or others have waited for it for timeout_ms (DROP): it
 *               is stopped or hangs, and is killed: by hvdrun, or under srun by the service
 *   dismissed   its slot was removed, or the job is done: the process is not needed
 *   refused     the job cannot go on: too few members, too many generations, no state left
 *
 * As soon as nobody runs, those that wait form the next generation:
 *   the first     np members wait (fewer, if some died), or start_ms passed and min do
 *   later ones    min members wait
 * Ranks: those that have the training's state first, in their old order, then new ones in the
 * order of their slots: so rank 0 can give its state to all.
 *
 * The job is done when the first of its ranks succeeds. Those that run have timeout_ms to end or
 * to ask; when nobody runs, the launcher ends the processes that are left, which have not got as far
 * as to ask (OVER). */
#ifndef HVD_ROSTER_H
#define HVD_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_roster_rules {
    int np; /* members that the launcher starts */
    int min;
    int max; /* further members wait until others go */
    int start_ms;
    int timeout_ms; /* how long members wait for what cannot begin */
    int reset_limit; /* generations after the first; -1: any number */
};

enum hvd_member_state {
    HVD_MEMBER_IDLE, /* has not asked yet, or got an answer that is no generation */
    HVD_MEMBER_WAITING,
    HVD_MEMBER_RUNNING,
};

struct hvd_member {
    int id;
    int slot;
    enum hvd_member_state state;
    int rank; /* in the last generation; -1: was not in it */
    bool is_meant; /* by the last step: it is to be told, or dropped */
    bool has_state;
    int64_t arrived_ms; /* asked for the first time; -1: has not asked */
};

/* Zeroed: none. */
struct hvd_roster_slots {
    int *all; /* [count] */
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
    int generation; /* the last one; 0: none yet */
    int size; /* of it */
    int gone; /* members that left before the first generation */
    int expected; /* what the launcher still expects then */
    /* Before the first generation: their processes are gone, as the launcher says. */
    struct hvd_roster_slots ended;
    struct hvd_roster_slots leaving; /* removed by the launcher */
    bool had_state; /* some member ever had it */
    bool is_done;
    bool is_over_told; /* the launcher knows that the rest may be ended */
    bool is_short_told; /* the log knows that more are needed */
    unsigned told; /* changes that the running members know of */
    int64_t waiting_since_ms; /* -1: nobody waits who holds up others, or is held up */
    int64_t lost_ms; /* a running member was last seen to go */
    int64_t done_ms;
};

enum hvd_roster_act {
    HVD_ROSTER_WAIT,
    HVD_ROSTER_FORM, /* a generation has begun: its members have their ranks */
    HVD_ROSTER_REFUSE, /* tell the members that are meant the reason */
    HVD_ROSTER_DISMISS, /* likewise: they are not needed */
    HVD_ROSTER_DROP, /* remove the members that are meant, and have their processes killed */
    HVD_ROSTER_TELL, /* tell the running members of the changes */
    HVD_ROSTER_SHORT, /* log the reason: more members are needed */
    HVD_ROSTER_OVER, /* have all processes ended: the job is done, and nobody runs */
};

struct hvd_roster_step {
    enum hvd_roster_act act;
    int64_t
        again_ms; /* when to ask again at the latest; -1: when something has happened */
    struct hvd_error reason; /* of REFUSE, DISMISS, DROP and SHORT */
    unsigned changes; /* of TELL */
};

void hvd_roster_init(struct hvd_roster *roster, const struct hvd_roster_rules *rules);
void hvd_roster_finish(struct hvd_roster *roster);

/* A process has connected. Returns 0 or HVD_ERR_NOMEM. */
int hvd_roster_add(struct hvd_roster *roster, int id);

/* NULL when there is none; valid until the next add or remove. */
struct hvd_member *hvd_roster_find(struct hvd_roster *roster, int id);

/* A member asks to begin; has the state. */
void hvd_roster_join(struct hvd_roster *roster, int id, int slot, int64_t now_ms);
void hvd_roster_ready(struct hvd_roster *roster, int id);

/* A member is gone. Returns its rank in the running generation, or -1. */
int hvd_roster_remove(struct hvd_roster *roster, int id, int64_t now_ms);

/* The launcher expects only so many at the start. slot: one whose process has ended for good, -1:
 * there is none; that may be heard before it is seen to leave, or even to join. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_roster_expect(struct hvd_roster *roster, int slot, int count);

/* The launcher removes a slot, or takes that back. Returns 0 or HVD_ERR_NOMEM. */
int hvd_roster_leave(struct hvd_roster *roster, int slot);
void hvd_roster_stay(struct hvd_roster *roster, int slot);

/* A rank has succeeded. */
void hvd_roster_done(struct hvd_roster *roster, int64_t now_ms);

/* The next action; to be called after each event, until it returns WAIT. */
void hvd_roster_next(struct hvd_roster *roster, int64_t now_ms,
                     struct hvd_roster_step *step);

#endif
