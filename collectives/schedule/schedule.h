/* SPDX-License-Identifier: Apache-2.0 */
/* The steps by which one rank plays its part in a collective. Pure: a function of the
 * layout and the sizes, so that it can be read, printed and tested without a network.
 *
 * A collective is cut into chunks. A schedule is a row of ticks; a tick is a short row of
 * steps in which neighbouring chunks overlap: while one is on the wire, the next is
 * packed. A run (run/run.h) takes the steps in order and stops at one that has to wait.
 *
 * Locations (all sizes in bytes; HVD_LOCATION_LINE is LINE):
 *   IN    my staging slots in shared memory; every local rank reads them, I write them
 *   OUT   my result slots in shared memory, likewise
 *   LINE  room for a few bytes beside my counter, in shared memory: they come with it
 *   SEND, RECV  private scratch for messages between nodes
 * Each has `slots` slots of slot_bytes (RECV: recv_bytes; LINE: two of HVD_LINE_BYTES). PUT
 * may also fill SEND, messages may leave from any location of mine and arrive in any of
 * mine, and GET may read RECV.
 *
 * With two nodes, each adds the data of the other as it arrives: RECV_REDUCE reads the
 * network's own memory, and writes the result between its own step and the WAIT_RECV that
 * awaits it.
 *
 * A rank may also OFFER its input or output: it leaves the address in a location, and
 * others FETCH or STORE there until they have signalled that they are done. FETCH_REDUCE
 * adds up what it fetches.
 *
 * Each local rank owns one counter in shared memory that only grows. SIGNAL adds one to
 * mine. WAIT holds until a local rank's counter (or all of them) has reached a value.
 * Values count from the start of the schedule. All local ranks signal equally often in a
 * schedule, so that the next one knows where it starts. A schedule starts with a WAIT for
 * value 0 on all, so that nobody still reads what it overwrites.
 *
 * An "open" schedule ends without the signal that tells that its last slots were read.
 * That is safe if the next one takes other slots: slot s of IN, OUT and LINE is, in
 * memory, slot (s + turn) modulo their number, where turn counts the chunks of all open
 * schedules before. Each chunk of an open schedule has a sync, so that whoever passes the
 * sync of chunk c knows that all have read chunk c - 1. Before a schedule that is not
 * open every rank that has left one open signals once more.
 *
 * A "rolling" schedule turns slots, too, and begins with no WAIT for all: every rank
 * signals once a chunk, and a value that it WAITs for may lie before its start, that is
 * in the rolling schedules just before it. What came before those all ranks have left,
 * before any of its waits ends. So one rank may be some calls ahead of the others.
 *
 * Messages between two ranks arrive in the order in which they were sent and fit the
 * receives in the order in which those were posted; SEND and RECV of zero bytes do not
 * exist. */
#ifndef HVD_SCHEDULE_H
#define HVD_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule/algorithm.h"
#include "collectives/transport/shm/locations.h"
#include "pmix_boot/layout.h"

enum {
    /* The longest message that the network sends in one piece: longer ones had better be
     * a multiple of it. */
    HVD_SCHEDULE_MESSAGE_BYTES = 64000,
};

struct hvd_location {
    enum hvd_location_kind kind;
    int local_rank; /* IN, OUT, LINE: whose */
    int slot;
    size_t offset;
};

enum hvd_step_kind {
    HVD_STEP_PUT, /* from the input to a location; prescale rides along */
    HVD_STEP_GET, /* from a location to the output */
    HVD_STEP_REDUCE_LOCAL, /* adds up the local ranks' elements, into a location */
    HVD_STEP_REDUCE_OUT, /* likewise, into the output */
    HVD_STEP_REDUCE_NODES, /* adds up partials of nodes, into a location */
    HVD_STEP_SIGNAL, /* adds 1 to this rank's counter */
    HVD_STEP_WAIT, /* for the counters of local ranks */
    HVD_STEP_SEND, /* a message to another rank, from a location */
    HVD_STEP_RECV, /* a message from another rank, to a location */
    HVD_STEP_RECV_REDUCE, /* RECV that adds its message to elements of this node */
    HVD_STEP_COPY, /* from the input to the output */
    HVD_STEP_OFFER, /* leaves the address of input or output in a location */
    HVD_STEP_FETCH, /* from what a rank offers to the output */
    HVD_STEP_FETCH_REDUCE, /* adds up what all local ranks offer, into the output */
    HVD_STEP_STORE, /* from the input to what a rank offers */
    HVD_STEP_WAIT_SEND, /* until the first sends of this schedule are complete */
    HVD_STEP_WAIT_RECV, /* until its first receives are complete */
};

/* Elements of all local ranks, which are added up in the order of local ranks. */
struct hvd_local_sources {
    struct hvd_location from; /* slot and offset, the same in every local rank's IN */
    int64_t input; /* this rank's may be read in its input, from this byte on */
    bool is_put; /* they are in its IN, too */
};

/* Partials of nodes, which are added up in the order of nodes. Number n is at from.offset
 * + n * stride, except number own_number, this node's, which is at `own`. */
struct hvd_node_sources {
    struct hvd_location from;
    size_t stride;
    int count;
    int own_number;
    struct hvd_location own;
};

/* Bytes of a rank's memory, from byte `at` on of what it offers in a location of its
 * own. */
struct hvd_reach {
    struct hvd_location offer;
    int64_t at;
};

/* `input` and `output` are bytes in the tensors of the batch, seen as one array. */
struct hvd_step {
    enum hvd_step_kind kind;
    size_t bytes; /* that the step moves, from one rank if from several; 0: none */
    size_t count; /* of elements that it adds up, of each source; 0: none */
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
            bool is_partial; /* it writes partials, not yet the result */
        } reduce_local;
        struct {
            struct hvd_local_sources sources;
            int64_t output;
        } reduce_out;
        struct {
            struct hvd_node_sources sources;
            struct hvd_location to;
            bool is_partial; /* likewise */
        } reduce_nodes;
        struct {
            int local_rank; /* -1: all of them */
            uint64_t value; /* that counters have to reach; may be negative */
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
            /* Adds own and the message in the order of nodes; both are partials if
             * is_partial, else elements. The sum is final. */
            struct hvd_location own;
            bool is_partial;
            int peer;
            bool to_output; /* else to a location */
            int64_t output;
            struct hvd_location to;
        } recv_reduce;
        struct {
            int64_t input;
            int64_t output;
        } copy;
        struct {
            bool is_output; /* else the input */
            int64_t begin; /* the byte of it whose address is offered */
            struct hvd_location to;
        } offer;
        struct {
            struct hvd_reach from;
            int64_t output;
        } fetch;
        struct {
            /* Of each other local rank, whatever from.offer.local_rank is; this rank's
             * own elements are at byte from.at of its input. */
            struct hvd_reach from;
            /* Room for the others' elements, each `stride` bytes behind the one
             * before. */
            struct hvd_location scratch;
            size_t stride;
            int64_t output;
        } fetch_reduce;
        struct {
            int64_t input;
            struct hvd_reach to;
        } store;
        uint64_t messages; /* WAIT_SEND, WAIT_RECV: how many */
    };
};

/* The geometry that jobs use. Four slots keep three chunks under way; 256 KiB of them
 * stay in the L2 cache. Measured as the best on the machines at hand. */
extern const struct hvd_geometry hvd_usual_geometry;

struct hvd_schedule_query {
    enum hvd_collective collective;
    /* of algorithms; borrowed; NULL: the built-in ones */
    const struct hvd_algorithm_choices *choices;
    const struct hvd_layout *layout; /* of the ranks that take part; borrowed */
    int rank; /* mine, in that layout */
    struct hvd_geometry geometry;
    /* ALLREDUCE, REDUCESCATTER: elements of the input, bytes of an element and of its
     * partial. The result of REDUCESCATTER is elements [part_begin, part_begin +
     * part_count) for me; the parts of all ranks follow each other. is_for_root: all
     * elements are the part of `root`, and are brought to its node only. */
    int64_t count;
    size_t element_bytes;
    size_t partial_bytes;
    int64_t part_begin;
    int64_t part_count;
    bool is_for_root;
    /* BROADCAST: bytes of the tensor, and who has it (root). The root COPYs it to its
     * output; where that is its input, nothing is to be done. */
    int64_t bytes;
    int root;
    /* ALLGATHER: rank r's block is output bytes [blocks[r], blocks[r + 1]).
     * ALLTOALL: my block for rank r is input bytes [send[r], send[r + 1]), that from r is
     * output bytes [blocks[r], blocks[r + 1]); no block of any rank is above
     * max_block. */
    const int64_t *blocks; /* [size + 1], borrowed */
    const int64_t *send; /* [size + 1], borrowed */
    int64_t max_block;
};

struct hvd_schedule;

/* The facts that the one who runs a schedule needs. */
struct hvd_schedule_facts {
    const char *name; /* of the algorithm */
    int64_t ticks;
    uint64_t signals; /* of every local rank, in all: the same for all of a node */
    int64_t turns; /* chunks of an open or rolling schedule; 0: it is neither */
    bool is_rolling;
    /* Others read this rank's input and output where they are, of which it then needs
     * all: also of what a rank that has joined lacks. */
    bool is_offered;
};

/* By the algorithm that is chosen for the size; *out is the caller's. The query's
 * borrowed arrays, but not choices, must outlive it. Returns 0, HVD_ERR_ARG or
 * HVD_ERR_NOMEM. */
int hvd_schedule_create(const struct hvd_schedule_query *query, struct hvd_schedule **out,
                        struct hvd_error *err);
void hvd_schedule_destroy(struct hvd_schedule *schedule); /* NULL is fine */

/* Borrowed, as long as the schedule. */
const struct hvd_schedule_facts *hvd_schedule_facts(const struct hvd_schedule *schedule);

/* The steps of one tick, 0 <= tick < ticks. Ticks are asked for in ascending order;
 * asking for tick 0 starts over. *steps is valid until the next call. Returns their
 * number (may be 0). */
int hvd_schedule_tick(struct hvd_schedule *schedule, int64_t tick,
                      const struct hvd_step **steps);

#endif
