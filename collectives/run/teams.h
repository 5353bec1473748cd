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

/* Called when a batch has succeeded; a batch on a device: when it has been launched. The
 * callee owns the batch, and may submit others. */
typedef void (*hvd_batch_ended)(void *context, struct hvd_batch *batch);

/* Called when a batch starts to run. crosses_nodes: its team has ranks on several nodes.
 * The batch is borrowed. */
typedef void (*hvd_batch_started)(void *context, const struct hvd_batch *batch,
                                  bool crosses_nodes);

/* Runs batches whose tensors are on a device; run.h runs the others. */
struct hvd_executor {
    /* Returns the device_number of the next batch, in the order that all ranks agreed
     * on. */
    uint64_t (*number)(void *context);
    /* batch and team are borrowed until destroy. The caller owns *out. */
    int (*create)(void *context, struct hvd_team *team, struct hvd_batch *batch,
                  void **out, struct hvd_error *err);
    /* Advances a run, as hvd_run_progress does. Returns 0 when the team can go on to its
     * next batch. */
    int (*progress)(void *run, int64_t *work, bool *moved, struct hvd_error *err);
    /* Makes the run leave the tensors alone, as hvd_run_forget does. leaks: it also never
     * frees results in host memory. */
    void (*forget)(void *run, bool leaks);
    void (*destroy)(void *run);
    void (*forget_set)(void *context, struct hvd_set *set); /* the set is removed */
};

/* The configuration of all teams; pointers are borrowed until destroy. */
struct hvd_teams_config {
    const struct hvd_boot *boot;
    struct hvd_set *global;
    struct hvd_shm *shm;
    struct hvd_net *net; /* NULL if all ranks are on one node */
    struct hvd_geometry geometry;
    const struct hvd_algorithm_table *algorithms; /* NULL: the built-in table */
    const struct hvd_executor *executor; /* NULL: no batch is on a device */
    void *executor_context;
};

/* Opens the queues of the global set. Every rank calls it. The caller owns *out. */
int hvd_teams_create(const struct hvd_teams_config *config, struct hvd_teams **out,
                     struct hvd_error *err);

/* Drops all batches that are queued or running. After a failure destroy the net first,
 * which may still hold messages of running batches; stop the device first. NULL is fine.
 */
void hvd_teams_destroy(struct hvd_teams *teams);

/* Opens the team of a process set, which is borrowed until remove or destroy. If a node
 * has members of the set, every rank of the node calls this function, and remove, for the
 * same sets in the same order: a rank that is not a member has to know which shared
 * memory the members use. After a failure the job has to end. */
int hvd_teams_add(struct hvd_teams *teams, struct hvd_set *set, struct hvd_error *err);

/* Closes the team of a set whose batches have ended on this rank. */
void hvd_teams_remove(struct hvd_teams *teams, struct hvd_set *set);

/* Takes over a batch and queues it behind the other batches of its set and priority. This
 * rank must be in the set. */
void hvd_teams_submit(struct hvd_teams *teams, struct hvd_batch *batch);

/* Gives each team a turn. Sets *moved if anything moved; else nothing will move until a
 * message arrives or a local rank signals. Returns 0 if no batch is queued or running,
 * HVD_INPROGRESS, or a failure after which no batch runs any more and the job has to end.
 */
int hvd_teams_progress(struct hvd_teams *teams, hvd_batch_ended ended, void *context,
                       bool *moved);

/* Makes progress call `started` for each batch that it starts. */
void hvd_teams_watch(struct hvd_teams *teams, hvd_batch_started started, void *context);

/* Returns why progress failed; borrowed. */
const struct hvd_error *hvd_teams_failure(const struct hvd_teams *teams);

/* Pauses or resumes the teams of a set that this rank is in, except the queue of priority
 * SPARE. */
void hvd_teams_pause(const struct hvd_set *set, bool is_paused);

/* Call it when the entries of a queued or running batch of a paused team have been
 * replaced by zeros. The memory of the old entries is not touched any more. */
void hvd_teams_cancel(const struct hvd_batch *batch);

/* Returns the team of a queue of the global set, for code that runs batches on it by
 * itself while the teams are idle. */
struct hvd_team *hvd_teams_priority(struct hvd_teams *teams, enum hvd_priority priority);

bool hvd_teams_are_idle(const struct hvd_teams *teams); /* nothing is queued or running */

/* Takes out a queued or running batch, so that the caller can fail it; NULL if there is
 * none. The caller owns the batch. After the first call no batch runs any more, and
 * messages that still arrive do not change tensors of running batches. The runs stay
 * until destroy. leaks: memory that runs have allocated for results is never freed. The
 * caller takes care of results that entries already have. */
struct hvd_batch *hvd_teams_take_batch(struct hvd_teams *teams, bool leaks);

#endif
