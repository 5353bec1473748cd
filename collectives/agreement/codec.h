/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the agreement. Reports go up the tree: a rank, or all ranks of a
 * subtree, have a tensor. Decisions come down: the next batches of all ranks, in one
 * order for all.
 *
 * A tensor is described in full (a descriptor) until rank 0 has given it an id, which
 * stands for it from then on. An id is never given twice. A message is a sequence of
 * records. Going up, it starts with the number of the last decision message that the
 * sender had seen: its ids have the meaning that they had at that point. */
#ifndef HVD_CODEC_H
#define HVD_CODEC_H

#include "collectives/request/descriptor.h"
#include "collectives/transport/control/encoding.h"

struct hvd_batch_header;

/* The approximate size at which accumulated reports and decisions are split into
 * messages; no message may have more than 64 MiB (uplink.h). */
#define HVD_MESSAGE_BYTES ((size_t)1 << 20)

void hvd_put_descriptor(struct hvd_writer *writer,
                        const struct hvd_descriptor *descriptor);

/* Returns 0, or HVD_ERR_ARG if the descriptor is malformed or has values that no tensor
 * can have. */
int hvd_take_descriptor(struct hvd_reader *reader, struct hvd_descriptor *descriptor);

enum hvd_report_kind {
    HVD_REPORT_CACHED = 1, /* tensors id, id + 1, ... id + count - 1 */
    HVD_REPORT_TENSOR, /* one tensor; struct hvd_tensor_report follows */
    HVD_REPORT_JOIN, /* rank id has joined */
    HVD_REPORT_BREAK, /* replay id must end */
    /* replay id has stopped; for each queue, the least and most batches started */
    HVD_REPORT_FROZEN,
    HVD_REPORT_STALL, /* some rank has waited too long for a tensor */
    /* rank id has not answered ASK number `count`, so its subtree cannot be asked */
    HVD_REPORT_SILENT,
    /* the answer to ASK number `count`: the tensors in flight in this subtree, in id
     * bytes (stalled.h) */
    HVD_REPORT_HELD,
    /* rank id asks for a process set; name, list of members: set_creations.h */
    HVD_REPORT_CREATE,
    HVD_REPORT_ABORT, /* rank id aborts a process set; its number, why: set_aborts.h */
    /* rank id waits in a numbered call: the set, the number, a text; call_order.h */
    HVD_REPORT_CALL,
    HVD_REPORT_STACK, /* where rank id is, in count bytes of text: late_stacks.h */
};

enum hvd_decision_kind {
    HVD_DECISION_BATCH = 1, /* see hvd_put_batch */
    HVD_DECISION_EVICT, /* tensor id leaves the cache */
    HVD_DECISION_REPLAY, /* REPLAY, BREAK and RESUME: replay.h */
    HVD_DECISION_BREAK,
    HVD_DECISION_RESUME,
    HVD_DECISION_ASK, /* report your tensors in flight; id numbers the ASK */
    HVD_DECISION_SETTINGS, /* fusion threshold, cycle time */
    HVD_DECISION_SET, /* count bytes of decisions about set id: relay.h */
    /* the set of this part is created, or why it is not: set_creations.h */
    HVD_DECISION_CREATE,
    HVD_DECISION_REMOVE, /* the set of this part, which its members created, is removed */
    /* the set of this part is aborted, with the reason; id is 1 if its ranks disagree:
     * set_aborts.h */
    HVD_DECISION_ABORT,
    /* asks which members wait in a call of the set before number id: call_order.h */
    HVD_DECISION_CALL,
    HVD_DECISION_STACK, /* rank id must tell where it is: late_stacks.h */
};

/* The beginning of every record. */
struct hvd_record {
    uint32_t kind;
    uint32_t count;
    uint64_t id;
};

void hvd_put_record(struct hvd_writer *writer, uint32_t kind, uint32_t count,
                    uint64_t id);
int hvd_take_record(struct hvd_reader *reader, struct hvd_record *record);

/* The decisions of rank 0 since its last message. */
struct hvd_decision_writers {
    struct hvd_writer global; /* decisions about the global set, for all ranks */
    /* decisions about other sets; each part starts with a record */
    struct hvd_writer sets;
    /* the largest number of a set that they add or create; 0 if there is none */
    int last_set;
};

/* The decisions about one set in the next message. Until part_end, the caller writes
 * nothing else to the writer. */
struct hvd_part {
    struct hvd_writer *writer;
    int set;
    size_t begin_at;
    /* the part starts with a record; decisions about the global set need none, because
     * they come first in the message */
    bool has_record;
};

struct hvd_part hvd_part_begin(struct hvd_decision_writers *writers, int set);
void hvd_part_end(const struct hvd_part *part);

/* Collects ids that come one by one into ranges of consecutive ids, one record per
 * range. */
struct hvd_id_range {
    uint64_t first;
    uint32_t count;
};

/* Adds id to the range if it is the next one. Otherwise writes the range as a record of
 * this kind, and begins another range. */
void hvd_put_id(struct hvd_writer *writer, uint32_t kind, struct hvd_id_range *range,
                uint64_t id);
void hvd_put_ids_end(struct hvd_writer *writer, uint32_t kind,
                     struct hvd_id_range *range);

/* A decision about a batch is a record, the header, the tensors, the rows:
 *
 *   BATCH record (count: tensors)
 *   kind, set, queue, status, text, max_block, row_count, value
 *   then until all tensors are named, each a record:
 *     ids   count cached tensors, of ids id, id + 1, ...
 *     full  one tensor, described in full; id is the id that it has from now on, 0: none
 *   rows of each rank (allgather) */
enum hvd_tensor_form {
    HVD_TENSOR_IDS = 1,
    HVD_TENSOR_FULL,
};

/* Encodes the record and the header. */
void hvd_put_batch(struct hvd_writer *writer, const struct hvd_batch_header *header);

/* Decodes the header, after the record. text is borrowed from the message. Returns 0 or
 * HVD_ERR_ARG. */
int hvd_take_batch(struct hvd_reader *reader, const struct hvd_record *record,
                   struct hvd_batch_header *header);

#endif
