/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other while they agree: reports go up the tree, decisions come down. */
#include "collectives/agreement/message.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL: there is no such kind. */
static const char *name_of(int64_t kind)
{
    static const char *const names[] = {
        [HVD_KIND_ALLREDUCE] = "ALLREDUCE",
        [HVD_KIND_ALLGATHER] = "ALLGATHER",
        [HVD_KIND_BROADCAST] = "BROADCAST",
        [HVD_KIND_JOIN] = "JOIN",
        [HVD_KIND_ADASUM] = "ADASUM",
        [HVD_KIND_ALLTOALL] = "ALLTOALL",
        [HVD_KIND_BARRIER] = "BARRIER",
        [HVD_KIND_REDUCESCATTER] = "REDUCESCATTER",
        [HVD_KIND_REDUCE] = "REDUCE",
        [HVD_KIND_GATHER] = "GATHER",
        [HVD_KIND_SCATTER] = "SCATTER",
        [HVD_KIND_SET_ADD] = "ADD_PROCESS_SET",
        [HVD_KIND_SET_REMOVE] = "REMOVE_PROCESS_SET",
        [HVD_KIND_SET_CREATE] = "CREATE_PROCESS_SET",
        [HVD_KIND_SET_ABORT] = "ABORT_PROCESS_SET",
    };
    bool is_known = kind >= 0 && kind < (int64_t)(sizeof(names) / sizeof(names[0])) &&
                    names[kind] != NULL;

    return is_known ? names[kind] : NULL;
}

const char *hvd_kind_name(enum hvd_kind kind)
{
    const char *name = name_of(kind);

    return name != NULL ? name : "UNKNOWN";
}

bool hvd_kind_is_known(int64_t kind)
{
    return kind != HVD_KIND_SET_ABORT && name_of(kind) != NULL;
}

bool hvd_kind_has_root(enum hvd_kind kind)
{
    return kind == HVD_KIND_BROADCAST || kind == HVD_KIND_REDUCE ||
           kind == HVD_KIND_GATHER || kind == HVD_KIND_SCATTER;
}

bool hvd_kind_has_rows(enum hvd_kind kind)
{
    return kind == HVD_KIND_ALLGATHER || kind == HVD_KIND_GATHER;
}

const char *hvd_op_name(enum hvd_op op)
{
    static const char *const names[HVD_OP_COUNT] = {
        "Average", "Sum",         "Adasum",     "Min",        "Max",
        "Product", "Bitwise and", "Bitwise or", "Bitwise xor"};

    return (unsigned)op < HVD_OP_COUNT ? names[op] : "unknown";
}

const char *hvd_kind_word(enum hvd_kind kind, char word[HVD_KIND_WORD])
{
    snprintf(word, HVD_KIND_WORD, "%s", hvd_kind_name(kind));
    for (char *c = word; *c != '\0'; c++) {
        *c = *c == '_' ? ' ' : (char)tolower((unsigned char)*c);
    }
    return word;
}

static bool same_shape(const struct hvd_proposal *a, const struct hvd_proposal *b)
{
    bool rows_may_differ = hvd_kind_has_rows(a->kind) || a->kind == HVD_KIND_ALLTOALL;
    int first = rows_may_differ && a->ndim > 0 ? 1 : 0;

    return a->ndim == b->ndim &&
           memcmp(a->shape + first, b->shape + first,
                  (size_t)(a->ndim - first) * sizeof(a->shape[0])) == 0;
}

bool hvd_proposal_equal(const struct hvd_proposal *a, const struct hvd_proposal *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->wire == b->wire &&
           a->op == b->op && a->root == b->root && a->device == b->device &&
           a->prescale == b->prescale && a->postscale == b->postscale &&
           a->group == b->group && a->group_size == b->group_size &&
           (a->call != 0) == (b->call != 0) && same_shape(a, b) &&
           (a->kind != HVD_KIND_SET_ADD || strcmp(a->note, b->note) == 0);
}

bool hvd_proposal_ends_with_set(const struct hvd_proposal *proposal)
{
    return proposal->set == HVD_SET_GLOBAL ? proposal->call != 0
                                           : proposal->kind != HVD_KIND_SET_REMOVE;
}

int64_t hvd_proposal_bytes(const struct hvd_proposal *proposal)
{
    int64_t bytes = (int64_t)hvd_dtype_bytes(proposal->dtype);

    for (int i = 0; i < proposal->ndim; i++) {
        bytes *= proposal->shape[i];
    }
    return bytes;
}

/* What a description begins with. All are 8 bytes wide, so that there is no padding. */
struct packed_proposal {
    int64_t rank, set, kind, dtype, wire, op, root, device, is_numbered;
    double prescale, postscale;
    int64_t max_block, ndim;
};

void hvd_put_proposal(struct hvd_writer *writer, const struct hvd_proposal *proposal)
{
    const struct packed_proposal packed = {
        .rank = proposal->rank,
        .set = proposal->set,
        .kind = proposal->kind,
        .dtype = proposal->dtype,
        .wire = proposal->wire,
        .op = proposal->op,
        .root = proposal->root,
        .device = proposal->device,
        .is_numbered = proposal->call != 0,
        .prescale = proposal->prescale,
        .postscale = proposal->postscale,
        .max_block = proposal->max_block,
        .ndim = proposal->ndim,
    };

    hvd_put(writer, &packed, sizeof(packed));
    hvd_put(writer, proposal->shape, (size_t)proposal->ndim * sizeof(proposal->shape[0]));
    hvd_put_int(writer, (int64_t)proposal->group);
    hvd_put_int(writer, proposal->group_size);
    hvd_put_text(writer, proposal->name);
    hvd_put_text(writer, proposal->note);
}

static bool is_within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

/* Numbers that a rank may have, as far as one tensor alone tells. */
static bool is_possible(const struct packed_proposal *packed)
{
    return is_within(packed->rank, 0, INT32_MAX) &&
           is_within(packed->set, 0, INT32_MAX) && hvd_kind_is_known(packed->kind) &&
           is_within(packed->dtype, 0, HVD_DTYPE_COUNT - 1) &&
           is_within(packed->wire, 0, HVD_DTYPE_COUNT - 1) &&
           is_within(packed->op, 0, HVD_OP_COUNT - 1) &&
           is_within(packed->root, INT32_MIN, INT32_MAX) &&
           is_within(packed->device, HVD_DEVICE_CPU, HVD_PROPOSAL_GPU) &&
           packed->max_block >= 0 && is_within(packed->ndim, 0, HVD_MAX_DIMS);
}

/* No tensor has more bytes: so sums of them can be counted. */
static const int64_t most_bytes = (int64_t)1 << 48;

static bool has_possible_shape(const struct hvd_proposal *proposal)
{
    int64_t bytes = (int64_t)hvd_dtype_bytes(proposal->dtype);

    for (int i = 0; i < proposal->ndim; i++) {
        if (proposal->shape[i] < 0 ||
            __builtin_mul_overflow(bytes, proposal->shape[i], &bytes)) {
            return false;
        }
    }
    return bytes <= most_bytes;
}

static void unpack(const struct packed_proposal *packed, struct hvd_proposal *proposal)
{
    proposal->rank = (int32_t)packed->rank;
    proposal->set = (int32_t)packed->set;
    proposal->kind = (enum hvd_kind)packed->kind;
    proposal->dtype = (enum hvd_dtype)packed->dtype;
    proposal->wire = (int32_t)packed->wire;
    proposal->op = (enum hvd_op)packed->op;
    proposal->root = (int32_t)packed->root;
    proposal->device = (int32_t)packed->device;
    proposal->call = packed->is_numbered != 0;
    proposal->prescale = packed->prescale;
    proposal->postscale = packed->postscale;
    proposal->max_block = packed->max_block;
    proposal->ndim = (int32_t)packed->ndim;
}

int hvd_take_proposal(struct hvd_reader *reader, struct hvd_proposal *proposal)
{
    const void *data = hvd_take(reader, sizeof(struct packed_proposal));
    struct packed_proposal packed;

    if (data == NULL) {
        return HVD_ERR_ARG;
    }
    memcpy(&packed, data, sizeof(packed)); /* it may be unaligned */
    if (!is_possible(&packed)) {
        return HVD_ERR_ARG;
    }
    unpack(&packed, proposal);
    data = hvd_take(reader, (size_t)proposal->ndim * sizeof(proposal->shape[0]));
    if (data != NULL) {
        memcpy(proposal->shape, data,
               (size_t)proposal->ndim * sizeof(proposal->shape[0]));
    }
    proposal->group = (uint64_t)hvd_take_int(reader);
    proposal->group_size = (int32_t)hvd_take_int(reader);
    proposal->name = hvd_take_text(reader);
    proposal->note = hvd_take_text(reader);
    return reader->failed || proposal->group_size < 0 || !has_possible_shape(proposal)
               ? HVD_ERR_ARG
               : 0;
}

struct hvd_proposal *hvd_proposal_copy(const struct hvd_proposal *proposal)
{
    struct hvd_proposal *copy = malloc(sizeof(*copy));

    if (copy == NULL) {
        return NULL;
    }
    *copy = *proposal;
    copy->name = strdup(proposal->name);
    copy->note = strdup(proposal->note != NULL ? proposal->note : "");
    if (copy->name == NULL || copy->note == NULL) {
        hvd_proposal_free(copy);
        return NULL;
    }
    return copy;
}

void hvd_proposal_free(struct hvd_proposal *proposal)
{
    if (proposal != NULL) {
        free((char *)proposal->name);
        free((char *)proposal->note);
        free(proposal);
    }
}

void hvd_put_record(struct hvd_writer *writer, uint32_t kind, uint32_t count, uint64_t id)
{
    const struct hvd_record record = {.kind = kind, .count = count, .id = id};

    hvd_put(writer, &record, sizeof(record));
}

int hvd_take_record(struct hvd_reader *reader, struct hvd_record *record)
{
    const void *data = hvd_take(reader, sizeof(*record));

    if (data == NULL) {
        return HVD_ERR_ARG;
    }
    memcpy(record, data, sizeof(*record));
    return 0;
}

void hvd_put_ids_end(struct hvd_writer *writer, uint32_t kind, struct hvd_id_range *range)
{
    if (range->count > 0) {
        hvd_put_record(writer, kind, range->count, range->first);
        range->count = 0;
    }
}

struct hvd_part hvd_part_begin(struct hvd_decision_writers *writers, int set)
{
    struct hvd_part part = {
        .writer = set == HVD_SET_GLOBAL ? &writers->global : &writers->sets, .set = set};

    part.begin_at = part.writer->bytes;
    if (set != HVD_SET_GLOBAL) {
        hvd_put_record(part.writer, HVD_DECISION_SET, 0, (uint64_t)set);
    }
    return part;
}

void hvd_part_end(const struct hvd_part *part)
{
    struct hvd_record record = {.kind = HVD_DECISION_SET, .id = (uint64_t)part->set};

    if (part->set != HVD_SET_GLOBAL && !part->writer->failed) {
        record.count = (uint32_t)(part->writer->bytes - part->begin_at - sizeof(record));
        memcpy(part->writer->data + part->begin_at, &record, sizeof(record));
    }
}

void hvd_put_id(struct hvd_writer *writer, uint32_t kind, struct hvd_id_range *range,
                uint64_t id)
{
    if (range->count > 0 && id == range->first + range->count) {
        range->count++;
        return;
    }
    hvd_put_ids_end(writer, kind, range);
    *range = (struct hvd_id_range){.first = id, .count = 1};
}
