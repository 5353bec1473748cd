/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd_gpu.so offers to libhvd: one GPU of this process, and NCCL on it.
 *
 * libhvd loads the module when the first GPU tensor appears and looks up
 * HVD_GPU_MODULE_SYMBOL. The module finds the CUDA driver and NCCL at run time, both
 * without their headers. It knows no tensors, ranks or batches: libhvd gives it work,
 * which is a list of steps.
 *
 *   libhvd     submit(work)  ------>  launcher thread: puts the steps on a stream, in the order
 *                                     of submission; then work->status is set, wake is called
 *              event_test    <------  the device has come to the end of the work
 *
 * Nothing here waits for the device. What may wait for other ranks (connecting NCCL) is
 * done by the launcher thread alone.
 *
 * Errors: int functions return 0 or a negative enum hvd_status and a text in err. */
#ifndef HVD_GPU_MODULE_H
#define HVD_GPU_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

#define HVD_GPU_MODULE_VERSION 5
#define HVD_GPU_MODULE_SYMBOL "hvd_gpu_module"

enum {
    HVD_GPU_ID_BYTES = 128, /* of NCCL's unique id */
    HVD_GPU_UUID_BYTES = 16,
};

struct hvd_gpu_device;
struct hvd_gpu_comm;
struct hvd_gpu_event;

/* The streams of a device, each a queue. */
enum hvd_gpu_queue {
    HVD_GPU_COLLECT, /* NCCL, kernels, and copies on the device; of high priority */
    HVD_GPU_IN, /* from the device; and sums of what other nodes have sent there. Waits for events
                 * that are recorded already, and never for other ranks */
    HVD_GPU_OUT, /* to the device */
    HVD_GPU_QUEUES
};

enum hvd_gpu_place {
    HVD_GPU_DEVICE_MEMORY,
    HVD_GPU_HOST_MEMORY, /* pinned */
    HVD_GPU_PLACES
};

enum hvd_gpu_step_kind {
    HVD_GPU_FOLLOW, /* what comes behind it waits for event */
    HVD_GPU_COPY, /* count bytes, between host and device or on the device */
    HVD_GPU_ZERO, /* count bytes at to */
    /* By a kernel: count elements of dtype to as many of to_dtype, each times factor, by divisor;
     * from NULL: zeros. Rounded as hvd_reduce does its results, see reduce.h; what keeps its bits
     * goes as HVD_UINT8 times 1. Those in a row that differ in from, to and count alone are one
     * launch: none reads what another writes, but to may be its own from. */
    HVD_GPU_MOVE,
    /* By a kernel: count elements of dtype, at least 1, of `sources` ranks, added up by op in
     * order of rank; bit for bit what hvd_reduce makes of them. Rank `peer` has its own at own,
     * the others theirs at from, one stride behind the other. to may be own. Not of 16-bit
     * integers or bool. */
    HVD_GPU_SUM_UP,
    /* Collectives of the work's comm; from may be to. count: elements of dtype. */
    HVD_GPU_ALLREDUCE,
    HVD_GPU_ALLGATHER, /* count of each rank */
    HVD_GPU_BROADCAST, /* from rank peer */
    HVD_GPU_REDUCESCATTER, /* count that each rank gets */
    HVD_GPU_REDUCE, /* to rank peer */
    HVD_GPU_SEND, /* to rank peer */
    HVD_GPU_RECV, /* from rank peer */
    /* What is between the two is one operation for NCCL; only collectives are. */
    HVD_GPU_GROUP,
    HVD_GPU_GROUP_END,
};

/* Pointers are borrowed until the event at the end of the work has come. */
struct hvd_gpu_step {
    enum hvd_gpu_step_kind kind;
    const void *from;
    void *to;
    int64_t count;
    enum hvd_dtype dtype;
    enum hvd_op op; /* AVERAGE, SUM, MIN, MAX, PRODUCT */
    double factor; /* of SUM: each rank's elements times this first */
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

/* What the device did for a work, and when. */
enum hvd_gpu_span_kind {
    HVD_GPU_CONNECTS, /* the launcher: NCCL meets the other ranks */
    HVD_GPU_AWAITS, /* events that steps follow */
    HVD_GPU_MOVES, /* steps that are none of the others */
    HVD_GPU_COLLECTS, /* a collective, or a group of them */
};

struct hvd_gpu_span {
    enum hvd_gpu_span_kind kind;
    enum hvd_gpu_step_kind step; /* COLLECTS: the first one */
    int64_t begin_ns; /* CLOCK_MONOTONIC of the host */
    int64_t end_ns;
};

enum {
    HVD_GPU_MOST_SPANS = 14, /* of a work; what is more is part of the last one */
};

struct hvd_gpu_timing;

/* From submit until status is set it is the module's. */
struct hvd_gpu_work {
    struct hvd_gpu_work *next; /* the module's */
    enum hvd_gpu_queue queue;
    struct hvd_gpu_comm *comm; /* NULL: no collective in it */
    struct hvd_gpu_step *steps; /* [count] */
    int count;
    struct hvd_gpu_event *done; /* recorded behind the last step */
    struct hvd_gpu_timing *timing; /* NULL: nobody wants to know when */
    _Atomic int status; /* HVD_INPROGRESS until all steps are on the stream */
    struct hvd_error error; /* of status < 0; written before it */
};

/* What was found on this machine. problem: "" when usable. */
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

/* What the ranks tell each other before they connect. */
struct hvd_gpu_identity {
    int32_t nccl_version; /* 0: none that is usable */
    int32_t has_host_id; /* NCCL_HOSTID is set: ranks may share a GPU */
    int32_t has_kernels; /* HVD_GPU_MOVE can be done */
    unsigned char uuid[HVD_GPU_UUID_BYTES];
    unsigned char id[HVD_GPU_ID_BYTES]; /* zero unless asked for */
    int32_t has_dma_buf; /* its memory can be shown to network cards as dma-buf */
    int32_t network; /* libhvd's, see gpu_connectivity.h */
};

/* Between two GPUs of a node. */
enum hvd_gpu_link {
    HVD_GPU_LINK_UNKNOWN, /* this process does not see both, or CUDA does not say */
    HVD_GPU_LINK_NONE, /* they cannot reach each other's memory */
    HVD_GPU_LINK_PCIE,
    HVD_GPU_LINK_NVLINK, /* CUDA knows it by its atomic operations, which PCIe has not */
};

struct hvd_gpu_opening {
    int device; /* of CUDA's list */
    void (*wake)(void *context); /* a work has got its status; the launcher thread */
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

    /* NULL: it does HVD_GPU_MOVE. Else why it does not; valid until close. Any thread. */
    const char *(*no_kernels)(const struct hvd_gpu_device *device);

    /* From now on work fails, and what NCCL has under way is ended. Does not wait. */
    void (*abort)(struct hvd_gpu_device *device);

    /* Runs what was submitted, or drops it after abort, and ends the launcher thread and
     * the comms. False when that takes longer than timeout_ms, because NCCL or the device
     * does not let go: then work and memory stay in use for ever, and the device is not
     * to be closed. */
    bool (*stop)(struct hvd_gpu_device *device, int timeout_ms);

    /* After stop. Events may still be there; they may be tested, waited for and destroyed. */
    void (*close)(struct hvd_gpu_device *device);

    /* Events. stream: of the framework, a cudaStream_t. record and wait: any thread. test
     * returns HVD_INPROGRESS until the device has come there. */
    int (*event_create)(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
                        struct hvd_error *err);
    void (*event_destroy)(struct hvd_gpu_event *event); /* NULL is fine */
    int (*event_record)(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);
    int (*event_test)(struct hvd_gpu_event *event, struct hvd_error *err);
    int (*event_wait)(struct hvd_gpu_event *event, void *stream, struct hvd_error *err);

    /* Makes the device's context the thread's own, until leave. For what others do with its
     * memory. Returns whether it is; else no leave. Any thread. */
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

    /* A communicator of size ranks that all name the same id. The first work that uses it
     * connects, and all its works are on that one's queue; the ranks' works must come in
     * the same order, also those of several communicators. The device owns *out. */
    int (*comm_create)(struct hvd_gpu_device *device, const unsigned char *id, int rank,
                       int size, struct hvd_gpu_comm **out, struct hvd_error *err);

    /* Whether what was put on the stream has failed since. Not while a work uses it. */
    int (*comm_check)(struct hvd_gpu_comm *comm, struct hvd_error *err);

    /* Ends it once the device has done what was put on its stream, which no more work is,
     * and the launcher has the time. Does not wait. All its ranks do so, in any order;
     * comm is gone then. */
    void (*comm_destroy)(struct hvd_gpu_comm *comm);

    void (*submit)(struct hvd_gpu_device *device, struct hvd_gpu_work *work);

    /* What measures one work. Its events cost the device some microseconds. Measuring
     * that fails is no failure of the work. read, when work->done has come: returns how
     * many spans there are, one after the other, 0 when it could not be measured. The
     * caller owns *out, which may outlive the device, like an event. */
    int (*timing_create)(struct hvd_gpu_device *device, struct hvd_gpu_timing **out,
                         struct hvd_error *err);
    int (*timing_read)(struct hvd_gpu_timing *timing,
                       struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS]);
    void (*timing_destroy)(struct hvd_gpu_timing *timing); /* NULL is fine */
};

#endif
