/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of this rank, opened when the first GPU tensor appears. A process uses one GPU.
 *
 *   submit      hvd_gpu_open, hvd_gpu_mark_input: any thread
 *   run         gpu_run.h: turns a batch into work on CUDA streams. The teams are done
 *               with the batch when all its work is launched
 *   complete    hvd_gpu_progress: ends the entries of a batch when the device has reached
 *               its end
 *
 * All ranks launch batches in the agreed order, across process sets: NCCL's kernels of
 * different ranks wait for each other and share one stream. A batch gets its number from
 * hvd_gpu_number, and launches when `turn` has reached that number.
 *
 * Threads: one at a time, under the progress lock, unless a function says otherwise. */
#ifndef HVD_GPU_RUNTIME_H
#define HVD_GPU_RUNTIME_H

#include "collectives/gpu/gpu_config.h"
#include "collectives/gpu/gpu_pool.h"
#include "collectives/gpu/gpu_trial_choice.h"

struct hvd_entry;
struct hvd_gpu_inbox;
struct hvd_gpu_inter_node;
struct hvd_gpu_job;
struct hvd_gpu_window;

enum {
    /* How long hvd_gpu_stop waits for the device and NCCL. */
    HVD_GPU_STOP_MS = 5000,
    HVD_GPU_WINDOW_CLASSES = 2, /* sizes of windows; gpu_window.c */
};

/* The algorithm of a size class; gpu_algorithm.c. */
struct hvd_gpu_choice {
    enum hvd_gpu_allreduce algorithm; /* UNSET until it is decided */
    struct hvd_gpu_trial trial; /* of this rank */
};

/* The GPU's part of a process set, after its rendezvous. */
struct hvd_gpu_set {
    struct hvd_gpu_set *next;
    int id; /* number of the process set */
    /* communicator of all its ranks; NULL if the set goes through host memory */
    struct hvd_gpu_comm *comm;
    int nccl_version;
    bool all_have_kernels;
    bool may_switch_add; /* see gpu_schedule.h */
    enum hvd_gpu_allreduce allreduce; /* AUTO: by size class */
    /* While the algorithm is AUTO: the algorithms to be tried. Batches without a decision
     * use the first one. */
    enum hvd_gpu_allreduce candidates[HVD_GPU_ALLREDUCE_ALGORITHMS];
    int candidate_count;
    /* NULL if the algorithm is flat: */
    struct hvd_gpu_comm *node_comm; /* of the ranks of this node */
    struct hvd_gpu_inter_node *inter_node;
    struct hvd_gpu_choice choices[HVD_GPU_SIZE_CLASSES];
    int64_t large_batches; /* counted while the algorithm is AUTO */
    int64_t pack_below; /* bytes; see gpu_schedule.h */
    /* pack_below is a default that has yet to be measured; gpu_packing.c */
    bool measures_packing;
    /* gpu_window.c: whether more windows may be registered in comm, and those that are,
     * by size class; NULL: none */
    bool takes_windows;
    struct hvd_gpu_window *windows[HVD_GPU_WINDOW_CLASSES];
    /* gpu_inbox.c: the largest batch that one kernel reduces, 0: none; and the inbox of
     * comm, NULL until it is needed */
    int64_t one_kernel_bytes;
    /* The most ranks of the set that share a GPU. Ranks of other sets are not known here:
     * kernels of each set have at most one block for each multiprocessor, which runs four
     * at once, so those of up to four sets fit on a GPU that all of them use. */
    int ranks_on_gpu;
    struct hvd_gpu_inbox *inbox;
};

struct hvd_gpu_runtime {
    struct hvd_gpu_config config;
    pthread_mutex_t lock;
    struct hvd_gpu_pool *pool; /* lock, until is_open */
    int device; /* lock */
    _Atomic bool is_open;
    struct hvd_gpu_set *sets; /* the sets that have had their rendezvous */
    struct hvd_gpu_buffer *pack; /* memory for packed tensors; NULL until needed */
    struct hvd_gpu_mark *in_flight[HVD_GPU_QUEUES]; /* launched batches, oldest first */
    struct hvd_gpu_mark **last[HVD_GPU_QUEUES];
    _Atomic int in_flight_count; /* total over all queues */
    struct hvd_gpu_job *jobs; /* submitted jobs that have not ended; gpu_job.h */
    uint64_t numbers; /* number of the last batch agreed on */
    uint64_t turn; /* the batch that may launch next */
    int waiting; /* number of runs that poll the device */
    int64_t checked_ns; /* when NCCL was last asked for errors */
    bool has_failed;
    bool is_stuck; /* the device did not stop, so its memory is never freed */
    struct hvd_gpu_runtime *next_abandoned;
    /* protected by lock; the runtime was destroyed while the launcher was still
     * running */
    bool is_abandoned;
};

/* Called when an entry has ended. */
typedef void hvd_gpu_completed(void *context, struct hvd_entry *entry, int status,
                               const char *text);

/* Creates the runtime, but neither loads the module nor opens a device yet. The caller
 * owns *out. */
int hvd_gpu_create(const struct hvd_gpu_config *config, struct hvd_gpu_runtime **out,
                   struct hvd_error *err);

/* Ends the launcher; call it before the runs are destroyed. Returns false if the device
 * does not stop: then the memory of the runs is never freed. */
bool hvd_gpu_stop(struct hvd_gpu_runtime *gpu);
void hvd_gpu_destroy(struct hvd_gpu_runtime *gpu, bool has_stopped); /* NULL is fine */

/* Opens the device unless it is open. CUDA's threads inherit the floating-point
 * environment of the caller. A second device is an error. Any thread. */
int hvd_gpu_open(struct hvd_gpu_runtime *gpu, int device, struct hvd_error *err);

/* Any thread; does not wait. Returns false for NULL. */
bool hvd_gpu_is_open(const struct hvd_gpu_runtime *gpu);

/* Returns a flag that becomes true when the device is open. */
const _Atomic bool *hvd_gpu_open_flag(const struct hvd_gpu_runtime *gpu);

/* Like hvd_gpu_pool_is_short and hvd_gpu_pool_freed. Any thread; NULL is fine. */
bool hvd_gpu_is_short(struct hvd_gpu_runtime *gpu);
void hvd_gpu_freed(struct hvd_gpu_runtime *gpu);

/* Opens the device whose number is the local rank: for a rank that has joined without
 * ever having had a GPU tensor. */
int hvd_gpu_open_default(struct hvd_gpu_runtime *gpu, struct hvd_error *err);

/* Records a mark on the caller's stream, behind the work that computes the input. The
 * caller owns *out. Any thread; call after hvd_gpu_open. */
int hvd_gpu_mark_input(struct hvd_gpu_runtime *gpu, void *stream,
                       struct hvd_refcount **mark, struct hvd_error *err);

/* Makes the stream wait for a mark. The mark may outlive the GPU. Any thread. */
int hvd_gpu_mark_wait(const struct hvd_refcount *mark, void *stream,
                      struct hvd_error *err);

/* Returns the next batch number. Call it in the agreed order. */
uint64_t hvd_gpu_number(struct hvd_gpu_runtime *gpu);

/* Registers a launched batch, and keeps a reference to the mark of its end. This must be
 * the last mark on its stream. */
void hvd_gpu_launched(struct hvd_gpu_runtime *gpu, enum hvd_gpu_queue queue,
                      struct hvd_gpu_mark *mark);

/* Parks a launched entry, borrowed, until the device reaches its mark, entry->done. */
void hvd_gpu_park(struct hvd_entry *entry);

/* Ends the batches that the device has completed. Sets *moved if there were any. A
 * failure means that the device or NCCL is unusable. */
int hvd_gpu_progress(struct hvd_gpu_runtime *gpu, hvd_gpu_completed *completed,
                     void *context, bool *moved, struct hvd_error *err);

/* Returns when to call hvd_gpu_progress again; -1 if that is not needed. is_waited: a
 * thread waits for a request. */
int64_t hvd_gpu_deadline(const struct hvd_gpu_runtime *gpu, bool is_waited,
                         int64_t now_ns);

/* Whether nothing is in flight. Any thread. */
bool hvd_gpu_is_idle(const struct hvd_gpu_runtime *gpu);

/* For a failed job: aborts NCCL, waits a few seconds at most for the device, and ends all
 * batches in flight with `status`. */
void hvd_gpu_fail(struct hvd_gpu_runtime *gpu, hvd_gpu_completed *completed,
                  void *context, int status, const char *text);

/* Frees the GPU's part of a removed process set, which has no batches left. Its
 * communicators end when the device has completed their work. */
void hvd_gpu_set_destroy(struct hvd_gpu_runtime *gpu, struct hvd_gpu_set *set);

/* Returns the set's window of at least `bytes` bytes, or NULL if it has none: the same on
 * all its ranks. */
char *hvd_gpu_set_window(const struct hvd_gpu_set *set, size_t bytes);

#endif
