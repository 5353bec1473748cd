/* SPDX-License-Identifier: Apache-2.0 */
/* One rank's description of one tensor. */
#include "collectives/request/descriptor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the name of a kind, or NULL if there is no such kind. */
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

static bool same_shape(const struct hvd_descriptor *a, const struct hvd_descriptor *b)
{
    bool rows_may_differ = hvd_kind_has_rows(a->kind) || a->kind == HVD_KIND_ALLTOALL;
    int first = rows_may_differ && a->ndim > 0 ? 1 : 0;

    return a->ndim == b->ndim &&
           memcmp(a->shape + first, b->shape + first,
                  (size_t)(a->ndim - first) * sizeof(a->shape[0])) == 0;
}

bool hvd_descriptor_equal(const struct hvd_descriptor *a, const struct hvd_descriptor *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->wire == b->wire &&
           a->op == b->op && a->root == b->root && a->device == b->device &&
           a->prescale == b->prescale && a->postscale == b->postscale &&
           a->group == b->group && a->group_size == b->group_size &&
           (a->call != 0) == (b->call != 0) && same_shape(a, b) &&
           (a->kind != HVD_KIND_SET_ADD || strcmp(a->note, b->note) == 0);
}

int64_t hvd_descriptor_bytes(const struct hvd_descriptor *descriptor)
{
    int64_t bytes = (int64_t)hvd_dtype_bytes(descriptor->dtype);

    for (int i = 0; i < descriptor->ndim; i++) {
        bytes *= descriptor->shape[i];
    }
    return bytes;
}

struct hvd_descriptor *hvd_descriptor_copy(const struct hvd_descriptor *descriptor)
{
    struct hvd_descriptor *copy = malloc(sizeof(*copy));

    if (copy == NULL) {
        return NULL;
    }
    *copy = *descriptor;
    copy->name = strdup(descriptor->name);
    copy->note = strdup(descriptor->note != NULL ? descriptor->note : "");
    if (copy->name == NULL || copy->note == NULL) {
        hvd_descriptor_free(copy);
        return NULL;
    }
    return copy;
}

void hvd_descriptor_free(struct hvd_descriptor *descriptor)
{
    if (descriptor != NULL) {
        free((char *)descriptor->name);
        free((char *)descriptor->note);
        free(descriptor);
    }
}
