/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the public interface: one or more tensors of this rank in flight. */
#include "collectives/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hvd_request *hvd_request_create(int count)
{
    struct hvd_request *request =
        calloc(1, sizeof(*request) + (size_t)count * sizeof(request->entries[0]));

    if (request == NULL) {
        return NULL;
    }
    atomic_init(&request->status, HVD_INPROGRESS);
    request->count = count;
    request->remaining = count;
    request->unlaunched = count;
    atomic_init(&request->owners, 1);
    for (int i = 0; i < count; i++) {
        request->entries[i].request = request;
    }
    return request;
}

void hvd_request_reset(struct hvd_request *request)
{
    request->error.status = 0;
    request->remaining = request->count;
    request->unlaunched = request->count;
    request->is_kept = false;
    request->range = 0;
    atomic_store_explicit(&request->is_asked_for, false, memory_order_relaxed);
    atomic_store_explicit(&request->is_launched, false, memory_order_relaxed);
    for (int i = 0; i < request->count; i++) {
        request->entries[i].next = NULL;
        request->entries[i].is_agreed = false;
        request->entries[i].is_deferred = false;
        request->entries[i].submitted_ns = 0;
    }
    atomic_store_explicit(&request->status, HVD_INPROGRESS, memory_order_relaxed);
}

void hvd_request_drop(struct hvd_request *request)
{
    if (request == NULL || atomic_fetch_sub(&request->owners, 1) > 1) {
        return;
    }
    for (int i = 0; i < request->count; i++) {
        struct hvd_entry *entry = &request->entries[i];

        free((char *)entry->descriptor.name);
        free((char *)entry->descriptor.note);
        free(entry->splits);
        free(entry->received);
        if (entry->buffer == NULL) {
            free(entry->result);
        }
        if (entry->ready != NULL) { /* the entry is on a GPU */
            hvd_refcount_drop(entry->buffer);
            hvd_refcount_drop(entry->ready);
            hvd_refcount_drop(entry->done);
        }
    }
    free(request);
}

struct hvd_entry *hvd_request_launched_entry(struct hvd_request *request, int index)
{
    bool is_there =
        atomic_load(&request->is_launched) || atomic_load(&request->status) == 0;

    return index >= 0 && index < request->count && is_there &&
                   atomic_load(&request->status) >= 0
               ? &request->entries[index]
               : NULL;
}

struct hvd_entry *hvd_entry_create_zeros(const struct hvd_descriptor *descriptor)
{
    struct hvd_entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL) {
        return NULL;
    }
    entry->descriptor = *descriptor;
    entry->descriptor.note = NULL;
    entry->descriptor.name = strdup(descriptor->name);
    entry->is_zeros = true;
    if (entry->descriptor.name == NULL) {
        free(entry);
        return NULL;
    }
    return entry;
}

void hvd_entry_free_zeros(struct hvd_entry *entry)
{
    hvd_refcount_drop(entry->done);
    free((char *)entry->descriptor.name);
    free(entry);
}

bool hvd_dtype_is_float(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 || dtype == HVD_FLOAT32 ||
           dtype == HVD_FLOAT64;
}

int64_t hvd_entry_count(const struct hvd_entry *entry)
{
    int64_t count = 1;

    for (int i = 0; i < entry->descriptor.ndim; i++) {
        count *= entry->descriptor.shape[i];
    }
    return count;
}

/* Describes a send or receive as its caller started it. */
static void describe_message(const struct hvd_entry *entry,
                             char text[HVD_OPERATION_BYTES])
{
    const bool sends = entry->descriptor.kind == HVD_KIND_SEND;
    const long long tag = entry->request->tag;
    const char *name = entry->descriptor.name;
    char other[24] = "any rank";

    if (entry->descriptor.root >= 0) {
        snprintf(other, sizeof(other), "rank %d", entry->descriptor.root);
    }
    snprintf(text, HVD_OPERATION_BYTES, "%s %s with tag %lld%s%.64s%s",
             sends ? "send to" : "receive from", other, tag, name != NULL ? " ('" : "",
             name != NULL ? name : "", name != NULL ? "')" : "");
}

const char *hvd_entry_operation(const struct hvd_entry *entry,
                                char text[HVD_OPERATION_BYTES])
{
    const char *name = entry->descriptor.name;
    char word[HVD_KIND_WORD];

    if (entry->descriptor.kind >= HVD_KIND_SEND) {
        describe_message(entry, text);
        return text;
    }
    hvd_kind_word(entry->descriptor.kind, word);
    if (strncmp(name, HVD_RESERVED_NAMES, strlen(HVD_RESERVED_NAMES)) == 0) {
        snprintf(text, HVD_OPERATION_BYTES, "%s", word);
    } else {
        snprintf(text, HVD_OPERATION_BYTES, "%s '%.128s'", word, name);
    }
    return text;
}

int64_t hvd_entry_row_bytes(const struct hvd_entry *entry)
{
    int64_t bytes = (int64_t)hvd_dtype_bytes(entry->descriptor.dtype);

    for (int i = 1; i < entry->descriptor.ndim; i++) {
        bytes *= entry->descriptor.shape[i];
    }
    return bytes;
}

struct hvd_share hvd_entry_share(const struct hvd_entry *entry, int size, int rank)
{
    int64_t rows = entry->descriptor.shape[0];
    int64_t each = rows / size, more = rows % size;

    return (struct hvd_share){.begin = rank * each + (rank < more ? rank : more),
                              .rows = each + (rank < more ? 1 : 0)};
}

char *hvd_entry_p2p_memory(const struct hvd_entry *entry)
{
    bool sends = entry->descriptor.kind == HVD_KIND_SEND;

    return entry->result != NULL ? entry->result
           : sends               ? (char *)(uintptr_t)entry->input
                                 : entry->output;
}

int hvd_entry_check_room(const struct hvd_entry *entry, struct hvd_error *err)
{
    int64_t bytes = entry->result_rows * hvd_entry_row_bytes(entry);
    char operation[HVD_OPERATION_BYTES];

    if (entry->output_bytes == 0 || bytes <= (int64_t)entry->output_bytes) {
        return 0;
    }
    return hvd_fail(
        err, HVD_ERR_ARG,
        "%s: the result has %lld rows, which are %lld bytes, but output_bytes "
        "is %zu: give more room, or output_bytes 0 to let the library allocate",
        hvd_entry_operation(entry, operation), (long long)entry->result_rows,
        (long long)bytes, entry->output_bytes);
}

char *hvd_entry_find_room(struct hvd_entry *entry)
{
    if (entry->output_bytes > 0 && hvd_entry_check_room(entry, NULL) == 0) {
        return entry->output;
    }
    if (entry->may_allocate) {
        entry->output_bytes = 0;
    }
    return NULL;
}

int hvd_entry_launch(struct hvd_entry *entry)
{
    struct hvd_request *request = entry->request;

    if (!request->is_kept) {
        request->is_kept = true;
        atomic_fetch_add(&request->owners, 1);
    }
    request->unlaunched--;
    if (request->unlaunched > 0) {
        return 0;
    }
    atomic_store(&request->is_launched, true);
    return 1;
}

int hvd_entry_end(struct hvd_entry *entry, int status, const char *text)
{
    struct hvd_request *request = entry->request;
    int final;

    if (status != 0 && request->error.status == 0) {
        hvd_fail(&request->error, status, "%s", text);
    }
    request->remaining--;
    if (request->remaining > 0) {
        return 0;
    }
    final = request->error.status;
    /* before the check for waiters, so that no wake-up is lost (waiters.h) */
    atomic_store(&request->status, final);
    return 1;
}
