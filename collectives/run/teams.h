/* SPDX-License-Identifier: Apache-2.0 */
/* All teams of this rank: the queues of the global process set, and one team for each
 * further process set that this rank is in.
 *
 * The batches of one team run one after the other, in the order in which they were
 * submitted, which is the same on all its ranks. Teams run side by side: each gets a
 * bounded turn, so that neither a long batch nor one that waits for a rank delays the
 * other teams.
 *
 * Threads: one thread at a time (the progress lock). */
#ifndef HVD_TEAMS_H
#define HVD_TEAMS_H

#include <stdbool.h>

#include "collectives/request/batch.h"
#include "collectives/schedule/algorithm_table.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/shm.h"
#include "pmix_boot/boot.h"

struct hvd_set;
struct hvd_team;
struct hvd_teams;

/* A batch has succeeded (on a device: is launched). The callee owns it, and may submit
 * others. */
typedef void (*hvd_batch_ended)(void *context, struct hvd_batch *batch);

/* A batch begins to run; its ranks are on one node or more. Borrowed. */
typedef void (*hvd_batch_started)(void *context, const struct hvd_batch *batch,
                                  bool crosses_nodes);

/* Runs batches whose tensors are on a device; run.h runs the others. */
struct hvd_executor {
    /* The device_number of the next batch, in the order that all ranks agreed on. */
    uint64_t (*number)(void *context);
    /* batch and team are borrowed until destroy. The caller owns *out. */
    int (*create)(void *context, struct hvd_team *team, struct hvd_batch *batch,
                  void **out, struct hvd_error *err);
    /* As hvd_run_progress. 0: the batch is over for the team. */
    int (*progress)(void *run, int64_t *work, bool *moved, struct hvd_error *err);
    /* As hvd_run_forget. leaks: nor are results in host memory ever freed. */
    void (*forget)(void *run, bool leaks);
    void (*destroy)(void *run);
    void (*forget_set)(void *context, struct hvd_set *set); /* it is removed */
};

/* What all teams use; pointers are borrowed until destroy. */
struct hvd_teams_config {
    const struct hvd_boot *boot;
    struct hvd_set *global;
    struct hvd_shm *shm;
    struct hvd_net *net; /* NULL on one node */
    struct hvd_geometry geometry;
    const struct hvd_algorithm_table *algorithms; /* NULL: the built-in table */
    const struct hvd_executor *executor; /* NULL: no batch is on a device */
    void *executor_context;
};

/* Opens the queues of the global set. Called on every rank. The caller owns *out. */
int hvd_teams_create(const struct hvd_teams_config *config, struct hvd_teams **out,
                     struct hvd_error *err);

/* Drops what is queued or under way. After a failure destroy the net first, which may
 * still know messages of what is under way; stop the device first. NULL is fine. */
void hvd_teams_destroy(struct hvd_teams *teams);

/* Opens the team of a process set, borrowed until remove or destroy. Every rank of a node
 * that has members calls this, and remove, for the same sets in the same order; one that
 * is no member takes note of what the others use. After a failure the job has to end. */
int hvd_teams_add(struct hvd_teams *teams, struct hvd_set *set, struct hvd_error *err);

/* When the set's batches have ended on this rank. */
void hvd_teams_remove(struct hvd_teams *teams, struct hvd_set *set);

/* Queues a batch (taken over) behind those of its set and queue. This rank is in the
 * set. */
void hvd_teams_submit(struct hvd_teams *teams, struct hvd_batch *batch);

/* Gives each team a turn. Sets *moved if anything moved; if not, nothing will before a
 * message comes or a local rank signals. Returns 0 when nothing is queued or under way,
 * HVD_INPROGRESS, or a failure after which nothing runs any more and the job has to
 * end. */
int hvd_teams_progress(struct hvd_teams *teams, hvd_batch_ended ended, void *context,
                       bool *moved);

/* Progress says which batches it starts. */
void hvd_teams_watch(struct hvd_teams *teams, hvd_batch_started started, void *context);

/* Why progress failed; borrowed. */
const struct hvd_error *hvd_teams_failure(const struct hvd_teams *teams);

/* The teams of a set that this rank is in stand still until they are told to go on, but
 * for the queue SPARE. */
void hvd_teams_pause(const struct hvd_set *set, bool is_paused);

/* A batch of such a team, queued or under way, has new entries, all zeros: what the old
 * ones describe is not touched any more. Only while the team stands still. */
void hvd_teams_cancel(const struct hvd_batch *batch);

/* A queue's team, for who runs batches on it by itself while the teams are idle. */
struct hvd_team *hvd_teams_priority(struct hvd_teams *teams, enum hvd_priority priority);

bool hvd_teams_are_idle(const struct hvd_teams *teams); /* nothing queued or under way */

/* For failing all: takes out a batch that is queued or under way, the caller's then; NULL
 * when there is none. Nothing runs any more from then on, and messages that still come
 * change no tensor of what was under way, which stays until destroy. leaks: nor is memory
 * freed in which results were to be collected; those that entries have are left to the
 * caller. */
struct hvd_batch *hvd_teams_take_batch(struct hvd_teams *teams, bool leaks);

#endif
