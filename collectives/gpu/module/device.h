/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU of this process: its context, streams, communicators and launcher thread.
 *
 * Threads: only the launcher thread calls NCCL, also to ask for errors, except for abort.
 * `lock` guards what both use. */
#ifndef HVD_GPU_DEVICE_H
#define HVD_GPU_DEVICE_H

#include <pthread.h>

#include "collectives/gpu/module/kernels.h"
#include "collectives/gpu/module/nccl.h"

struct hvd_gpu_comm {
    struct hvd_gpu_comm *next;
    struct hvd_gpu_device *device;
    ncclUniqueId id;
    int rank;
    int size;
    struct hvd_nccl_config config; /* NCCL 2.14 to 2.17 keeps a pointer to it */
    ncclComm_t handle; /* lock; NULL: not connected yet, or aborted */
    pthread_t aborter;
    bool has_aborter;
    bool wants_look; /* lock: the launcher asks NCCL for errors */
    struct hvd_error found; /* lock; status 0: NCCL has told of none */
    bool is_patient; /* the launcher's: NCCL can end it without blocking */
    bool waits_to_end; /* the launcher's: ending it would wait for other ranks */
    /* The sum with a factor, created when first needed. The launcher's. */
    int scaled_op;
    int scaled_dtype;
    double scaled_factor;
    bool has_scaled;
    /* It ends before the device. */
    _Atomic bool is_leaving;
    /* The launcher's: */
    enum hvd_gpu_queue queue; /* of its works */
    bool has_left; /* it has ended, or ends with the device */
    bool is_finalized; /* ncclCommFinalize was called */
    struct hvd_gpu_event *last_use; /* NULL: not recorded yet */
};

struct hvd_gpu_device {
    _Atomic int owners; /* its opener and its events */
    const struct hvd_cuda *cuda;
    const struct hvd_nccl *nccl; /* NULL: not searched for, or there is none */
    int ordinal; /* in CUDA's list */
    int number; /* the driver's handle */
    CUcontext ctx;
    CUstream streams[HVD_GPU_QUEUES];
    CUstream clock; /* timing.c's, the launcher's; NULL: nothing measured yet */
    struct hvd_gpu_anchor *anchor; /* the launcher's, too */
    int64_t anchor_tried_ns; /* when one was last made, or could not be made; 0: never */
    struct hvd_gpu_kernels kernels;
    void (*wake)(void *context);
    void *context;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* work was submitted, or the launcher has changed a flag */
    struct hvd_gpu_work *first; /* lock; so the rest of the list */
    struct hvd_gpu_work **end;
    struct hvd_gpu_comm *comms; /* lock */
    int leaving; /* lock; number of comms that are leaving */
    int looks; /* lock; of those that want a look */
    /* the launcher's: status of the first work that failed; no other is begun */
    int failed;
    struct hvd_error failure;
    bool must_stop;
    bool is_busy; /* the launcher has a work */
    bool has_stopped; /* the launcher has ended */
    bool is_aborting; /* the aborting thread runs or has run */
    bool has_aborted; /* that thread has ended */
    _Atomic bool is_aborted;
    pthread_t launcher;
    bool has_launcher;
    pthread_t aborter; /* the progress thread's, before stop */
    bool has_aborter;
};

/* Makes the device's context current on the thread, until hvd_device_leave; meanwhile it
 * may do what a capture of a CUDA graph by another thread forbids. */
int hvd_device_enter(struct hvd_gpu_device *device, struct hvd_error *err);
void hvd_device_leave(struct hvd_gpu_device *device);

/* Whether a stream of the framework can be used: it is not being captured. In between. */
int hvd_device_check_stream(const struct hvd_gpu_device *device, CUstream stream,
                            struct hvd_error *err);

int hvd_device_open(const struct hvd_gpu_opening *opening, struct hvd_gpu_device **out,
                    struct hvd_error *err);
void hvd_device_close(struct hvd_gpu_device *device);
void hvd_device_drop(struct hvd_gpu_device *device); /* drops one owner */

/* event.c */
int hvd_event_create(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
                     struct hvd_error *err);
void hvd_event_destroy(struct hvd_gpu_event *event);
int hvd_event_record(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);
int hvd_event_record_on(struct hvd_gpu_event *event, void *stream,
                        struct hvd_error *err); /* likewise, on one of the framework */
int hvd_event_test(struct hvd_gpu_event *event, struct hvd_error *err);
int hvd_event_wait(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);
CUevent hvd_event_handle(const struct hvd_gpu_event *event);

/* launcher.c */
int hvd_launcher_start(struct hvd_gpu_device *device, struct hvd_error *err);
void hvd_launcher_submit(struct hvd_gpu_device *device, struct hvd_gpu_work *work);
void hvd_launcher_abort(struct hvd_gpu_device *device);
bool hvd_launcher_stop(struct hvd_gpu_device *device, int timeout_ms);

/* links.c */
int32_t hvd_links_has_dma_buf(const struct hvd_gpu_device *device);
int32_t hvd_links_is_on_switch(const struct hvd_gpu_device *device);
int32_t hvd_links_orders_writes(const struct hvd_gpu_device *device);
enum hvd_gpu_link hvd_links_between(const unsigned char one[HVD_GPU_UUID_BYTES],
                                    const unsigned char other[HVD_GPU_UUID_BYTES]);

/* comm.c */
int hvd_comm_identify(struct hvd_gpu_device *device, bool makes_id,
                      struct hvd_gpu_identity *identity, struct hvd_error *err);
int hvd_comm_create(struct hvd_gpu_device *device, const unsigned char *id, int rank,
                    int size, struct hvd_gpu_comm **out, struct hvd_error *err);
int hvd_comm_check(struct hvd_gpu_comm *comm, struct hvd_error *err);
void hvd_comm_look(
    struct hvd_gpu_comm *comm); /* launcher, lock held: for the next check */
/* Launcher: connect waits for the other ranks; await for a function of NCCL that has
 * returned NCCL_IN_PROGRESS. Both give up, and abort the communicator, once the device is
 * aborted. */
int hvd_comm_connect(struct hvd_gpu_comm *comm, struct hvd_error *err);
int hvd_comm_await(struct hvd_gpu_comm *comm, const char *function,
                   struct hvd_error *err);
ncclComm_t hvd_comm_handle(struct hvd_gpu_comm *comm); /* lock not held; NULL: aborted */
void hvd_comm_abort(struct hvd_gpu_comm *comm); /* lock not held */
void hvd_comm_end(struct hvd_gpu_comm *comm); /* launcher; leaves the struct */
void hvd_comm_destroy(struct hvd_gpu_comm *comm);
/* Launcher, until has_left: ends one that is_leaving, as far as possible without waiting.
 * Returns true when only the struct is left. */
bool hvd_comm_leave(struct hvd_gpu_comm *comm);

/* steps.c, launcher: puts the work's steps on its stream. */
int hvd_steps_run(struct hvd_gpu_device *device, struct hvd_gpu_work *work);

#endif
