/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the runtime, shared by the files that make it up:
 *   join.c, addresses.c  getting connected     agree.c  requests to batches
 *   engine.c             what moves            drive.c  who moves it, and waits
 *   bells.c              falling asleep and waking up
 *   algorithms.c         the same table for all ranks
 *   leave.c              shutdown and teardown        engine_timeline.c  the timeline
 *   tuning.c             fusion as the autotuner wants it
 *   engine_gpu.c         tensors on GPUs
 *
 * `drive` is held by the thread that moves things on and guards everything that is
 * not listed under `mail`. `mail` is held for a few instructions by any thread. A thread that
 * holds mail never takes drive. */
#ifndef HVD_ENGINE_STATE_H
#define HVD_ENGINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "collectives/agreement/agreement.h"
#include "collectives/engine/crowd.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/sets.h"
#include "collectives/engine/settings.h"
#include "collectives/execute/choice_file.h"
#include "collectives/execute/teams.h"
#include "collectives/gpu/gpu.h"
#include "collectives/observe/lateness_report.h"
#include "collectives/observe/timeline.h"
#include "collectives/reduce/float_env.h"
#include "collectives/transport/control/control.h"
#include "collectives/transport/control/uplink.h"

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
    struct hvd_gpu *gpu;
    struct hvd_uplink *uplink;
    struct hvd_agreement *agreement;
    struct hvd_lateness_report *report; /* NULL: nobody asked for it */
    struct hvd_timeline *timeline;
    struct hvd_settings settings;
    struct hvd_geometry geometry; /* of every team */
    struct hvd_choice_table *algorithms; /* NULL: the built-in table */
    struct hvd_error
        algorithms_failure; /* why the file cannot be used; status 0: it can */
    struct hvd_error
        agree_failure; /* why the agreement cannot go on, where that is known */
    struct hvd_tuner *tuner; /* on rank 0, until it has found its setting; else NULL */
    struct hvd_addresses *addresses; /* of the network, while joining */

    pthread_mutex_t recording; /* taken before drive: one call about the timeline */
    pthread_mutex_t drive;
    struct hvd_float_env drivers_floats; /* what the thread had before it drove */
    bool has_failed;
    bool leaks; /* since then: another rank may still write to what was offered */
    enum hvd_phase phase;
    int drained_children;
    bool sent_drained;
    bool wants_shutdown; /* rank 0: as soon as no plan is in force */
    struct hvd_crowd_board *board; /* in the node's shared memory, before the mailboxes */
    cpu_set_t cpus; /* that this rank may use */
    bool
        knows_crowd; /* every rank of the node is on the board; until then nobody is in the way */
    _Atomic bool is_crowded; /* more ranks than cpus: yield early while spinning */
    _Atomic bool
        thread_is_crowded; /* the same of the progress thread beside a trainer's */
    struct hvd_entry
        *proposing; /* taken from fresh, the agreement has not seen them yet */
    int64_t lost_ns; /* when the network lost a peer; 0: it has not */
    int64_t gpu_lost_ns; /* the same of NCCL */
    bool data_moves; /* it did when last looked at */
    int64_t heard_ns; /* when messages and submissions were last looked at */
    int64_t control_seen_ns; /* when the control sockets were last looked at */

    /* Sleeping. inner: sockets, network, doorbell, wake. outer: inner, kick. Whoever drives
     * sleeps on inner; the progress thread sleeps on outer, in which inner is muted when it
     * would wake the thread while a waiter drives. */
    int inner;
    int outer;
    int wake; /* eventfd: a submission came while the driver slept */
    int doorbell; /* eventfd: a local rank signalled while this one slept */
    uint64_t due_rings; /* of the doorbell: announced, maybe not there yet */
    int kick; /* eventfd: the progress thread must look */
    int *peer_bells; /* [peer_bell_count], doorbells of the local ranks */
    int peer_bell_count;
    bool ignores_net; /* the network's bell is muted in inner */
    _Atomic bool asleep;
    _Atomic bool was_rung; /* wake has been written to */
    _Atomic bool thread_drives; /* the progress thread holds drive */
    _Atomic int64_t thread_wakes_ns; /* until when it sleeps; -1: until a bell rings */
    _Atomic bool is_wanted; /* a waiter wants drive from the progress thread */
    pthread_mutex_t turn; /* held by that waiter until it has drive */
    pthread_mutex_t muting; /* guards is_muted; held for an instant by any thread */
    bool is_muted; /* inner, in outer */
    _Atomic bool stop;
    pthread_t thread;
    bool has_thread;

    _Atomic int waiters; /* threads that wait for a request */
    _Atomic int sleepers; /* those that sleep on `ended`; changed under mail */
    _Atomic uint64_t times_let_go; /* how often drive has been given up */
    _Atomic int64_t fresh_ns; /* when the drive last saw a submission */
    _Atomic int64_t cycle_ns; /* the cycle time then */

    pthread_mutex_t mail;
    pthread_cond_t ended; /* some request has ended, or the driver has left */
    struct hvd_entry *fresh; /* submitted, not yet proposed */
    struct hvd_entry **fresh_end;
    struct hvd_table in_flight; /* struct hvd_entry by key, until they have ended */
    struct hvd_sets sets; /* as far as decisions have been carried out */
    struct hvd_error refusal; /* status != 0: every submission ends with this */
};

/* --- algorithms.c --- */
void hvd_algorithms_read(struct hvd_engine *engine);

/* Of the table; HVD_CARD_NO_ALGORITHMS when it cannot be read. */
uint64_t hvd_algorithms_digest(const struct hvd_engine *engine);

/* HVD_ERR_MISMATCH, on all ranks, where one has another table than rank 0. */
int hvd_algorithms_compare(struct hvd_engine *engine, struct hvd_error *err);

/* --- agree.c --- */
int hvd_agree_create(struct hvd_engine *engine, struct hvd_error *err);
void hvd_agree_destroy(struct hvd_engine *engine);

/* Puts the entries into the in-flight table, all or none; mail held. */
int hvd_agree_register(struct hvd_engine *engine, struct hvd_request *request,
                       struct hvd_error *err);

/* drive held: */
bool hvd_agree_submit(struct hvd_engine *engine); /* what is fresh */
bool hvd_agree_progress(struct hvd_engine *engine, int64_t now_ns);
void hvd_agree_reports(struct hvd_engine *engine, int branch, const void *payload,
                       size_t bytes);
void hvd_agree_decisions(struct hvd_engine *engine, const void *payload, size_t bytes);
void hvd_agree_finish(void *engine, struct hvd_batch *batch);

/* Ends all entries that are not in a batch that all ranks run, or all. */
void hvd_agree_drop(struct hvd_engine *engine, bool all, int status, const char *text);

/* --- tuning.c --- */
int hvd_tuning_create(struct hvd_engine *engine, struct hvd_error *err);
void hvd_tuning_destroy(struct hvd_engine *engine);

/* A batch has ended; its entries have not. May change how tensors are fused. Drive held. */
int hvd_tuning_note(struct hvd_engine *engine, const struct hvd_batch *batch);

/* --- addresses.c, drive held --- */
int hvd_addresses_exchange(struct hvd_engine *engine, int timeout_ms,
                           struct hvd_error *err);
void hvd_addresses_on_one(struct hvd_engine *engine, const void *payload, size_t bytes);
void hvd_addresses_on_all(struct hvd_engine *engine, const void *payload, size_t bytes);

/* --- engine_timeline.c --- */
int hvd_engine_open_timeline(struct hvd_engine *engine, struct hvd_error *err); /* join */
void hvd_engine_batch_started(void *engine, const struct hvd_batch *batch,
                              bool crosses_nodes);

/* --- engine_gpu.c, drive held --- */
int hvd_engine_open_gpu(struct hvd_engine *engine, struct hvd_error *err);
bool hvd_engine_progress_gpu(struct hvd_engine *engine);

/* The agreement is done with the entry of a batch that is launched. */
void hvd_engine_launch_entry(struct hvd_engine *engine, struct hvd_entry *entry);

/* An entry has ended; what waits for it is told. */
void hvd_engine_land_entry(void *engine, struct hvd_entry *entry, int status,
                           const char *text);

/* --- engine.c, drive held --- */
/* A rank that ends because another one died closes its connections, and those of the network may be
 * seen before the word of who died: it is waited for so long. */
extern const int64_t hvd_engine_word_ns;

bool hvd_engine_progress(struct hvd_engine *engine); /* true if anything moved */
void hvd_engine_end_entry(struct hvd_engine *engine, struct hvd_entry *entry, int status,
                          const char *text);

/* This rank cannot go on: ends everything here and tells the others. culprit: the rank that
 * is to blame. Only the first call counts. */
void hvd_engine_fail(struct hvd_engine *engine, int culprit, int status,
                     const char *text);
/* From now on submissions get this; the first call counts. */
void hvd_engine_refuse(struct hvd_engine *engine, int status, const char *text);
void hvd_engine_on_event(void *context, const struct hvd_uplink_event *event);

/* When the peer that the network lost is to be blamed, unless the control network has told by then
 * who died; -1: there is none. */
int64_t hvd_engine_blames_at(const struct hvd_engine *engine);

/* Gives each team a turn; true if anything moved. */
bool hvd_engine_run_batches(struct hvd_engine *engine);

/* --- bells.c, drive held but for ring --- */
void hvd_engine_ring(int eventfd); /* wakes who sleeps on it */
uint64_t hvd_engine_silence(int eventfd); /* returns how often it has been rung since */

/* inner, in outer. May be called without drive. */
void hvd_engine_mute(struct hvd_engine *engine, bool is_muted);

/* Before sleeping on inner or outer. dozes: not for long, and submissions need not ring. Returns
 * false, awake, when there is something to do. */
bool hvd_engine_fall_asleep(struct hvd_engine *engine, bool dozes);

/* Takes back what falling asleep said, and silences the bells that may have rung since. */
void hvd_engine_wake_up(struct hvd_engine *engine);

/* --- drive.c --- */
/* Locks drive, and enters hvd's floating-point environment: between the two no code of the program
 * runs. */
void hvd_engine_take_over(struct hvd_engine *engine);
void hvd_engine_hand_back(struct hvd_engine *engine);

/* Polls in vain before the processor is to be offered to others. */
unsigned hvd_engine_yield_every(const struct hvd_engine *engine);

/* Drives until done says so, somebody else wants to, or timeout_ms has passed (negative: no
 * limit); returns whether it is done. */
typedef bool (*hvd_engine_test)(struct hvd_engine *engine, const void *arg);
bool hvd_engine_drive(struct hvd_engine *engine, hvd_engine_test done, const void *arg,
                      int timeout_ms);

/* The same until it is done or timeout_ms, not negative, has passed: who else wants to drive gets
 * drive, and this thread gets it back. What drive guards may have changed on the way. */
bool hvd_engine_drive_on(struct hvd_engine *engine, hvd_engine_test done, const void *arg,
                         int timeout_ms);

/* The progress thread: drives when nobody waits. Made in hvd's floating-point environment. */
void *hvd_engine_thread(void *engine);

/* --- leave.c, drive held --- */
void hvd_leave_on_shutdown(struct hvd_engine *engine, bool from_parent);
void hvd_leave_on_close(struct hvd_engine *engine);
void hvd_leave_progress(struct hvd_engine *engine);

#endif
