/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU of this process: its context, streams, communicators and launcher thread.
 *
 * Threads: only the launcher thread calls NCCL, even to ask for errors; ncclCommAbort and
 * ncclMemFree are the exceptions. `lock` guards the fields that several threads use: they
 * are marked "lock". Fields marked "launcher" belong to the launcher thread. */
#ifndef HVD_GPU_DEVICE_H
#define HVD_GPU_DEVICE_H

#include <pthread.h>
#include <time.h>

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
    bool wants_look; /* lock; true: the launcher shall ask NCCL for errors */
    struct hvd_error found; /* lock; the error that NCCL has reported; status 0: none */
    bool is_patient; /* launcher; NCCL can finalize the communicator without blocking */
    /* launcher; destroying the communicator would wait for other ranks */
    bool waits_to_end;
    /* launcher; NCCL's operation for a sum with a factor, created at first use */
    int scaled_op;
    int scaled_dtype;
    double scaled_factor;
    bool has_scaled;
    struct hvd_gpu_window *windows; /* lock */
    struct hvd_gpu_inbox *inbox; /* NULL: none */
    /* hvd_comm_abandon was called; set before is_leaving */
    bool is_abandoned;
    /* hvd_comm_destroy was called: the communicator is to end before the device does */
    _Atomic bool is_leaving;
    /* The launcher alone uses the following fields. */
    enum hvd_gpu_queue queue; /* the queue of the communicator's work */
    bool has_left; /* the communicator has ended, or will end with the device */
    bool is_finalized; /* ncclCommFinalize was called */
    /* recorded when the communicator began to leave; NULL: not recorded yet */
    struct hvd_gpu_event *last_use;
};

enum {
    HVD_GPU_EVENT_WAITERS = 4, /* a training uses few streams for its collectives */
};

struct hvd_gpu_event {
    struct hvd_gpu_event *next; /* while it is kept for reuse */
    /* the event holds a reference to it unless it is kept */
    struct hvd_gpu_device *device;
    CUevent handle;
    /* ids of the last streams that wait for the event as recorded now; 0: none */
    _Atomic uint64_t waiters[HVD_GPU_EVENT_WAITERS];
};

/* Memory to free. */
struct hvd_gpu_memory {
    struct hvd_gpu_memory *next;
    enum hvd_gpu_memory_kind memory_kind;
    void *address;
};

struct hvd_gpu_device {
    _Atomic int owners; /* the caller of hvd_device_open, the events and the timings */
    const struct hvd_cuda *cuda;
    const struct hvd_nccl *nccl; /* NULL: not looked for yet, or not found */
    int ordinal; /* index in CUDA's list of devices */
    int number; /* the driver's handle */
    CUcontext ctx;
    CUstream streams[HVD_GPU_QUEUES];
    /* launcher; the stream of timing.c; NULL: nothing has been measured yet */
    CUstream clock;
    struct hvd_gpu_anchor *anchor; /* launcher */
    int64_t anchor_tried_ns; /* time of the last attempt to make an anchor; 0: none yet */
    struct hvd_gpu_kernels kernels;
    void (*wake)(void *context);
    void *context;

    pthread_mutex_t event_lock;
    struct hvd_gpu_event *kept_events; /* event_lock */
    /* Guards the order of recordings and waits on the streams of the framework. A thread
     * may hold it for long, if a stream is full, so the launcher and libhvd's progress
     * thread do not take it. */
    pthread_mutex_t order_lock;
    uint64_t recordings; /* order_lock */

    pthread_mutex_t lock;
    /* signalled when work is submitted or the launcher has changed a flag */
    pthread_cond_t changed;
    struct hvd_gpu_work *first; /* lock; list of submitted work */
    struct hvd_gpu_work **end;
    struct hvd_gpu_comm *comms; /* lock */
    int leaving; /* lock; number of communicators that are leaving */
    int looks; /* lock; number of communicators with wants_look */
    /* lock; see hvd_device_retire and hvd_memory_retire */
    struct hvd_gpu_window *retired;
    struct hvd_gpu_inbox *retired_inboxes;
    struct hvd_gpu_memory *retired_memory;
    bool is_freeing; /* lock; a thread frees these three */
    /* launcher; status of the first work that failed; later work is refused */
    int failed;
    struct hvd_error failure;
    bool must_stop;
    /* launcher; while the device stops, until when all communicators together may wait
     * for its work; 0: it does not stop yet */
    int64_t settle_end_ns;
    bool is_busy; /* the launcher is running a work or ending communicators */
    bool has_stopped; /* the launcher has ended */
    bool is_aborting; /* an abort has begun */
    bool has_aborted; /* the abort is complete */
    _Atomic bool is_aborted;
    pthread_t launcher;
    bool has_launcher;
    /* for the progress thread only; started by hvd_launcher_abort, ended by
     * hvd_launcher_stop */
    pthread_t aborter;
    bool has_aborter;
};

/* Makes the device's context current on the calling thread until hvd_device_leave.
 * Meanwhile the thread may make calls that a CUDA graph capture of another thread would
 * forbid. */
int hvd_device_enter(struct hvd_gpu_device *device, struct hvd_error *err);
void hvd_device_leave(struct hvd_gpu_device *device);

/* Returns the time in `ms`, for waits on device->changed. */
struct timespec hvd_device_after(int ms);
/* Waits up to `ms` until *flag equals `wanted`; call with the lock held. Returns whether
 * it does. */
bool hvd_device_await(struct hvd_gpu_device *device, const bool *flag, bool wanted,
                      int ms);

/* Fails if a stream of the framework is being captured. Call between hvd_device_enter and
 * hvd_device_leave. */
int hvd_device_check_stream(const struct hvd_gpu_device *device, CUstream stream,
                            struct hvd_error *err);

int hvd_device_open(const struct hvd_gpu_opening *opening, struct hvd_gpu_device **out,
                    struct hvd_error *err);
void hvd_device_close(struct hvd_gpu_device *device);
/* Drops one reference; the last one frees the device. */
void hvd_device_drop(struct hvd_gpu_device *device);

/* event.c */
int hvd_event_create(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
                     struct hvd_error *err);
void hvd_event_destroy(struct hvd_gpu_event *event);
int hvd_event_record(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);
/* Records on a stream of the framework; fails while that stream is being captured.
 * position may be NULL. */
int hvd_event_record_on(struct hvd_gpu_event *event, void *stream,
                        struct hvd_gpu_position *position, struct hvd_error *err);
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
/* Launcher thread, with the lock held: stores NCCL's error for the next
 * hvd_comm_check. */
void hvd_comm_look(struct hvd_gpu_comm *comm);
/* Launcher thread only. connect waits for the other ranks; await waits until a function
 * of NCCL that has returned NCCL_IN_PROGRESS is complete. Both abort the communicator and
 * fail once the device is aborted. await_until also fails when it is later than end_ns,
 * by hvd_clock_ns. */
int hvd_comm_connect(struct hvd_gpu_comm *comm, struct hvd_error *err);
int hvd_comm_await(struct hvd_gpu_comm *comm, const char *function,
                   struct hvd_error *err);
int hvd_comm_await_until(struct hvd_gpu_comm *comm, const char *function, int64_t end_ns,
                         struct hvd_error *err);
/* Call without the lock. Returns NULL if the communicator was aborted. */
ncclComm_t hvd_comm_handle(struct hvd_gpu_comm *comm);
/* Aborts NCCL's communicator. Call without the lock. */
void hvd_comm_abort(struct hvd_gpu_comm *comm);
/* Launcher thread only. Destroys or aborts NCCL's communicator; the struct remains. */
void hvd_comm_end(struct hvd_gpu_comm *comm);
void hvd_comm_destroy(struct hvd_gpu_comm *comm);
void hvd_comm_abandon(struct hvd_gpu_comm *comm);
/* Waits until the device has completed the work on the communicator's stream. Returns
 * HVD_INPROGRESS if it has not within `ms`. */
int hvd_comm_settle(struct hvd_gpu_comm *comm, int ms, struct hvd_error *err);
/* Launcher thread only, when the device stops: from now on, the ends of all communicators
 * together wait no longer for the device than that of one would. */
void hvd_comm_limit_ends(struct hvd_gpu_device *device);
/* Launcher thread only; call until has_left is set. Ends a communicator that is_leaving,
 * as far as that is possible without waiting for other ranks. Returns true when only the
 * struct is left to free. */
bool hvd_comm_leave(struct hvd_gpu_comm *comm);

/* retired.c. Any thread: lets another thread free windows, a list, and an inbox that the
 * device no longer uses and that no communicator owns; both may be NULL. Freeing may take
 * as long as all work of the device. */
void hvd_device_retire(struct hvd_gpu_device *device, struct hvd_gpu_window *windows,
                       struct hvd_gpu_inbox *inbox);

/* retired.c. Any thread; see struct hvd_gpu_module. */
void hvd_memory_free(struct hvd_gpu_device *device, enum hvd_gpu_memory_kind memory_kind,
                     void *address);
void hvd_memory_retire(struct hvd_gpu_device *device,
                       enum hvd_gpu_memory_kind memory_kind, void *address);
bool hvd_memory_await(struct hvd_gpu_device *device, int timeout_ms);

/* retired.c. Frees a window that is in no list. */
void hvd_window_free(struct hvd_gpu_device *device, struct hvd_gpu_window *window);

/* window.c and window_register.c. register fails if the device has failed or is aborted:
 * NCCL's own answer is in window->state. It and deregister_all are for the launcher
 * thread. Call deregister_all and free_all when the device no longer uses the windows;
 * free_all also when NCCL does not. */
int hvd_window_create(struct hvd_gpu_comm *comm, size_t bytes,
                      struct hvd_gpu_window **out, struct hvd_error *err);
void hvd_window_destroy(struct hvd_gpu_window *window);
int hvd_window_register(struct hvd_gpu_window *window, struct hvd_error *err);
void hvd_window_deregister_all(struct hvd_gpu_comm *comm, ncclComm_t handle);
void hvd_window_free_all(struct hvd_gpu_comm *comm);

/* steps.c. Launcher thread only: puts the work's steps on its stream. */
int hvd_steps_run(struct hvd_gpu_device *device, struct hvd_gpu_work *work);

#endif
