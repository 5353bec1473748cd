/* SPDX-License-Identifier: Apache-2.0 */
/* The members of an elastic job, and when the next generation of ranks begins. Pure: no clock, no
 * sockets.
 *
 * A member is a living process. It asks to join when it starts, when it lost a peer, or
 * when others are waiting to join. A generation forms when all members of the one before have
 * asked or are gone:
 *   the first     np members have asked (fewer, if some died), or start_ms passed and min have
 *   later ones    min members have asked
 * Ranks: those that have the training's state first, in their old order, then new ones in the
 * order of their slots: so rank 0 can give its state to all. */
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

struct hvd_member {
    int id;
    int slot;
    int rank; /* in the last generation; -1: was not in it */
    bool has_joined; /* has asked to begin since it connected */
    bool is_waiting; /* asks, and is not in a generation */
    bool has_state;
    int64_t arrived_ms; /* asked for the first time */
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
    int *
        ended; /* [ended_count], slots whose processes have ended by then, as the launcher says */
    int ended_count;
    bool had_state; /* some member ever had it */
    bool was_told; /* members know that others wait */
    bool is_short_told; /* the log knows that more are needed */
    int64_t waiting_since_ms; /* -1: nobody who holds up others waits */
};

enum hvd_roster_act {
    HVD_ROSTER_WAIT,
    HVD_ROSTER_FORM, /* a generation has begun: its members have their ranks */
    HVD_ROSTER_REFUSE, /* tell all who wait, with the reason, and mark them as not waiting */
    HVD_ROSTER_TELL, /* tell the ranks of the generation that others wait */
    HVD_ROSTER_SHORT, /* log the text: more members are needed */
};

struct hvd_roster_step {
    enum hvd_roster_act act;
    int64_t
        again_ms; /* when to ask again at the latest; -1: when something has happened */
    struct hvd_error reason; /* of REFUSE and SHORT */
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

/* The launcher expects only so many at the start. slot: one whose process has ended for good, -1: there is none;
 * that may be heard before it is seen to leave, or even to join. Returns 0 or HVD_ERR_NOMEM. */
int hvd_roster_expect(struct hvd_roster *roster, int slot, int count);

/* The next action; to be called after each event, until it returns WAIT. */
void hvd_roster_next(struct hvd_roster *roster, int64_t now_ms,
                     struct hvd_roster_step *step);

#endif
