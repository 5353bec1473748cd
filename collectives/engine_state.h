/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the runtime, shared by the files that make it up:
 *   join.c, addresses.c  getting connected     agree.c  requests to batches
 *   engine.c             what moves            drive.c  who moves it, and sleeping
 *   leave.c              shutdown and teardown
 *
 * `drive` is held by the thread that moves things on and guards everything that is
 * not listed under `mail`. `mail` is held for a few instructions by any thread. A thread that
 * holds mail never takes drive. */
#ifndef HVD_ENGINE_STATE_H
#define HVD_ENGINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "collectives/control.h"
#include "collectives/coordinator.h"
#include "collectives/engine.h"
#include "collectives/teams.h"

enum hvd_phase {
    HVD_PHASE_RUNNING,
    HVD_PHASE_DRAINING, /* shutdown agreed: nothing new, what was agreed is run */
    HVD_PHASE_CLOSED, /* every rank has drained */
};

struct hvd_engine {
    struct hvd_boot *boot;
    struct hvd_control *control;
    struct hvd_net *net;
    struct hvd_shm *shm;
    struct hvd_teams *teams; /* and the batches that all ranks have agreed on */
    struct hvd_coordinator *coordinator; /* on rank 0 */
    struct hvd_addresses *addresses; /* of the network, while joining */

    pthread_mutex_t drive;
    bool has_failed;
    enum hvd_phase phase;
    int drained_children;
    bool sent_drained;
    bool is_crowded; /* more ranks than cpus: yield early while spinning */
    int64_t control_seen_ns; /* when the control sockets were last looked at */

    /* Sleeping. inner: sockets, network, doorbell, wake. outer: inner, kick. Whoever drives
     * sleeps on inner; the progress thread sleeps on outer, in which inner is muted while a
     * waiter drives. */
    int inner;
    int outer;
    int wake; /* eventfd: a submission came while the driver slept */
    int doorbell; /* eventfd: a local rank signalled while this one slept */
    int kick; /* eventfd: the progress thread must look */
    int *peer_bells; /* [peer_bell_count], doorbells of the local ranks */
    int peer_bell_count;
    _Atomic bool asleep;
    _Atomic bool was_rung; /* wake has been written to */
    _Atomic bool thread_drives; /* the progress thread holds drive */
    _Atomic bool is_wanted; /* a waiter wants drive from the progress thread */
    pthread_mutex_t turn; /* held by that waiter until it has drive */
    _Atomic bool stop;
    pthread_t thread;
    bool has_thread;

    _Atomic uint64_t barriers; /* that this rank has started */

    pthread_mutex_t mail;
    pthread_cond_t ended; /* some request has ended, or the driver has left */
    struct hvd_entry *fresh; /* submitted, not yet proposed */
    struct hvd_entry **fresh_end;
    void *in_flight; /* tsearch tree of struct hvd_entry, by set and name */
    struct hvd_error refusal; /* status != 0: every submission ends with this */
};

/* --- agree.c, drive held --- */
bool hvd_agree_propose(struct hvd_engine *engine); /* fresh entries to the root */
bool hvd_agree_answer(struct hvd_engine *engine); /* root: batches to everyone */
void hvd_agree_proposals(struct hvd_engine *engine, const void *payload, size_t bytes);
void hvd_agree_batches(struct hvd_engine *engine, const void *payload, size_t bytes);

/* Puts the entries into the in-flight tree, all or none; mail held. */
int hvd_agree_register(struct hvd_engine *engine, struct hvd_request *request,
                       struct hvd_error *err);

/* Ends all entries that no batch has named yet. */
void hvd_agree_drop(struct hvd_engine *engine, int status, const char *text);

/* --- addresses.c, drive held --- */
int hvd_addresses_exchange(struct hvd_engine *engine, int timeout_ms,
                           struct hvd_error *err);
void hvd_addresses_on_one(struct hvd_engine *engine, const void *payload, size_t bytes);
void hvd_addresses_on_all(struct hvd_engine *engine, const void *payload, size_t bytes);

/* --- engine.c, drive held --- */
bool hvd_engine_progress(struct hvd_engine *engine); /* true if anything moved */
void hvd_engine_end_entry(struct hvd_engine *engine, struct hvd_entry *entry, int status,
                          const char *text);

/* This rank cannot go on: ends everything here and tells the others. culprit: the rank that
 * is to blame. Only the first call counts. */
void hvd_engine_fail(struct hvd_engine *engine, int culprit, int status,
                     const char *text);
/* From now on submissions get this; the first call counts. */
void hvd_engine_refuse(struct hvd_engine *engine, int status, const char *text);
void hvd_engine_on_event(void *context, const struct hvd_control_event *event);

/* Gives each team a turn; true if anything moved. */
bool hvd_engine_run_batches(struct hvd_engine *engine);

/* --- drive.c --- */
void hvd_engine_ring(int eventfd); /* wakes who sleeps on it */
void hvd_engine_take_over(struct hvd_engine *engine); /* locks drive */
void hvd_engine_hand_back(struct hvd_engine *engine); /* unlocks it */

/* Drives until done says so, somebody else wants to, or timeout_ms has passed (negative: no
 * limit); returns whether it is done. */
typedef bool (*hvd_engine_test)(struct hvd_engine *engine, const void *arg);
bool hvd_engine_drive(struct hvd_engine *engine, hvd_engine_test done, const void *arg,
                      int timeout_ms);

/* The progress thread: drives when nobody waits. */
void *hvd_engine_thread(void *engine);

/* --- leave.c, drive held --- */
void hvd_leave_on_shutdown(struct hvd_engine *engine, bool from_parent);
void hvd_leave_on_close(struct hvd_engine *engine);
void hvd_leave_progress(struct hvd_engine *engine);

#endif
