/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the tensors in flight and the ranks that have them. */
#include "collectives/agreement/stalled.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

/* Size of a tensor in a message, without its name: age, kind, set, length of the name,
 * ranges. */
static const size_t fixed_bytes = 6 * sizeof(int64_t);

static size_t word_count(const struct hvd_stalled *list)
{
    return (list->ranks + 63) / 64;
}

void hvd_stalled_init(struct hvd_stalled *list, size_t ranks, uint64_t salt)
{
    *list = (struct hvd_stalled){.ranks = ranks, .salt = salt, .limit = UINT64_MAX};
    list->end = &list->first;
}

void hvd_stalled_finish(struct hvd_stalled *list)
{
    while (list->first != NULL) {
        struct hvd_stalled_tensor *next = list->first->next;

        free(list->first);
        list->first = next;
    }
    hvd_hash_table_finish(&list->by_key);
    *list = (struct hvd_stalled){0};
}

bool hvd_stalled_holds(const struct hvd_stalled_tensor *tensor, int rank)
{
    return (tensor->holders[rank / 64] >> (rank % 64) & 1) != 0;
}

bool hvd_stalled_is_short(const struct hvd_stalled *list)
{
    return list->limit != UINT64_MAX;
}

static uint64_t order_of(const struct hvd_stalled *list, const struct hvd_key *key)
{
    return hvd_hash_number(key->hash ^ hvd_hash_number(list->salt + 1));
}

/* --- bounds --- */

static size_t tensor_bytes(const struct hvd_stalled_tensor *tensor)
{
    return fixed_bytes + strlen(tensor->key.name) + 1;
}

/* Drops the tensors at and behind this point of the order. */
static void shorten_list(struct hvd_stalled *list, uint64_t limit)
{
    struct hvd_stalled_tensor **at = &list->first;

    if (limit >= list->limit) {
        return;
    }
    list->limit = limit;
    while (*at != NULL) {
        struct hvd_stalled_tensor *tensor = *at;

        if (tensor->order < limit) {
            at = &tensor->next;
            continue;
        }
        *at = tensor->next;
        list->bytes -= tensor_bytes(tensor);
        hvd_hash_table_remove(&list->by_key, tensor->key.hash, hvd_key_equal,
                              &tensor->key);
        free(tensor);
    }
    list->end = at;
}

/* Halves the limit until the list fits: the order is random, so that about half of the
 * tensors remain. */
static void keep_bounded(struct hvd_stalled *list, size_t most)
{
    while (list->bytes > most) {
        shorten_list(list, list->limit / 2);
    }
}

/* --- adding --- */

static struct hvd_stalled_tensor *add_tensor(struct hvd_stalled *list,
                                             const struct hvd_key *key, uint64_t order)
{
    size_t words = word_count(list), name_bytes = strlen(key->name) + 1;
    struct hvd_stalled_tensor *tensor =
        calloc(1, sizeof(*tensor) + words * sizeof(uint64_t) + name_bytes);

    if (tensor == NULL || hvd_hash_table_add(&list->by_key, key->hash, tensor) != 0) {
        free(tensor);
        return NULL;
    }
    tensor->holders = (uint64_t *)(tensor + 1);
    memcpy(tensor->holders + words, key->name, name_bytes);
    tensor->key = *key;
    tensor->key.name = (const char *)(tensor->holders + words);
    tensor->order = order;
    *list->end = tensor;
    list->end = &tensor->next;
    list->bytes += tensor_bytes(tensor);
    return tensor;
}

/* Finds or adds a tensor; *out is NULL if the tensor is beyond the list's limit. */
static int find_tensor(struct hvd_stalled *list, const struct hvd_key *key, int kind,
                       struct hvd_stalled_tensor **out)
{
    uint64_t order = order_of(list, key);

    *out = NULL;
    if (order >= list->limit) {
        return 0;
    }
    *out = hvd_hash_table_find(&list->by_key, key->hash, hvd_key_equal, key);
    if (*out == NULL) {
        *out = add_tensor(list, key, order);
        if (*out == NULL) {
            return HVD_ERR_NOMEM;
        }
        (*out)->kind = kind;
    }
    return 0;
}

int hvd_stalled_add(struct hvd_stalled *list, const struct hvd_key *key, int kind,
                    int rank, int64_t age_ns)
{
    struct hvd_stalled_tensor *tensor;
    int status = find_tensor(list, key, kind, &tensor);

    if (tensor != NULL) {
        tensor->holders[rank / 64] |= (uint64_t)1 << (rank % 64);
        tensor->age_ns = age_ns > tensor->age_ns ? age_ns : tensor->age_ns;
    }
    keep_bounded(list, 2 * (size_t)HVD_STALLED_BYTES);
    return status;
}

/* --- ranks in a message --- */

struct range {
    uint32_t first;
    uint32_t count;
};

/* Returns the next range of ranks, not before `from`; count 0: there is none. */
static struct range next_range(const struct hvd_stalled *list,
                               const struct hvd_stalled_tensor *tensor, size_t from)
{
    struct range range = {0};

    while (from < list->ranks && !hvd_stalled_holds(tensor, (int)from)) {
        from += tensor->holders[from / 64] == 0 ? 64 - from % 64 : 1;
    }
    range.first = (uint32_t)from;
    while (from < list->ranks && hvd_stalled_holds(tensor, (int)from)) {
        from++;
        range.count++;
    }
    return range;
}

static int64_t count_ranges(const struct hvd_stalled *list,
                            const struct hvd_stalled_tensor *tensor)
{
    struct range range = next_range(list, tensor, 0);
    int64_t count = 0;

    while (range.count > 0) {
        count++;
        range = next_range(list, tensor, (size_t)range.first + range.count);
    }
    return count;
}

static void put_holders(const struct hvd_stalled *list,
                        const struct hvd_stalled_tensor *tensor,
                        struct hvd_writer *writer)
{
    size_t bits = word_count(list) * sizeof(tensor->holders[0]);
    int64_t count = count_ranges(list, tensor);
    struct range range = next_range(list, tensor, 0);

    if ((size_t)count * sizeof(range) > bits) {
        hvd_put_int(writer, -1);
        hvd_put(writer, tensor->holders, bits);
        return;
    }
    hvd_put_int(writer, count);
    while (range.count > 0) {
        hvd_put(writer, &range, sizeof(range));
        range = next_range(list, tensor, (size_t)range.first + range.count);
    }
}

/* Reads one bit for each rank. tensor is NULL if the list leaves the tensor out. */
static int take_bits(const struct hvd_stalled *list, struct hvd_reader *reader,
                     struct hvd_stalled_tensor *tensor)
{
    size_t words = word_count(list);
    const char *data = hvd_take(reader, words * sizeof(uint64_t));

    for (size_t i = 0; data != NULL && tensor != NULL && i < words; i++) {
        uint64_t word;

        memcpy(&word, data + i * sizeof(word), sizeof(word));
        tensor->holders[i] |= word;
    }
    return data != NULL ? 0 : HVD_ERR_ARG;
}

static int take_holders(const struct hvd_stalled *list, struct hvd_reader *reader,
                        struct hvd_stalled_tensor *tensor)
{
    int64_t count = hvd_take_int(reader);

    if (count < 0) {
        return take_bits(list, reader, tensor);
    }
    for (int64_t i = 0; i < count && !reader->failed; i++) {
        const void *data = hvd_take(reader, sizeof(struct range));
        struct range range = {0};

        if (data != NULL) {
            memcpy(&range, data, sizeof(range));
        }
        if ((size_t)range.first + range.count > list->ranks) {
            return HVD_ERR_ARG;
        }
        for (uint32_t k = 0; tensor != NULL && k < range.count; k++) {
            uint32_t rank = range.first + k;

            tensor->holders[rank / 64] |= (uint64_t)1 << (rank % 64);
        }
    }
    return reader->failed ? HVD_ERR_ARG : 0;
}

/* --- lists in a message --- */

static int take_tensor(struct hvd_stalled *list, struct hvd_reader *reader)
{
    int64_t age_ns = hvd_take_int(reader);
    int kind = (int)hvd_take_int(reader);
    int32_t set = (int32_t)hvd_take_int(reader);
    const char *name = hvd_take_text(reader);
    struct hvd_key key = hvd_key_make(set, name);
    struct hvd_stalled_tensor *tensor = NULL;
    int status = reader->failed ? HVD_ERR_ARG : find_tensor(list, &key, kind, &tensor);

    if (tensor != NULL && age_ns > tensor->age_ns) {
        tensor->age_ns = age_ns;
    }
    return status != 0 ? status : take_holders(list, reader, tensor);
}

int hvd_stalled_merge(struct hvd_stalled *list, const void *data, size_t bytes)
{
    struct hvd_reader reader = {.data = data, .bytes = bytes};
    int status = 0;

    shorten_list(list, (uint64_t)hvd_take_int(&reader));
    while (status == 0 && reader.bytes > 0) {
        status = take_tensor(list, &reader);
        keep_bounded(list, 2 * (size_t)HVD_STALLED_BYTES);
    }
    return reader.failed ? HVD_ERR_ARG : status;
}

void hvd_stalled_put(struct hvd_stalled *list, struct hvd_writer *writer)
{
    size_t begin = writer->bytes;

    do { /* the size of the ranges is known only when they are written */
        keep_bounded(list, HVD_STALLED_BYTES);
        writer->bytes = begin;
        hvd_put_int(writer, (int64_t)list->limit);
        for (const struct hvd_stalled_tensor *tensor = list->first; tensor != NULL;
             tensor = tensor->next) {
            hvd_put_int(writer, tensor->age_ns);
            hvd_put_int(writer, tensor->kind);
            hvd_put_int(writer, tensor->key.set);
            hvd_put_text(writer, tensor->key.name);
            put_holders(list, tensor, writer);
        }
        if (writer->bytes - begin <= 2 * (size_t)HVD_STALLED_BYTES) {
            return;
        }
        shorten_list(list, list->limit / 2);
    } while (!writer->failed);
}
