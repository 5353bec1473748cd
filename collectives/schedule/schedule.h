/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one rank in a collective. Pure: a function of the layout and the sizes, so
 * it can be read, printed and tested without a network.
 *
 * A collective is cut into chunks. A schedule is a sequence of ticks, and a tick a short
 * sequence of steps in which neighbouring chunks overlap: while one is on the wire, the
 * next is packed. A run (run/run.h) executes the steps in order and stops at a step that
 * has to wait.
 *
 * Locations (all sizes in bytes; HVD_LOCATION_LINE is LINE):
 *   IN    my staging slots in shared memory: I write them, every local rank reads them
 *   OUT   my result slots in shared memory: I write them, every local rank reads them
 *   LINE  a few bytes in the cache line of my counter, in shared memory: data and counter
 *         arrive together
 *   SEND, RECV  private scratch for messages between nodes
 * Each location has `slots` slots of slot_bytes; those of RECV have recv_bytes, and there
 * are two LINEs of HVD_LINE_BYTES. PUT may also fill SEND; messages may leave from any of
 * my locations and arrive in any of them; GET may read RECV.
 *
 * With two nodes, each reduces the other's data as it arrives: RECV_REDUCE reads the
 * network's receive buffer, and writes the result at some time between its own step and
 * the WAIT_RECV that awaits it.
 *
 * A rank may OFFER its input or output: it stores the address in a location, and others
 * FETCH from there or STORE to there until they have signalled that they are done.
 * FETCH_REDUCE reduces the data that it fetches.
 *
 * Each local rank owns a counter in shared memory that only grows. SIGNAL adds one to my
 * counter. WAIT holds until the counter of a local rank, or of all of them, has reached a
 * value. Values count from the start of the schedule. All local ranks signal equally
 * often in a schedule, so that the next schedule knows where it starts. A schedule begins
 * with a WAIT for value 0 on all local ranks: then no rank still reads slots that it
 * overwrites. A "sync" is a SIGNAL and a WAIT until all local ranks have signalled as
 * often.
 *
 * An "open" schedule omits the last signal, which would tell that its last slots have
 * been read. This is safe if the next schedule uses other slots: slot s of IN, OUT and
 * LINE is, in memory, slot (s + turn) modulo the number of slots, where turn counts the
 * chunks of all open schedules so far. Each chunk of an open schedule has a sync. A rank
 * that has passed the sync of chunk c knows that all ranks have read chunk c - 1. Before
 * a schedule that is not open, a rank whose last schedule was open signals once more.
 *
 * A "rolling" schedule turns slots, too, and does not begin with a WAIT for all. Every
 * rank signals once a chunk. If rolling schedules follow each other, a WAIT may be for a
 * negative value, which belongs to one of the schedules before. The end of any WAIT tells
 * that all ranks have left the schedules before the first of these rolling ones. So one
 * rank may run several calls ahead of the others.
 *
 * Messages between two ranks arrive in the order in which they were sent, and match the
 * receives in the order in which those were posted. There is no SEND or RECV of zero
 * bytes. */
#ifndef HVD_SCHEDULE_H
#define HVD_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule/algorithm.h"
#include "collectives/transport/shm/locations.h"
#include "pmix_boot/layout.h"

enum {
    /* The longest message that the network sends in one fragment. Longer messages should
     * be whole multiples of this size. */
    HVD_SCHEDULE_MESSAGE_BYTES = 64000,
};

struct hvd_location {
    enum hvd_location_kind kind;
    int local_rank; /* IN, OUT, LINE: the owner of the location */
    int slot;
    size_t offset;
};

enum hvd_step_kind {
    HVD_STEP_PUT, /* copies from the input to a location, applying prescale */
    HVD_STEP_GET, /* copies from a location to the output */
    HVD_STEP_REDUCE_LOCAL, /* adds up the local ranks' elements into a location */
    HVD_STEP_REDUCE_OUT, /* adds up the local ranks' elements into the output */
    HVD_STEP_REDUCE_NODES, /* adds up the partials of nodes into a location */
    HVD_STEP_SIGNAL, /* adds 1 to this rank's counter */
    HVD_STEP_WAIT, /* waits for the counters of local ranks */
    HVD_STEP_SEND, /* sends a message to another rank, from a location */
    HVD_STEP_RECV, /* receives a message from another rank into a location */
    HVD_STEP_RECV_REDUCE, /* receives a message and adds it to elements of this node */
    HVD_STEP_COPY, /* copies from the input to the output */
    HVD_STEP_OFFER, /* stores the address of the input or output in a location */
    HVD_STEP_FETCH, /* copies from memory that a rank offers to the output */
    /* adds up the memory that all local ranks offer, into the output */
    HVD_STEP_FETCH_REDUCE,
    HVD_STEP_STORE, /* copies from the input to memory that a rank offers */
    HVD_STEP_WAIT_SEND, /* waits until the first sends of this schedule are complete */
    HVD_STEP_WAIT_RECV, /* waits until its first receives are complete */
};

/* Elements of all local ranks, to be added up in the order of local ranks. */
struct hvd_local_sources {
    /* slot and offset, the same in the IN of every local rank */
    struct hvd_location from;
    /* this rank's elements may also be read from its input, at this byte */
    int64_t input;
    bool is_put; /* this rank's elements are also in its IN */
};

/* Partials of nodes, to be added up in the order of nodes. Partial n is at from.offset +
 * n * stride, except this node's, own_number, which is at `own`. */
struct hvd_node_sources {
    struct hvd_location from;
    size_t stride;
    int count;
    int own_number;
    struct hvd_location own;
};

/* A part of another rank's memory. It begins at byte `at` of the memory whose address
 * that rank has stored in its location `offer`. */
struct hvd_reach {
    struct hvd_location offer;
    int64_t at;
};

/* A step. `input` and `output` are byte offsets in the tensors of the batch, seen as one
 * array. */
struct hvd_step {
    enum hvd_step_kind kind;
    size_t bytes; /* bytes that the step moves, per source; 0: none */
    size_t count; /* elements that the step adds up, per source; 0: none */
    union {
        struct {
            int64_t input;
            struct hvd_location to;
        } put;
        struct {
            struct hvd_location from;
            int64_t output;
        } get;
        struct {
            struct hvd_local_sources sources;
            struct hvd_location to;
            bool is_partial; /* writes partials instead of the result */
        } reduce_local;
        struct {
            struct hvd_local_sources sources;
            int64_t output;
        } reduce_out;
        struct {
            struct hvd_node_sources sources;
            struct hvd_location to;
            bool is_partial; /* writes partials instead of the result */
        } reduce_nodes;
        struct {
            int local_rank; /* the rank to wait for; -1: all local ranks */
            /* value that the counters have to reach; may be below 0, modulo 2^64 */
            uint64_t value;
        } wait;
        struct {
            struct hvd_location from;
            int peer;
        } send;
        struct {
            struct hvd_location to;
            int peer;
        } recv;
        struct {
            /* The step adds `own` and the message, in the order of nodes. Both are
             * partials if is_partial, else elements. The sum is never a partial. */
            struct hvd_location own;
            bool is_partial;
            int peer;
            /* adds to byte `output` of the output; false: to location `to` */
            bool to_output;
            int64_t output;
            struct hvd_location to;
        } recv_reduce;
        struct {
            int64_t input;
            int64_t output;
        } copy;
        struct {
            bool is_output; /* offers the output; false: the input */
            int64_t begin; /* the byte whose address is offered */
            struct hvd_location to;
        } offer;
        struct {
            struct hvd_reach from;
            int64_t output;
        } fetch;
        struct {
            /* The step reads this offer of each other local rank and ignores
             * from.offer.local_rank; this rank's own elements are at byte from.at of its
             * input. */
            struct hvd_reach from;
            /* Room for the elements of the other ranks, `stride` bytes apart. */
            struct hvd_location scratch;
            size_t stride;
            int64_t output;
        } fetch_reduce;
        struct {
            int64_t input;
            struct hvd_reach to;
        } store;
        uint64_t messages; /* WAIT_SEND, WAIT_RECV: how many messages */
    };
};

/* The geometry that jobs use: four slots keep three chunks in flight, and four slots of
 * 256 KiB stay in the L2 cache. It was the fastest on the machines at hand. */
extern const struct hvd_geometry hvd_usual_geometry;

struct hvd_schedule_query {
    enum hvd_collective collective;
    /* borrowed; NULL: the built-in table */
    const struct hvd_algorithm_choices *choices;
    const struct hvd_layout *layout; /* layout of the ranks that take part; borrowed */
    int rank; /* this rank's number in the layout */
    struct hvd_geometry geometry;
    /* ALLREDUCE, REDUCESCATTER: number of elements of the input, bytes of an element, and
     * bytes of a partial. The result of REDUCESCATTER is elements [part_begin, part_begin
     * + part_count) on this rank; the parts of all ranks follow each other. is_for_root:
     * all elements are the part of `root`, and only its node receives them. */
    int64_t count;
    size_t element_bytes;
    size_t partial_bytes;
    int64_t part_begin;
    int64_t part_count;
    bool is_for_root;
    /* BROADCAST: bytes of the tensor, and the rank that has it (root). The root COPYs it
     * to its output; if that is its input, the copy does nothing. */
    int64_t bytes;
    int root;
    /* ALLGATHER: the block of rank r is output bytes [blocks[r], blocks[r + 1]).
     * ALLTOALL: my block for rank r is input bytes [send[r], send[r + 1]), and the block
     * from rank r is output bytes [blocks[r], blocks[r + 1]). No block of any rank is
     * longer than max_block. */
    const int64_t *blocks; /* [size + 1], borrowed */
    const int64_t *send; /* [size + 1], borrowed */
    int64_t max_block;
};

struct hvd_schedule;

/* Facts that a run needs to execute a schedule. */
struct hvd_schedule_facts {
    const char *name; /* name of the algorithm */
    int64_t ticks;
    /* signals of each local rank in the whole schedule; all local ranks have the same
     * number */
    uint64_t signals;
    int64_t turns; /* chunks of an open or rolling schedule; 0: it is neither */
    bool is_rolling;
    /* Other ranks access this rank's input and output in place, so both must be real
     * memory, even on a joined rank that has no tensors. */
    bool is_offered;
};

/* Creates a schedule with the algorithm that is chosen for the size; the caller owns
 * *out. The query's borrowed arrays, except choices, must outlive it. Returns 0,
 * HVD_ERR_ARG or HVD_ERR_NOMEM. */
int hvd_schedule_create(const struct hvd_schedule_query *query, struct hvd_schedule **out,
                        struct hvd_error *err);
void hvd_schedule_destroy(struct hvd_schedule *schedule); /* NULL is fine */

/* Returns the facts, valid until the schedule is destroyed. */
const struct hvd_schedule_facts *hvd_schedule_facts(const struct hvd_schedule *schedule);

/* Sets *steps to the steps of one tick, 0 <= tick < ticks, valid until the next call, and
 * returns their number, which may be 0. The caller asks for ticks in ascending order;
 * tick 0 starts over. */
int hvd_schedule_tick(struct hvd_schedule *schedule, int64_t tick,
                      const struct hvd_step **steps);

#endif
