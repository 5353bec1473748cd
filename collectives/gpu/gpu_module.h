/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of hvd_gpu.so, which libhvd loads: one GPU of this process, and NCCL on
 * it.
 *
 * libhvd loads the module when the first GPU tensor appears and looks up
 * HVD_GPU_MODULE_SYMBOL. The module finds the CUDA driver and NCCL at run time, and is
 * built without their headers. It knows no tensors, ranks or batches: libhvd passes it
 * work, which is a list of steps.
 *
 *   libhvd     submit(work)  ------>  launcher thread: puts the steps on a stream, in the
 *                                     order of submission, sets work->status, calls wake
 *              event_test    <------  the device has reached the end of the work
 *
 * Nothing here waits for the device. Only the launcher thread may wait for other ranks,
 * while NCCL connects.
 *
 * Errors: int functions return 0 or a negative enum hvd_status, with a text in err. */
#ifndef HVD_GPU_MODULE_H
#define HVD_GPU_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

#define HVD_GPU_MODULE_VERSION 12
#define HVD_GPU_MODULE_SYMBOL "hvd_gpu_module"

enum {
    HVD_GPU_ID_BYTES = 128, /* length of NCCL's unique id */
    HVD_GPU_UUID_BYTES = 16,
    HVD_GPU_BUS_BYTES = 16, /* length of a PCI bus id, "0000:3b:00.0" */
    HVD_GPU_HANDLE_BYTES = 64, /* length of CUDA's name for memory of another process */
    /* the most tensors and ranks of HVD_GPU_PUSH */
    HVD_GPU_PUSH_TENSORS = 144,
    HVD_GPU_PUSH_RANKS = 16,
};

struct hvd_gpu_device;
struct hvd_gpu_comm;
struct hvd_gpu_event;

/* Where a recorded event is on a stream of the framework: if two events are on one
 * stream, the one with the larger number comes later. */
struct hvd_gpu_position {
    uint64_t stream; /* 0: unknown, because the driver does not tell streams apart */
    uint64_t number;
};

/* The streams of a device, each one a queue. */
enum hvd_gpu_queue {
    HVD_GPU_COLLECT, /* NCCL, kernels, and copies within the device; high priority */
    /* copies to the host, and sums of data that other nodes sent to the device; waits
     * only for events that are already recorded, never for other ranks */
    HVD_GPU_IN,
    HVD_GPU_OUT, /* copies to the device */
    HVD_GPU_QUEUES
};

enum hvd_gpu_memory_kind {
    HVD_GPU_DEVICE_MEMORY,
    HVD_GPU_HOST_MEMORY, /* pinned */
    HVD_GPU_MEMORY_KINDS
};

enum hvd_gpu_step_kind {
    HVD_GPU_FOLLOW, /* later steps wait for `event` */
    HVD_GPU_COPY, /* copies count bytes, between host and device or within the device */
    HVD_GPU_ZERO, /* clears count bytes at `to` */
    /* By a kernel: converts `count` elements from dtype to to_dtype, multiplied by factor
     * and divided by divisor; writes zeros if `from` is NULL. Rounds as hvd_reduce does
     * (reduce.h). To move bits unchanged, use HVD_UINT8 and factor 1. Consecutive steps
     * that differ only in from, to and count are launched together, so none may read
     * memory that another one writes; `to` may equal `from` of the same step. */
    HVD_GPU_MOVE,
    /* By a kernel: reduces `count` elements of dtype (at least 1) of `sources` ranks by
     * op, in order of rank, with the same bits as hvd_reduce. The elements of rank `peer`
     * are at `own`; those of the other ranks are at `from`, `stride` bytes apart. `to`
     * may equal `own`. 16-bit integers and bool are not supported. */
    HVD_GPU_SUM_UP,
    /* By a kernel; no effect if there are no kernels: sets `count` floats of dtype at
     * `to`, the result of an earlier collective, to NaN if the device has been aborted.
     * Consecutive steps of one dtype are launched together. */
    HVD_GPU_POISON,
    /* By a kernel: reduces `count` floats of dtype by SUM over all ranks of `inbox`, in
     * order of rank, with the bits of hvd_reduce. Every rank's elements are multiplied by
     * factor, the sum by `after`. They travel as to_dtype, another type only if dtype is
     * float32. `from` NULL: zeros. `to` NULL: the sum is dropped. Consecutive steps are
     * one launch, so they may differ only in from, to and count. After an abort, results
     * are NaN. */
    HVD_GPU_PUSH,
    /* Registers the window at `to`, see struct hvd_gpu_window; alone in its work. */
    HVD_GPU_REGISTER,
    /* Allocate the inbox at `to`, and open those of the other ranks for it, see struct
     * hvd_gpu_inbox; each alone in its work. */
    HVD_GPU_ALLOCATE_INBOX,
    HVD_GPU_OPEN_INBOX,
    /* Collectives of the work's comm; `from` may equal `to`; `count` elements of
     * dtype. */
    HVD_GPU_ALLREDUCE,
    HVD_GPU_ALLGATHER, /* count: elements from each rank */
    HVD_GPU_BROADCAST, /* from rank `peer` */
    HVD_GPU_REDUCESCATTER, /* count: elements for each rank */
    HVD_GPU_REDUCE, /* to rank `peer` */
    HVD_GPU_SEND, /* to rank `peer` */
    HVD_GPU_RECV, /* from rank `peer` */
    /* The collectives between these two are one NCCL operation. */
    HVD_GPU_GROUP,
    HVD_GPU_GROUP_END,
};

/* Pointers are borrowed until the device reaches the end of the work. */
struct hvd_gpu_step {
    enum hvd_gpu_step_kind kind;
    const void *from;
    void *to;
    int64_t count;
    enum hvd_dtype dtype;
    enum hvd_op op; /* AVERAGE, SUM, MIN, MAX, PRODUCT */
    double factor; /* ALLREDUCE with SUM: factor for each rank's elements */
    uint32_t divisor; /* MOVE of integers; 0 and 1 mean none */
    /* For MOVE. It differs from dtype only if one of the two is float32 and the other is
     * another floating-point type. For a 16-bit integer or bool it must be equal. */
    enum hvd_dtype to_dtype;
    int peer;
    /* The following three are for SUM_UP. */
    int sources; /* at least 2 */
    const void *own;
    int64_t stride; /* bytes */
    /* The following two are for PUSH. */
    double after;
    struct hvd_gpu_inbox *inbox;
    struct hvd_gpu_event *event;
};

/* Memory of this rank's GPU into which the ranks of a communicator store tensors: see
 * HVD_GPU_PUSH. All of them open each other's inboxes by their handles. The two steps may
 * take as long as all work of the device; their outcome is valid once the device has
 * reached the end of the work. */
struct hvd_gpu_inbox {
    struct hvd_gpu_comm *comm; /* for the module's use */
    size_t slot_bytes; /* for the tensors of one rank */
    /* why the last of the two steps has failed; status 0: it has not */
    struct hvd_error error;
    /* HVD_GPU_ALLOCATE_INBOX sets that of this rank; libhvd sets those of all ranks
     * before HVD_GPU_OPEN_INBOX */
    unsigned char handles[HVD_GPU_PUSH_RANKS][HVD_GPU_HANDLE_BYTES];
    /* of a launch: HVD_GPU_ALLOCATE_INBOX sets the number that the device can run at
     * once; libhvd sets it to the same number on all ranks. Less than 1 counts as 1. */
    int blocks;
    /* The following five are for the module's use. next: in the list of inboxes to free.
     * memory: NULL if not allocated. is_shared: other ranks may store into it soon.
     * peers: the inboxes of all ranks. calls: number of launches */
    struct hvd_gpu_inbox *next;
    char *memory;
    bool is_shared;
    char *peers[HVD_GPU_PUSH_RANKS];
    uint64_t calls;
};

enum hvd_gpu_window_state {
    HVD_GPU_WINDOW_ALLOCATED,
    HVD_GPU_WINDOW_REGISTERED,
    HVD_GPU_WINDOW_REFUSED, /* this NCCL registers no windows for these GPUs */
    HVD_GPU_WINDOW_FAILED, /* the communicator was aborted; see error */
};

/* Memory of NCCL that is registered in a communicator, at the same offset and of the same
 * size on all ranks, so that kernels of NCCL may access it on other ranks. An operation
 * uses the windows of all ranks or of none. */
struct hvd_gpu_window {
    struct hvd_gpu_window *next; /* this and comm: for the module's use */
    struct hvd_gpu_comm *comm;
    void *memory;
    size_t bytes;
    void *handle; /* NCCL's; NULL: not registered */
    /* changed by HVD_GPU_REGISTER, valid once its work is launched */
    enum hvd_gpu_window_state state;
    struct hvd_error error; /* state FAILED */
};

/* The kinds of activity that are measured. */
enum hvd_gpu_span_kind {
    HVD_GPU_CONNECTS, /* the launcher waits while NCCL connects to the other ranks */
    HVD_GPU_AWAITS, /* waits for events */
    HVD_GPU_MOVES, /* all other steps */
    HVD_GPU_COLLECTS, /* a collective, or a group of them */
};

struct hvd_gpu_span {
    enum hvd_gpu_span_kind kind;
    enum hvd_gpu_step_kind step; /* COLLECTS: kind of the first step */
    int64_t begin_ns; /* on the host's CLOCK_MONOTONIC */
    int64_t end_ns;
};

enum {
    HVD_GPU_MOST_SPANS = 14, /* spans per work; the last one includes all that follow */
};

struct hvd_gpu_timing;

/* A list of steps. The module owns it from submit until status is set. */
struct hvd_gpu_work {
    struct hvd_gpu_work *next; /* for the module's use */
    enum hvd_gpu_queue queue;
    struct hvd_gpu_comm *comm; /* NULL without collectives */
    struct hvd_gpu_step *steps; /* [count] */
    int count;
    struct hvd_gpu_event *done; /* recorded after the last step */
    struct hvd_gpu_timing *timing; /* NULL if not measured */
    _Atomic int status; /* HVD_INPROGRESS until all steps are on the stream */
    struct hvd_error error; /* set before status < 0 */
};

/* A library found on this machine. problem: "" if the library is usable. */
struct hvd_gpu_library {
    int version; /* CUDA: 12040, NCCL: 21803; 0 if not found */
    char file[256]; /* "" if not found */
    char problem[256];
};

struct hvd_gpu_facts {
    struct hvd_gpu_library cuda;
    struct hvd_gpu_library nccl;
    /* the module contains kernels; the driver may still reject them when a device is
     * opened */
    bool has_kernels;
    /* the devices the kernels are built for, or the reason why there are none */
    char kernels[128];
};

/* Facts about a rank's GPU that it sends to the other ranks before they connect. */
struct hvd_gpu_identity {
    int32_t nccl_version; /* 0 if there is no usable NCCL */
    int32_t has_host_id; /* NCCL_HOSTID is set: ranks may share a GPU */
    /* NCCL_MULTI_RANK_GPU_ENABLE is set, and NCCL knows it: ranks may share a GPU if all
     * of them agree */
    int32_t may_share;
    int32_t has_kernels; /* HVD_GPU_MOVE is supported */
    unsigned char uuid[HVD_GPU_UUID_BYTES];
    unsigned char id[HVD_GPU_ID_BYTES]; /* zero unless requested */
    /* the same for all MIG slices of a GPU, which differ in uuid */
    char bus_id[HVD_GPU_BUS_BYTES];
    int32_t has_dma_buf; /* network adapters can access the GPU's memory by dma-buf */
    int32_t is_on_switch; /* the GPU's NVLink switch can add (NVLink SHARP) */
    /* data that adapters have written is visible to the next kernel */
    int32_t orders_writes;
    int32_t network; /* filled in by libhvd, see gpu_connectivity.h */
};

/* The link between two GPUs of a node. */
enum hvd_gpu_link {
    HVD_GPU_LINK_UNKNOWN, /* this process does not see both, or CUDA does not tell */
    HVD_GPU_LINK_NONE, /* they cannot reach each other's memory */
    HVD_GPU_LINK_PCIE,
    HVD_GPU_LINK_NVLINK, /* detected by atomic operations, which PCIe lacks */
};

struct hvd_gpu_opening {
    int device; /* index in CUDA's list */
    /* called by the launcher thread when the status of a work is set */
    void (*wake)(void *context);
    void *context;
};

struct hvd_gpu_module {
    int version; /* the module's HVD_GPU_MODULE_VERSION */

    /* Finds the libraries without touching a device. nccl_file: a library to prefer to
     * all others, or NULL. Any thread. */
    void (*probe)(const char *nccl_file, struct hvd_gpu_facts *facts);

    /* Returns the number of CUDA devices that this process sees, or a failure. */
    int (*count)(struct hvd_error *err);

    /* Opens a device and starts its launcher thread. The caller owns *out. */
    int (*open)(const struct hvd_gpu_opening *opening, struct hvd_gpu_device **out,
                struct hvd_error *err);

    /* Returns why the device has no kernels for HVD_GPU_MOVE, NULL if it has. Valid until
     * close. Any thread. */
    const char *(*no_kernels)(const struct hvd_gpu_device *device);

    /* Aborts NCCL; from now on all work fails. Does not wait. */
    void (*abort)(struct hvd_gpu_device *device);

    /* Runs the submitted work, or drops it after an abort, and ends the launcher thread
     * and the communicators. Returns false if that takes longer than timeout_ms because
     * NCCL or the device does not return: then the work and its memory stay in use, and
     * the device must not be closed. */
    bool (*stop)(struct hvd_gpu_device *device, int timeout_ms);

    /* Call after stop. Events may outlive the device: they can still be tested, waited
     * for and destroyed. */
    void (*close)(struct hvd_gpu_device *device);

    /* Events, which are kept for reuse. stream: a cudaStream_t of the framework. While it
     * is captured into a CUDA graph, the functions return HVD_ERR_UNSUPPORTED. record and
     * wait: any thread. record sets *position, unless that is NULL. wait has no effect if
     * the stream is one of the last that wait for this event. test returns HVD_INPROGRESS
     * until the device has reached the event; call it after record. */
    int (*event_create)(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
                        struct hvd_error *err);
    void (*event_destroy)(struct hvd_gpu_event *event); /* NULL is fine */
    int (*event_record)(struct hvd_gpu_event *event, void *stream,
                        struct hvd_gpu_position *position, struct hvd_error *err);
    int (*event_test)(struct hvd_gpu_event *event, struct hvd_error *err);
    int (*event_wait)(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);

    /* Makes the device's context current on the calling thread until leave, for libraries
     * that use the device's memory. Returns false if that fails; then do not call leave.
     * Any thread. */
    bool (*enter)(struct hvd_gpu_device *device);
    void (*leave)(struct hvd_gpu_device *device);

    /* Memory is aligned to 256 bytes. Any thread. */
    int (*alloc)(struct hvd_gpu_device *device, enum hvd_gpu_memory_kind memory_kind,
                 size_t bytes, void **out, struct hvd_error *err);
    void (*free)(struct hvd_gpu_device *device, enum hvd_gpu_memory_kind memory_kind,
                 void *memory);

    /* Like free, but by a thread: free waits for all work of the device, perhaps for that
     * which waits for a rank that has died. await_retired waits for this thread; returns
     * false if it does not end within timeout_ms. stop waits for it, too. Any thread. */
    void (*retire)(struct hvd_gpu_device *device, enum hvd_gpu_memory_kind memory_kind,
                   void *memory);
    bool (*await_retired)(struct hvd_gpu_device *device, int timeout_ms);

    /* Copies on a stream of the framework. Any thread. */
    int (*copy)(struct hvd_gpu_device *device, void *to, const void *from, size_t bytes,
                void *stream, struct hvd_error *err);

    /* Fills in the identity of this rank. If makes_id, the identity gets a new NCCL id
     * for all ranks. */
    int (*identify)(struct hvd_gpu_device *device, bool makes_id,
                    struct hvd_gpu_identity *identity, struct hvd_error *err);

    /* Returns how two GPUs of this node, given by uuid, are linked. Any thread. */
    enum hvd_gpu_link (*link)(const unsigned char one[HVD_GPU_UUID_BYTES],
                              const unsigned char other[HVD_GPU_UUID_BYTES]);

    /* Creates a communicator of size ranks, all of which pass the same id. It connects
     * with its first work, and all its works use the queue of that work. All ranks must
     * submit works in the same order, across communicators. The device owns *out. */
    int (*comm_create)(struct hvd_gpu_device *device, const unsigned char *id, int rank,
                       int size, struct hvd_gpu_comm **out, struct hvd_error *err);

    /* Returns the failure of a launched collective, as far as the launcher knows it, and
     * makes the launcher ask NCCL again. */
    int (*comm_check)(struct hvd_gpu_comm *comm, struct hvd_error *err);

    /* Ends the communicator once the device has completed its work. Does not wait. comm
     * is invalid from now on. All its ranks must call this, in any order. */
    void (*comm_destroy)(struct hvd_gpu_comm *comm);

    /* Like comm_destroy, for a communicator that has failed on some rank: aborts it once
     * the device has completed this rank's work. */
    void (*comm_abandon)(struct hvd_gpu_comm *comm);

    /* Allocates a window of NCCL 2.27 or later; the next work of comm may register it.
     * The communicator owns *out, deregisters it and frees it when it ends.
     * window_destroy frees one that is not registered. */
    int (*window_create)(struct hvd_gpu_comm *comm, size_t bytes,
                         struct hvd_gpu_window **out, struct hvd_error *err);
    void (*window_destroy)(struct hvd_gpu_window *window);

    /* Creates the inbox of a communicator, without memory; slot_bytes: a multiple of 16,
     * the same on all ranks. The communicator owns *out and frees it when it ends;
     * destroy does so before. NULL is fine. */
    int (*inbox_create)(struct hvd_gpu_comm *comm, size_t slot_bytes,
                        struct hvd_gpu_inbox **out, struct hvd_error *err);
    void (*inbox_destroy)(struct hvd_gpu_inbox *inbox);

    void (*submit)(struct hvd_gpu_device *device, struct hvd_gpu_work *work);

    /* Measures one work. Its events cost the device a few microseconds. If measuring
     * fails, the work does not. read, called after work->done, returns the number of
     * spans, in order; 0 if the work could not be measured. The caller owns *out, which
     * may outlive the device, like an event. */
    int (*timing_create)(struct hvd_gpu_device *device, struct hvd_gpu_timing **out,
                         struct hvd_error *err);
    int (*timing_read)(struct hvd_gpu_timing *timing,
                       struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS]);
    void (*timing_destroy)(struct hvd_gpu_timing *timing); /* NULL is fine */
};

#endif
