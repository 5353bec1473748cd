/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd_gpu.so offers to libhvd: one GPU of this process, and NCCL on it.
 *
 * libhvd loads the module when the first GPU tensor appears and looks up
 * HVD_GPU_MODULE_SYMBOL. The module finds the CUDA driver and NCCL at run time, and is built
 * without their headers. It knows no tensors, ranks or batches: libhvd gives it work, which is a
 * list of steps.
 *
 *   libhvd     submit(work)  ------>  launcher thread: puts the steps on a stream, in the order
 *                                     of submission, sets work->status and calls wake
 *              event_test    <------  the device has reached the end of the work
 *
 * Nothing here waits for the device. Only the launcher thread may wait for other ranks: when
 * NCCL connects.
 *
 * Errors: int functions return 0 or a negative enum hvd_status and a text in err. */
#ifndef HVD_GPU_MODULE_H
#define HVD_GPU_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

#define HVD_GPU_MODULE_VERSION 7
#define HVD_GPU_MODULE_SYMBOL "hvd_gpu_module"

enum {
    HVD_GPU_ID_BYTES = 128, /* of NCCL's unique id */
    HVD_GPU_UUID_BYTES = 16,
    HVD_GPU_BUS_BYTES = 16, /* of a PCI bus id, "0000:3b:00.0" */
};

struct hvd_gpu_device;
struct hvd_gpu_comm;
struct hvd_gpu_event;

/* The streams of a device, each a queue. */
enum hvd_gpu_queue {
    HVD_GPU_COLLECT, /* NCCL, kernels, and copies on the device; of high priority */
    HVD_GPU_IN, /* copies to the host; sums of what other nodes have sent to the device. Waits only
                 * for events that are recorded already, and never for other ranks */
    HVD_GPU_OUT, /* copies to the device */
    HVD_GPU_QUEUES
};

enum hvd_gpu_place {
    HVD_GPU_DEVICE_MEMORY,
    HVD_GPU_HOST_MEMORY, /* pinned */
    HVD_GPU_PLACES
};

enum hvd_gpu_step_kind {
    HVD_GPU_FOLLOW, /* the steps behind it wait for event */
    HVD_GPU_COPY, /* count bytes, between host and device or on the device */
    HVD_GPU_ZERO, /* count bytes at to */
    /* By a kernel: count elements of dtype to as many of to_dtype, times factor, divided by divisor;
     * from NULL: zeros. Rounds as hvd_reduce does, see reduce.h. Bits that do not change are moved as
     * HVD_UINT8 times 1. Consecutive ones that differ only in from, to and count are one launch: none
     * may read what another writes, but to may be its own from. */
    HVD_GPU_MOVE,
    /* By a kernel: reduces count elements of dtype, at least 1, of `sources` ranks by op, in order of
     * rank, with the bits of hvd_reduce. Those of rank `peer` are at own, those of the others at from,
     * one stride apart. to may be own. Not for 16-bit integers or bool. */
    HVD_GPU_SUM_UP,
    /* By a kernel, if there are any: count floats of dtype at to, the result of a collective before, become
     * NaN if the device has been aborted. Consecutive ones of one dtype are one launch. */
    HVD_GPU_POISON,
    /* Collectives of the work's comm; from may be to. count: elements of dtype. */
    HVD_GPU_ALLREDUCE,
    HVD_GPU_ALLGATHER, /* count of each rank */
    HVD_GPU_BROADCAST, /* from rank peer */
    HVD_GPU_REDUCESCATTER, /* count that each rank gets */
    HVD_GPU_REDUCE, /* to rank peer */
    HVD_GPU_SEND, /* to rank peer */
    HVD_GPU_RECV, /* from rank peer */
    /* The collectives between the two are one operation of NCCL. */
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
    double factor; /* of SUM: for each rank's elements */
    uint32_t divisor; /* of MOVE, of integers; 0 and 1: none */
    enum hvd_dtype
        to_dtype; /* of MOVE: dtype, but not of 16-bit integers or bool; or float32
                              * of any float, and back */
    int peer;
    /* Of SUM_UP: */
    int sources; /* at least 2 */
    const void *own;
    int64_t stride; /* bytes */
    struct hvd_gpu_event *event;
};

/* What the device did for a work. */
enum hvd_gpu_span_kind {
    HVD_GPU_CONNECTS, /* the launcher: NCCL connects to the other ranks */
    HVD_GPU_AWAITS, /* waits for events */
    HVD_GPU_MOVES, /* all other steps */
    HVD_GPU_COLLECTS, /* a collective, or a group of them */
};

struct hvd_gpu_span {
    enum hvd_gpu_span_kind kind;
    enum hvd_gpu_step_kind step; /* COLLECTS: the first one */
    int64_t begin_ns; /* CLOCK_MONOTONIC of the host */
    int64_t end_ns;
};

enum {
    HVD_GPU_MOST_SPANS = 14, /* of a work; the last one includes what is beyond */
};

struct hvd_gpu_timing;

/* From submit until status is set it is the module's. */
struct hvd_gpu_work {
    struct hvd_gpu_work *next; /* the module's */
    enum hvd_gpu_queue queue;
    struct hvd_gpu_comm *comm; /* NULL: no collective in it */
    struct hvd_gpu_step *steps; /* [count] */
    int count;
    struct hvd_gpu_event *done; /* recorded after the last step */
    struct hvd_gpu_timing *timing; /* NULL: not measured */
    _Atomic int status; /* HVD_INPROGRESS until all steps are on the stream */
    struct hvd_error error; /* of status < 0; written before it */
};

/* What was found on this machine. problem: "" if usable. */
struct hvd_gpu_library {
    int version; /* of CUDA 12040, of NCCL 21803; 0: none */
    char file[256]; /* "": none */
    char problem[256];
};

struct hvd_gpu_facts {
    struct hvd_gpu_library cuda;
    struct hvd_gpu_library nccl;
    bool
        has_kernels; /* built in; whether the driver takes them shows when a device is opened */
    char kernels[128]; /* for which devices, or why there are none */
};

/* What ranks tell each other about their GPUs before they connect. */
struct hvd_gpu_identity {
    int32_t nccl_version; /* 0: no usable one */
    int32_t has_host_id; /* NCCL_HOSTID is set: ranks may share a GPU */
    int32_t has_kernels; /* HVD_GPU_MOVE can be done */
    unsigned char uuid[HVD_GPU_UUID_BYTES];
    unsigned char id[HVD_GPU_ID_BYTES]; /* zero unless asked for */
    char bus_id[HVD_GPU_BUS_BYTES]; /* MIG slices of a GPU share it, and differ by uuid */
    int32_t has_dma_buf; /* network adapters can access its memory by dma-buf */
    int32_t is_on_switch; /* its NVLink switch can add (NVLink SHARP) */
    int32_t orders_writes; /* what these have written there, its next kernel sees */
    int32_t network; /* set by libhvd, see gpu_connectivity.h */
};

/* Between two GPUs of a node. */
enum hvd_gpu_link {
    HVD_GPU_LINK_UNKNOWN, /* this process does not see both, or CUDA does not say */
    HVD_GPU_LINK_NONE, /* they cannot reach each other's memory */
    HVD_GPU_LINK_PCIE,
    HVD_GPU_LINK_NVLINK, /* detected by atomic operations, which PCIe lacks */
};

struct hvd_gpu_opening {
    int device; /* of CUDA's list */
    void (*wake)(void *context); /* the status of a work is set; the launcher thread */
    void *context;
};

struct hvd_gpu_module {
    int version; /* HVD_GPU_MODULE_VERSION of the module */

    /* Finds the libraries; touches no device. nccl_file: a library to take before all
     * others, or NULL. Any thread. */
    void (*probe)(const char *nccl_file, struct hvd_gpu_facts *facts);

    /* The number of CUDA devices that this process sees, or a failure. */
    int (*count)(struct hvd_error *err);

    /* Opens a device and starts its launcher thread. The caller owns *out. */
    int (*open)(const struct hvd_gpu_opening *opening, struct hvd_gpu_device **out,
                struct hvd_error *err);

    /* Why the device has no kernels, for HVD_GPU_MOVE; NULL: it has. Valid until close. Any thread. */
    const char *(*no_kernels)(const struct hvd_gpu_device *device);

    /* Work fails from now on, and NCCL is aborted. Does not wait. */
    void (*abort)(struct hvd_gpu_device *device);

    /* Runs what was submitted, or drops it after abort, and ends the launcher thread and the
     * comms. Returns false if that takes longer than timeout_ms, because NCCL or the device does
     * not return: then work and memory stay in use, and the device must not be closed. */
    bool (*stop)(struct hvd_gpu_device *device, int timeout_ms);

    /* After stop. Events may outlive the device: they may be tested, waited for and destroyed. */
    void (*close)(struct hvd_gpu_device *device);

    /* Events. stream: of the framework, a cudaStream_t; HVD_ERR_UNSUPPORTED while it is captured into a
     * CUDA graph. record and wait: any thread. test returns HVD_INPROGRESS until the device has reached
     * the event. */
    int (*event_create)(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
                        struct hvd_error *err);
    void (*event_destroy)(struct hvd_gpu_event *event); /* NULL is fine */
    int (*event_record)(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);
    int (*event_test)(struct hvd_gpu_event *event, struct hvd_error *err);
    int (*event_wait)(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);

    /* Makes the device's context current on the thread, until leave, for libraries that use its
     * memory. Returns false if it cannot: then do not call leave. Any thread. */
    bool (*enter)(struct hvd_gpu_device *device);
    void (*leave)(struct hvd_gpu_device *device);

    /* Memory; aligned to 256 bytes. Any thread. */
    int (*alloc)(struct hvd_gpu_device *device, enum hvd_gpu_place place, size_t bytes,
                 void **out, struct hvd_error *err);
    void (*free)(struct hvd_gpu_device *device, enum hvd_gpu_place place, void *memory);

    /* On a stream of the framework. Any thread. */
    int (*copy)(struct hvd_gpu_device *device, void *to, const void *from, size_t bytes,
                void *stream, struct hvd_error *err);

    /* This rank's identity; makes_id: with a new id for all. */
    int (*identify)(struct hvd_gpu_device *device, bool makes_id,
                    struct hvd_gpu_identity *identity, struct hvd_error *err);

    /* How two GPUs of this node, named by their uuids, reach each other. Any thread. */
    enum hvd_gpu_link (*link)(const unsigned char one[HVD_GPU_UUID_BYTES],
                              const unsigned char other[HVD_GPU_UUID_BYTES]);

    /* A communicator of size ranks, which all pass the same id. It connects with its first work,
     * and all its works are on the queue of that one. All ranks must submit works in the same
     * order, also those of different communicators. The device owns *out. */
    int (*comm_create)(struct hvd_gpu_device *device, const unsigned char *id, int rank,
                       int size, struct hvd_gpu_comm **out, struct hvd_error *err);

    /* Whether a launched collective has failed, as far as the launcher knows, which asks NCCL once more
     * after this. */
    int (*comm_check)(struct hvd_gpu_comm *comm, struct hvd_error *err);

    /* Ends it when the device has completed its work. Does not wait. Submit no more work for it;
     * comm is invalid from now on. All its ranks must do so, in any order. */
    void (*comm_destroy)(struct hvd_gpu_comm *comm);

    void (*submit)(struct hvd_gpu_device *device, struct hvd_gpu_work *work);

    /* Measures one work. Its events cost the device some microseconds. A failure to measure is no
     * failure of the work. read, after work->done: returns the number of spans, in order, 0 if it
     * could not be measured. The caller owns *out, which may outlive the device, like an event. */
    int (*timing_create)(struct hvd_gpu_device *device, struct hvd_gpu_timing **out,
                         struct hvd_error *err);
    int (*timing_read)(struct hvd_gpu_timing *timing,
                       struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS]);
    void (*timing_destroy)(struct hvd_gpu_timing *timing); /* NULL is fine */
};

#endif
