/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the collectives of the stand-in for NCCL when their stream reaches them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_gpu/fake_nccl.h"

static const int invalid_usage = 5;

static size_t bytes_of(const struct fake_call *call)
{
    return call->count * fake_dtype_bytes(call->dtype);
}

/* Returns the size of this rank's input. The input of a reducescatter has one part for
 * each rank. */
static size_t input_bytes(const struct fake_call *call)
{
    size_t parts = call->kind == FAKE_REDUCE_SCATTER ? (size_t)call->comm->link.size : 1;

    return bytes_of(call) * parts;
}

static bool gives(const struct fake_call *call)
{
    return call->kind != FAKE_BROADCAST || call->peer == call->comm->link.rank;
}

static void *touch(const void *address, size_t bytes)
{
    return fake_gpu_touch("a collective", address, bytes);
}

/* Checks that all ranks make the same call, with memory at the same place of a window. */
static bool agree(const struct fake_call *call)
{
    struct fake_link *link = &call->comm->link;
    uint64_t own = ((uint64_t)call->count * 31 + (uint64_t)call->dtype) * 31;
    bool is_same;

    own = (own + (uint64_t)call->kind) * 31 + (uint64_t)call->op;
    if (call->kind == FAKE_BROADCAST || call->kind == FAKE_REDUCE) {
        own = own * 31 + (uint64_t)call->peer;
    }
    own = own * 31 + fake_window_place(call->comm, call->from);
    own = own * 31 + fake_window_place(call->comm, call->to);
    is_same = fake_link_agree(link, own);
    if (!is_same && !atomic_load(&link->is_aborted)) {
        fprintf(stderr, "fake NCCL: the ranks make different calls\n");
        atomic_store(&call->comm->error, invalid_usage);
    }
    return is_same;
}

static void add_chunk(const struct fake_call *call, size_t bytes, char *to)
{
    struct fake_link *link = &call->comm->link;
    const void *sources[FAKE_MOST_RANKS];

    for (int i = 0; i < link->size; i++) {
        sources[i] = link->shared->places[i].chunk;
    }
    fake_reduce(call->dtype, call->op, call->factor, sources, link->size,
                bytes / fake_dtype_bytes(call->dtype), to);
}

/* Writes the part of this rank's output that depends on bytes [begin, begin + bytes) of
 * the ranks' inputs. */
static void take_chunk(const struct fake_call *call, size_t begin, size_t bytes)
{
    struct fake_link *link = &call->comm->link;
    size_t rank = (size_t)link->rank;
    size_t own = bytes_of(call) * rank, end = own + bytes_of(call);
    char sums[FAKE_CHUNK];

    switch (call->kind) {
    case FAKE_ALL_GATHER:
        for (size_t i = 0; i < (size_t)link->size; i++) {
            memcpy(touch((char *)call->to + i * bytes_of(call) + begin, bytes),
                   link->shared->places[i].chunk, bytes);
        }
        break;
    case FAKE_BROADCAST:
        memcpy(touch((char *)call->to + begin, bytes),
               link->shared->places[call->peer].chunk, bytes);
        break;
    case FAKE_REDUCE_SCATTER:
        own = own > begin ? own : begin;
        end = end < begin + bytes ? end : begin + bytes;
        if (own < end) {
            add_chunk(call, bytes, sums);
            memcpy(touch((char *)call->to + (own - bytes_of(call) * rank), end - own),
                   sums + (own - begin), end - own);
        }
        break;
    default:
        if (call->kind == FAKE_ALL_REDUCE || call->peer == link->rank) {
            add_chunk(call, bytes, touch((char *)call->to + begin, bytes));
        }
    }
}

/* Fills the output of an aborted call with garbage: neither the input, nor a result, nor
 * NaN. */
static void spoil(const struct fake_call *call)
{
    const int garbage = 0x3e;
    size_t bytes = call->kind == FAKE_SEND ? 0 : bytes_of(call);

    if (call->kind == FAKE_ALL_GATHER) {
        bytes *= (size_t)call->comm->link.size;
    }
    if (bytes > 0 && (call->kind != FAKE_REDUCE || call->peer == call->comm->link.rank)) {
        memset(touch(call->to, bytes), garbage, bytes);
    }
}

/* With FAKE_NCCL_SLOW_SCATTER, a reduce-scatter takes 100 ms longer. */
static void take_long(const struct fake_call *call)
{
    const struct timespec time = {.tv_nsec = 100000000};

    if (call->kind == FAKE_REDUCE_SCATTER && getenv("FAKE_NCCL_SLOW_SCATTER") != NULL) {
        nanosleep(&time, NULL);
    }
}

static void run_collective(const struct fake_call *call)
{
    struct fake_link *link = &call->comm->link;
    char *chunk = link->shared->places[link->rank].chunk;
    size_t total = input_bytes(call);

    take_long(call);
    if (!agree(call)) {
        return;
    }
    for (size_t begin = 0; begin < total; begin += FAKE_CHUNK) {
        size_t bytes = total - begin < FAKE_CHUNK ? total - begin : FAKE_CHUNK;

        if (gives(call)) {
            memcpy(chunk, touch((const char *)call->from + begin, bytes), bytes);
        }
        if (!fake_link_barrier(link)) {
            return;
        }
        take_chunk(call, begin, bytes);
        if (!fake_link_barrier(link)) {
            return;
        }
    }
}

/* Returns true if it moved any bytes. */
static bool move_message(struct fake_call *call)
{
    struct fake_link *link = &call->comm->link;
    bool sends = call->kind == FAKE_SEND;
    struct fake_box *box = sends ? &link->shared->boxes[link->rank][call->peer]
                                 : &link->shared->boxes[call->peer][link->rank];
    size_t left = bytes_of(call) - call->done;
    size_t held = atomic_load(&box->bytes);

    if (left == 0 || (held == 0) != sends) {
        return false;
    }
    if (sends) {
        held = left < FAKE_BOX ? left : FAKE_BOX;
        memcpy(box->data, touch((const char *)call->from + call->done, held), held);
        atomic_store(&box->bytes, held);
    } else {
        memcpy(touch((char *)call->to + call->done, held), box->data, held);
        atomic_store(&box->bytes, 0);
    }
    call->done += held;
    return true;
}

static void run_messages(struct fake_call *calls)
{
    bool is_open = true;

    for (unsigned turn = 0; is_open; turn++) {
        bool moved = false;

        is_open = false;
        for (struct fake_call *call = calls; call != NULL; call = call->next) {
            if (call->kind == FAKE_SEND || call->kind == FAKE_RECV) {
                moved |= move_message(call);
                is_open |= call->done < bytes_of(call);
            }
        }
        if (is_open && atomic_load(&calls->comm->link.is_aborted)) {
            return;
        }
        turn = moved ? 0 : turn;
        if (!moved) {
            fake_link_pause(turn);
        }
    }
}

void fake_calls_run(void *argument)
{
    struct fake_call *calls = argument;
    struct fake_comm *comm = calls->comm;

    for (struct fake_call *call = calls; call != NULL; call = call->next) {
        if (call->kind != FAKE_SEND && call->kind != FAKE_RECV) {
            run_collective(call);
        }
    }
    run_messages(calls);
    for (struct fake_call *call = calls; call != NULL; call = call->next) {
        if (atomic_load(&comm->link.is_aborted)) {
            spoil(call);
        }
    }
    while (calls != NULL) {
        struct fake_call *next = calls->next;

        free(calls);
        calls = next;
    }
    atomic_fetch_sub(&comm->under_way, 1);
}
