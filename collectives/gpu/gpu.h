/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of this rank: opened when the first GPU tensor appears, one for a process.
 *
 *   submit    hvd_gpu_open, hvd_gpu_mark_input: any thread
 *   run       gpu_run.h: a batch becomes work; when the work is on the streams, the batch
 *             is over for the teams, and its entries are launched
 *   land      hvd_gpu_progress: the device has come to the end of a batch; its entries end
 *
 * Batches of all process sets are launched in the order in which they were agreed on,
 * which is one for all ranks: kernels of NCCL that wait for each other on one stream
 * cannot be in another order elsewhere. `hvd_gpu_number` and the turn see to that.
 *
 * Threads: one at a time (the engine's progress lock), but for what says otherwise. */
#ifndef HVD_GPU_H
#define HVD_GPU_H

#include "collectives/agreement/batch.h"
#include "collectives/gpu/gpu_choices.h"
#include "collectives/gpu/gpu_pool.h"
#include "pmix_boot/boot.h"

enum {
    /* How long a device, or NCCL, may take to let go, in all that the engine waits for. */
    HVD_GPU_STOP_MS = 5000,
};

/* What this rank has measured of each way; gpu_nodes.c. */
struct hvd_gpu_trial {
    int64_t count; /* batches begun */
    int64_t ns[HVD_GPU_ALLREDUCE_WAYS];
    int64_t bytes[HVD_GPU_ALLREDUCE_WAYS]; /* the same on all ranks */
};

struct hvd_gpu_cross;

/* A process set whose ranks have met. */
struct hvd_gpu_peers {
    struct hvd_gpu_peers *next;
    int set;
    struct hvd_gpu_comm *comm; /* of all its ranks; NULL: through host memory */
    int nccl_version;
    bool all_have_kernels;
    enum hvd_gpu_allreduce allreduce;
    /* Among which it is chosen while it is auto; before that the first one goes. */
    enum hvd_gpu_allreduce ways[HVD_GPU_ALLREDUCE_WAYS];
    int way_count;
    /* NULL when that is flat: */
    struct hvd_gpu_comm *node_comm; /* of this node's ranks */
    struct hvd_gpu_cross *cross;
    struct hvd_gpu_trial trial; /* while it is auto */
    int64_t pack_below; /* bytes; see gpu_plan.h */
    bool measures_packing; /* pack_below is a guess yet; gpu_packing.c */
};

struct hvd_gpu_config {
    const struct hvd_boot *boot; /* borrowed */
    enum hvd_gpu_path path; /* of HVD_GPU_PATH */
    enum hvd_gpu_allreduce allreduce; /* of HVD_GPU_ALLREDUCE */
    int64_t pack_below; /* of HVD_GPU_PACK_BELOW, bytes; HVD_GPU_PACK_AUTO */
    enum hvd_gpu_direct direct; /* of HVD_GPU_DIRECT */
    void (*wake)(void *context); /* the drive: any thread */
    void *context;
};

struct hvd_gpu {
    struct hvd_gpu_config config;
    pthread_mutex_t lock;
    struct hvd_gpu_pool *pool; /* lock, until it is open */
    int device; /* lock */
    _Atomic bool is_open;
    struct hvd_gpu_peers *peers;
    struct hvd_gpu_room *pack; /* for tensors that are copied together */
    struct hvd_gpu_mark
        *flying[HVD_GPU_QUEUES]; /* batches that are launched, oldest first */
    struct hvd_gpu_mark **last[HVD_GPU_QUEUES];
    struct hvd_gpu_job *jobs; /* submitted, and not over for their runs; gpu_job.h */
    uint64_t numbers; /* batches agreed on */
    uint64_t turn; /* the number of the next that may begin */
    int waiting; /* runs that poll the device */
    int64_t checked_ns; /* when NCCL was last asked for errors */
    bool is_traced; /* what is launched from now on is measured; set by the engine */
    bool has_failed;
    bool is_stuck; /* the device has not let go: what it uses it may use for ever */
    struct hvd_gpu *left_before; /* of those that are left */
    bool is_left; /* lock; the engine is gone, but the launcher is not */
};

/* An entry has ended. */
typedef void hvd_gpu_landed(void *context, struct hvd_entry *entry, int status,
                            const char *text);

/* Loads and opens nothing yet. The caller owns *out. */
int hvd_gpu_create(const struct hvd_gpu_config *config, struct hvd_gpu **out,
                   struct hvd_error *err);

/* Ends the launcher; before the runs are destroyed. False: what they have is in use for
 * ever. */
bool hvd_gpu_stop(struct hvd_gpu *gpu);
void hvd_gpu_destroy(struct hvd_gpu *gpu, bool has_stopped); /* NULL is fine */

/* Opens the device, or finds it open; another one than before is an error. Any thread. */
int hvd_gpu_open(struct hvd_gpu *gpu, int device, struct hvd_error *err);

/* Whether it has been opened. Any thread, and none waits; NULL is fine: no. */
bool hvd_gpu_is_open(const struct hvd_gpu *gpu);

/* The device of this rank when it has no tensor of its own: its local rank. */
int hvd_gpu_open_default(struct hvd_gpu *gpu, struct hvd_error *err);

/* What is on the caller's stream until now: the input is there then. The caller owns
 * *mark. Any thread; open. */
int hvd_gpu_mark_input(struct hvd_gpu *gpu, void *stream, struct hvd_refcount **mark,
                       struct hvd_error *err);

/* The stream waits for a mark, whose GPU may have been destroyed since. Any thread. */
int hvd_gpu_mark_wait(const struct hvd_refcount *mark, void *stream,
                      struct hvd_error *err);

/* The number of a batch, in the order of agreement. */
uint64_t hvd_gpu_number(struct hvd_gpu *gpu);

/* A batch is on its stream up to mark (kept), which is the last there. */
void hvd_gpu_launched(struct hvd_gpu *gpu, enum hvd_gpu_queue queue,
                      struct hvd_gpu_mark *mark);

/* The entry is launched and ends when its mark, entry->done, is reached. Borrowed until
 * then. */
void hvd_gpu_park(struct hvd_entry *entry);

/* Ends what the device has come to. Sets *moved if something ended. A failure means that the
 * device or NCCL is unusable. */
int hvd_gpu_progress(struct hvd_gpu *gpu, hvd_gpu_landed *landed, void *context,
                     bool *moved, struct hvd_error *err);

/* When to look again, -1: no need. is_waited: some thread waits for a request. */
int64_t hvd_gpu_deadline(const struct hvd_gpu *gpu, bool is_waited, int64_t now_ns);

bool hvd_gpu_is_idle(const struct hvd_gpu *gpu); /* nothing launched that has not ended */

/* The job has failed: NCCL is aborted, then all that is launched ends with status. Waits
 * until the device has let go of it, some seconds at most. */
void hvd_gpu_fail(struct hvd_gpu *gpu, hvd_gpu_landed *landed, void *context, int status,
                  const char *text);

/* NULL: the ranks of the set have not met. forget: the set is no more, and nothing of it is run;
 * its communicators end when the device is done with them. */
struct hvd_gpu_peers *hvd_gpu_find_peers(const struct hvd_gpu *gpu, int set);
void hvd_gpu_forget_peers(struct hvd_gpu *gpu, int set);

#endif
