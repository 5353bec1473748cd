/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other while they agree. Reports go up the tree: a rank, or all ranks of
 * a subtree, have a tensor. Decisions come down: what all ranks do next, in one order for all.
 *
 * A tensor is described in full (a proposal) until rank 0 has given it an id; from then on it
 * is the id. An id is never given twice. A message is a row of records, upwards after the
 * number of the last decision message that the sender had seen: an id means what it meant there. */
#ifndef HVD_MESSAGE_H
#define HVD_MESSAGE_H

#include "collectives/agreement/encoding.h"
#include "collectives/hvd.h"

/* Reports and decisions that have piled up go in messages of about this size; no message may have
 * more than 64 MiB (uplink.h). */
#define HVD_MESSAGE_BYTES ((size_t)1 << 20)

/* Types of control messages. */
enum hvd_message {
    HVD_MESSAGE_REPORTS = 1, /* up */
    HVD_MESSAGE_DECISIONS, /* down */
    HVD_MESSAGE_ADDRESS, /* up: rank and network address of one rank */
    HVD_MESSAGE_ADDRESSES, /* down: those of all ranks */
    HVD_MESSAGE_SHUTDOWN, /* up: a rank wants to leave; down: no decision comes after this */
    HVD_MESSAGE_DRAINED, /* up: this subtree has run all its batches */
    HVD_MESSAGE_CLOSE, /* down: all have; connections may close */
    HVD_MESSAGE_STRAGGLERS, /* up: who was late, in a window of batches */
    HVD_MESSAGE_TRACE_START, /* down: a timeline of all ranks begins; timeline_ranks.c */
    HVD_MESSAGE_TRACE_STOP, /* down: it ends */
    HVD_MESSAGE_TRACE, /* up: a rank's part of it */
    HVD_MESSAGE_CLOCK_ASK, /* to the parent: what time is it there? clock_sync.h */
    HVD_MESSAGE_CLOCK_ANSWER, /* to one child */
};

/* Which team of the global process set runs a batch. */
enum hvd_lane {
    HVD_LANE_QUICK, /* small batches */
    HVD_LANE_BULK, /* large ones, which small ones overtake */
    HVD_LANE_SPARE, /* what must not wait behind a replayed batch that some rank lacks */
    HVD_LANES
};

/* What a request is: Horovod's numbers, then hvd's own. */
enum hvd_kind {
    HVD_KIND_ALLREDUCE = 0,
    HVD_KIND_ALLGATHER = 1,
    HVD_KIND_BROADCAST = 2,
    HVD_KIND_JOIN = 3,
    HVD_KIND_ADASUM = 4,
    HVD_KIND_ALLTOALL = 5,
    HVD_KIND_BARRIER = 6,
    HVD_KIND_REDUCESCATTER = 7,
    HVD_KIND_REDUCE = 8,
    HVD_KIND_GATHER = 9,
    HVD_KIND_SCATTER = 10,
    HVD_KIND_SET_ADD = 16, /* note: the ranks, "0,2" */
    HVD_KIND_SET_REMOVE = 17, /* root: the set */
    HVD_KIND_SET_CREATE = 18, /* by its members alone; note: the ranks, rank_list.h */
    HVD_KIND_SET_ABORT = 19, /* by one rank, in no proposal; note: why, set_aborts.h */
    /* Of two ranks, which agree on nothing: no proposal has these. root: the other rank. */
    HVD_KIND_SEND = 32,
    HVD_KIND_RECEIVE = 33,
};

/* "ALLREDUCE" and so on. */
const char *hvd_kind_name(enum hvd_kind kind);

/* "Average" and so on: Horovod's names, as scripts write them. */
const char *hvd_op_name(enum hvd_op op);

/* Whether a proposal may have it. */
bool hvd_kind_is_known(int64_t kind);

/* All ranks name the same root: broadcast, reduce, gather, scatter. */
bool hvd_kind_has_root(enum hvd_kind kind);

/* Each rank has rows of its own, which all are told: allgather, gather. */
bool hvd_kind_has_rows(enum hvd_kind kind);

/* What the names begin with that calls without a tensor make up. */
#define HVD_RESERVED_NAMES "hvd."
#define HVD_NUMBERED_NAMES "hvd.call." /* of those that are numbered calls */

enum {
    HVD_KIND_WORD = 24, /* bytes */
};

/* In small letters, for sentences: "allreduce". Returns word. */
const char *hvd_kind_word(enum hvd_kind kind, char word[HVD_KIND_WORD]);

enum {
    HVD_PROPOSAL_GPU = 0
};

/* One rank's description of one tensor. */
struct hvd_proposal {
    int32_t rank;
    int32_t set;
    enum hvd_kind kind;
    enum hvd_dtype dtype;
    int32_t wire; /* the dtype on the way between ranks; 0: its own */
    enum hvd_op op;
    int32_t root;
    int32_t device; /* HVD_DEVICE_CPU; or HVD_PROPOSAL_GPU, whatever its number there */
    int32_t ndim;
    double prescale;
    double postscale;
    int64_t max_block; /* alltoall: rows of the largest split */
    uint64_t
        call; /* its number on this rank: call_order.h; 0: it has none. Of a parsed proposal only
                    * whether it has one: 1 */
    uint64_t group; /* the same for the tensors of one request; 0: it has only one */
    int32_t group_size;
    int64_t shape[HVD_MAX_DIMS];
    const char *name; /* of a parsed proposal: points into the message */
    const char *note; /* likewise. Of process sets; else NULL or "" */
};

/* Do both say the same about a tensor? What may differ from rank to rank and from call to call
 * (rows of allgather and alltoall) does not count. */
bool hvd_proposal_equal(const struct hvd_proposal *a, const struct hvd_proposal *b);

/* Whether the tensor fails when its set is aborted. The removal of the set does not. In the global
 * set, which is aborted when ranks disagree on numbered calls, only numbered calls fail. */
bool hvd_proposal_ends_with_set(const struct hvd_proposal *proposal);

/* Elements times bytes, as the caller has them. */
int64_t hvd_proposal_bytes(const struct hvd_proposal *proposal);

void hvd_put_proposal(struct hvd_writer *writer, const struct hvd_proposal *proposal);

/* Returns 0, or HVD_ERR_ARG for a message that no writer can have made, or with numbers that no tensor
 * has. */
int hvd_take_proposal(struct hvd_reader *reader, struct hvd_proposal *proposal);

/* A heap copy that owns its texts; NULL without memory. */
struct hvd_proposal *hvd_proposal_copy(const struct hvd_proposal *proposal);
void hvd_proposal_free(struct hvd_proposal *proposal); /* NULL is fine */

enum hvd_report_kind {
    HVD_REPORT_CACHED = 1, /* tensors id, id + 1, ... id + count - 1 */
    HVD_REPORT_TENSOR, /* one tensor; struct hvd_tensor_report follows */
    HVD_REPORT_JOIN, /* rank id has joined */
    HVD_REPORT_BREAK, /* replay id must end */
    HVD_REPORT_FROZEN, /* replay id stands still; per lane, least and most batches started */
    HVD_REPORT_STALL, /* some rank waits too long */
    HVD_REPORT_SILENT, /* rank id has not answered wave count, nor has anybody behind it */
    HVD_REPORT_HELD, /* the tensors that ranks of this subtree wait for, for wave count: id bytes,
                      * see stalled.h */
    HVD_REPORT_CREATE, /* rank id asks for a process set; name, list of members: set_creations.h */
    HVD_REPORT_ABORT, /* rank id aborts a process set; its number, why: set_aborts.h */
    HVD_REPORT_CALL, /* rank id waits in a numbered call; the set, number, text: call_order.h */
};

enum hvd_decision_kind {
    HVD_DECISION_BATCH = 1, /* see hvd_put_batch */
    HVD_DECISION_EVICT, /* tensor id leaves the cache */
    HVD_DECISION_REPLAY, /* see replay.h, as the next two */
    HVD_DECISION_BREAK,
    HVD_DECISION_RESUME,
    HVD_DECISION_ASK, /* report what you hold; id: of this wave */
    HVD_DECISION_SETTINGS, /* fusion threshold, cycle time */
    HVD_DECISION_SET, /* count bytes of decisions about set id: decisions.h */
    HVD_DECISION_CREATE, /* the set of this part, or why there is none: set_creations.h */
    HVD_DECISION_REMOVE, /* the set of this part, which its members have created */
    HVD_DECISION_ABORT, /* the set of this part; id 1: its ranks disagree; why: set_aborts.h */
    HVD_DECISION_CALL, /* who waits in a call of the set before number id? call_order.h */
};

/* What every record begins with. */
struct hvd_record {
    uint32_t kind;
    uint32_t count;
    uint64_t id;
};

void hvd_put_record(struct hvd_writer *writer, uint32_t kind, uint32_t count,
                    uint64_t id);
int hvd_take_record(struct hvd_reader *reader, struct hvd_record *record);

/* What rank 0 has decided since its last message. */
struct hvd_decision_writers {
    struct hvd_writer global; /* about the global set, for all ranks */
    struct hvd_writer sets; /* about others: a record for each part */
    int last_set; /* the largest number of a set that they add or create; 0: there is none */
};

/* Where decisions about a set are written. Nothing else is written there until the end. */
struct hvd_part {
    struct hvd_writer *writer;
    int set;
    size_t begin_at;
};

struct hvd_part hvd_part_begin(struct hvd_decision_writers *writers, int set);
void hvd_part_end(const struct hvd_part *part);

/* Ids that come one by one, in as few ranges as they have: one record a range. */
struct hvd_id_range {
    uint64_t first;
    uint32_t count;
};

/* Adds id to the range, or writes the range with this record kind and begins another. */
void hvd_put_id(struct hvd_writer *writer, uint32_t kind, struct hvd_id_range *range,
                uint64_t id);
void hvd_put_ids_end(struct hvd_writer *writer, uint32_t kind,
                     struct hvd_id_range *range);

#endif
