/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of this rank, opened when the first GPU tensor appears. A process uses one GPU.
 *
 *   submit      hvd_gpu_open, hvd_gpu_mark_input: any thread
 *   run         gpu_run.h: a batch becomes work on CUDA streams. The teams are done with it
 *               when all work is launched
 *   complete    hvd_gpu_progress: the device has reached the end of a batch; its entries end
 *
 * All ranks launch batches in the same order, that of agreement, also across process sets:
 * NCCL's kernels of different ranks wait for each other and share one stream. A batch gets
 * its number from hvd_gpu_number, and launches when `turn` has reached it.
 *
 * Threads: one at a time (the engine's progress lock), but for what says otherwise. */
#ifndef HVD_GPU_RUNTIME_H
#define HVD_GPU_RUNTIME_H

#include "collectives/gpu/gpu_config.h"
#include "collectives/gpu/gpu_pool.h"

struct hvd_entry;
struct hvd_gpu_inter_node;
struct hvd_gpu_job;

enum {
    /* How long hvd_gpu_stop waits for the device and NCCL. */
    HVD_GPU_STOP_MS = 5000,
};

/* What this rank has measured of each algorithm; gpu_algorithm.c. */
struct hvd_gpu_trial {
    int64_t count; /* batches begun */
    int64_t ns[HVD_GPU_ALLREDUCE_ALGORITHMS];
    int64_t bytes[HVD_GPU_ALLREDUCE_ALGORITHMS]; /* the same on all ranks */
};

/* A process set after its rendezvous. */
struct hvd_gpu_set {
    struct hvd_gpu_set *next;
    int id; /* of the process set */
    struct hvd_gpu_comm *comm; /* of all its ranks; NULL: the set takes the host path */
    int nccl_version;
    bool all_have_kernels;
    bool may_switch_add; /* see gpu_schedule.h */
    enum hvd_gpu_allreduce allreduce;
    /* While it is auto: what the trial compares. Batches too small for it use the first. */
    enum hvd_gpu_allreduce candidates[HVD_GPU_ALLREDUCE_ALGORITHMS];
    int candidate_count;
    /* NULL if that is flat: */
    struct hvd_gpu_comm *node_comm; /* of this node's ranks */
    struct hvd_gpu_inter_node *inter_node;
    struct hvd_gpu_trial trial; /* while it is auto */
    int64_t pack_below; /* bytes; see gpu_schedule.h */
    bool
        measures_packing; /* pack_below is a default until it is measured; gpu_packing.c */
};

struct hvd_gpu_runtime {
    struct hvd_gpu_config config;
    pthread_mutex_t lock;
    struct hvd_gpu_pool *pool; /* lock, until is_open */
    int device; /* lock */
    _Atomic bool is_open;
    struct hvd_gpu_set *sets; /* after their rendezvous */
    struct hvd_gpu_buffer *pack; /* memory for packed tensors; NULL: none yet */
    struct hvd_gpu_mark *in_flight[HVD_GPU_QUEUES]; /* launched batches, oldest first */
    struct hvd_gpu_mark **last[HVD_GPU_QUEUES];
    _Atomic int in_flight_count; /* of all queues */
    struct hvd_gpu_job *jobs; /* submitted and not ended; gpu_job.h */
    uint64_t numbers; /* batches agreed on */
    uint64_t turn; /* the batch that may launch next */
    int waiting; /* runs that poll the device */
    int64_t checked_ns; /* when NCCL was last asked for errors */
    bool is_traced; /* measure what is launched; set by the engine */
    bool has_failed;
    bool is_stuck; /* the device did not stop: its memory is never freed */
    struct hvd_gpu_runtime *next_abandoned;
    bool is_abandoned; /* lock; the engine is destroyed, the launcher still runs */
};

/* An entry has ended. */
typedef void hvd_gpu_completed(void *context, struct hvd_entry *entry, int status,
                               const char *text);

/* Does not load the module or open a device yet. The caller owns *out. */
int hvd_gpu_create(const struct hvd_gpu_config *config, struct hvd_gpu_runtime **out,
                   struct hvd_error *err);

/* Ends the launcher; call it before the runs are destroyed. Returns false if the device does
 * not stop: then what the runs own is never freed. */
bool hvd_gpu_stop(struct hvd_gpu_runtime *gpu);
void hvd_gpu_destroy(struct hvd_gpu_runtime *gpu, bool has_stopped); /* NULL is fine */

/* Opens the device unless it is open, for which threads are made that inherit the caller's
 * floating-point environment. A second device is an error. Any thread. */
int hvd_gpu_open(struct hvd_gpu_runtime *gpu, int device, struct hvd_error *err);

/* Any thread; does not wait. NULL is fine: false. */
bool hvd_gpu_is_open(const struct hvd_gpu_runtime *gpu);

/* Any thread; NULL is fine: as hvd_gpu_pool_is_short, hvd_gpu_pool_freed. */
bool hvd_gpu_is_short(struct hvd_gpu_runtime *gpu);
void hvd_gpu_freed(struct hvd_gpu_runtime *gpu);

/* Opens the device whose number is the local rank: for a rank that has joined and had no GPU
 * tensor before. */
int hvd_gpu_open_default(struct hvd_gpu_runtime *gpu, struct hvd_error *err);

/* Marks the end of what is on the caller's stream: the input is complete there. The caller owns
 * *mark. Any thread; after hvd_gpu_open. */
int hvd_gpu_mark_input(struct hvd_gpu_runtime *gpu, void *stream,
                       struct hvd_refcount **mark, struct hvd_error *err);

/* Makes the stream wait for a mark. The mark may outlive the GPU. Any thread. */
int hvd_gpu_mark_wait(const struct hvd_refcount *mark, void *stream,
                      struct hvd_error *err);

/* The next batch number. Call it in the order of agreement. */
uint64_t hvd_gpu_number(struct hvd_gpu_runtime *gpu);

/* A batch is launched; mark (kept) is its end, the last on its stream. */
void hvd_gpu_launched(struct hvd_gpu_runtime *gpu, enum hvd_gpu_queue queue,
                      struct hvd_gpu_mark *mark);

/* A launched entry: it ends when the device reaches its mark, entry->done. Borrowed until
 * then. */
void hvd_gpu_park(struct hvd_entry *entry);

/* Ends the batches that the device has completed. Sets *moved if there was one. A failure means
 * that the device or NCCL is unusable. */
int hvd_gpu_progress(struct hvd_gpu_runtime *gpu, hvd_gpu_completed *completed,
                     void *context, bool *moved, struct hvd_error *err);

/* When to call hvd_gpu_progress again; -1: no need. is_waited: a thread waits for a request. */
int64_t hvd_gpu_deadline(const struct hvd_gpu_runtime *gpu, bool is_waited,
                         int64_t now_ns);

/* Nothing is in flight. Any thread. */
bool hvd_gpu_is_idle(const struct hvd_gpu_runtime *gpu);

/* The job has failed: aborts NCCL, waits some seconds at most for the device, and ends all
 * batches in flight with status. */
void hvd_gpu_fail(struct hvd_gpu_runtime *gpu, hvd_gpu_completed *completed,
                  void *context, int status, const char *text);

/* find: NULL before the rendezvous. forget: the set is removed and has no batches left; its
 * communicators end when the device is done with them. */
struct hvd_gpu_set *hvd_gpu_set_find(const struct hvd_gpu_runtime *gpu, int id);
void hvd_gpu_set_forget(struct hvd_gpu_runtime *gpu, int id);

#endif
