/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that reduce a small batch in one launch, without NCCL: hvd_push_NAME for
 * each of HVD_KERNEL_PUSH_LIST. Compiled by nvcc for GPUs, and as C for the stand-in for
 * a GPU in the tests.
 *
 *   pack     block b stores its part of the tensors into this rank's slot of all inboxes,
 *   tell     then the number of the call into its flag of all inboxes
 *   look     waits for the flags of block b of all ranks, in its own inbox
 *   finish   adds up the slots of its own inbox, and stores the sums into the tensors
 *
 * Between these functions all threads of the block meet at a barrier. A block waits only
 * for the same block of other ranks, and every rank launches the same number of blocks.
 *
 * Slots are used in turn by odd and even calls. When call n + 2 stores into a slot of a
 * rank, that rank has read it in call n: this rank has ended call n + 1, so it has seen a
 * flag of that rank's call n + 1, which began after its call n, on the same stream. And
 * when a rank's call has ended, no other rank will store into its inbox for that call.
 * An aborted call ends without the flags of all ranks, so this rank stores into no slot
 * in later calls.
 *
 * The sums have the bits of an allreduce of host tensors: sources are multiplied, added
 * in order of rank, and multiplied again, in float32 for 16-bit floats, then rounded. */
#ifndef HVD_KERNEL_PUSH_H
#define HVD_KERNEL_PUSH_H

#include "collectives/gpu/module/kernel_body.h"
#include "collectives/gpu/module/kernel_sum.h"

enum hvd_push_state {
    HVD_PUSH_ARRIVED,
    HVD_PUSH_PENDING,
    HVD_PUSH_ABORTED, /* the flag may never come */
};

/* The elements of a tensor that make up one vector of a slot. */
struct hvd_push_part {
    const char *from; /* NULL: zeros */
    char *to; /* NULL: not stored */
    uint32_t count;
};

HVD_KERNEL_FUNCTION char *hvd_push_flag(const struct hvd_kernel_push *push, int32_t inbox,
                                        int32_t rank, uint32_t block)
{
    return push->inboxes[inbox] + ((uint32_t)rank * HVD_KERNEL_BLOCKS + block) * 8;
}

HVD_KERNEL_FUNCTION char *hvd_push_slot(const struct hvd_kernel_push *push, int32_t inbox,
                                        int32_t rank, uint32_t vector)
{
    uint64_t slot = (push->call & 1) * (uint64_t)push->ranks + (uint64_t)rank;

    return push->inboxes[inbox] + HVD_KERNEL_HEAD_BYTES + slot * push->slot_bytes +
           (uint64_t)vector * HVD_KERNEL_VECTOR;
}

HVD_KERNEL_FUNCTION uint32_t hvd_push_end(const struct hvd_kernel_push *push,
                                          uint32_t block)
{
    uint32_t end = (block + 1) * push->block_vectors;

    return end < push->vectors ? end : push->vectors;
}

/* group: elements of a vector. size: bytes of an element of the tensor. */
HVD_KERNEL_FUNCTION struct hvd_push_part hvd_push_part(const struct hvd_kernel_push *push,
                                                       uint32_t vector, uint32_t group,
                                                       uint32_t size)
{
    int32_t tensor = 0, last = push->count - 1;
    struct hvd_push_part part;
    uint32_t done, left;

    while (tensor < last) {
        int32_t middle = (tensor + last + 1) / 2;

        if (push->begin[middle] <= vector) {
            tensor = middle;
        } else {
            last = middle - 1;
        }
    }
    done = (vector - push->begin[tensor]) * group;
    left = push->counts[tensor] - done;
    part.from = push->from[tensor] != NULL ? push->from[tensor] + done * size : NULL;
    part.to = push->to[tensor] != NULL ? push->to[tensor] + done * size : NULL;
    part.count = left < group ? left : group;
    return part;
}

/* Returns the address of the number of this rank's first call that was aborted; 0:
 * none. */
HVD_KERNEL_FUNCTION char *hvd_push_last(const struct hvd_kernel_push *push)
{
    return push->inboxes[push->rank] + HVD_KERNEL_FLAG_BYTES;
}

/* Whether an earlier call was aborted. A block of this call does not count: then all
 * threads get the same answer. */
HVD_KERNEL_FUNCTION bool hvd_push_is_over(const struct hvd_kernel_push *push)
{
    uint64_t last = hvd_load_uint64(hvd_push_last(push));

    return last != 0 && last < push->call;
}

HVD_KERNEL_FUNCTION void hvd_push_tell(const struct hvd_kernel_push *push, uint32_t block,
                                       uint32_t thread)
{
    if (thread < (uint32_t)push->ranks && !hvd_push_is_over(push)) {
        hvd_store_flag(hvd_push_flag(push, (int32_t)thread, push->rank, block),
                       push->call);
    }
}

/* Looks for the flag of the rank whose number is `thread`. A rank may be one call ahead.
 * turn: counts the calls of this function, from 1; the flag in host memory, which is far
 * away, is read only now and then. */
HVD_KERNEL_FUNCTION enum hvd_push_state hvd_push_look(const struct hvd_kernel_push *push,
                                                      uint32_t block, uint32_t thread,
                                                      uint32_t turn)
{
    if (turn == 1 && hvd_push_is_over(push)) {
        return HVD_PUSH_ABORTED;
    }
    if (thread >= (uint32_t)push->ranks ||
        hvd_load_flag(hvd_push_flag(push, push->rank, (int32_t)thread, block)) >=
            push->call) {
        return HVD_PUSH_ARRIVED;
    }
    return turn % 1024 == 0 && *push->aborted != 0 ? HVD_PUSH_ABORTED : HVD_PUSH_PENDING;
}

#define HVD_PUSH_SAME(bits, factor) (bits)

/* TENSOR, SLOT: unsigned integers as wide as the elements. NUMBER: the type of the
 * computation. COMBINE: the operation on two numbers. LOAD, STORE: convert the bits of a
 * slot to NUMBER and back. EACH: the factor of each source. NARROW, WIDEN: convert the
 * bits of a tensor to those of a slot, with a factor, and back. */
#define HVD_KERNEL_PUSHER(NAME, TENSOR, SLOT, NUMBER, COMBINE, LOAD, STORE, EACH,        \
                          NARROW, WIDEN)                                                 \
    enum {                                                                               \
        HVD_GROUP_##NAME = HVD_KERNEL_VECTOR / sizeof(SLOT)                              \
    };                                                                                   \
    union hvd_bits_##NAME {                                                              \
        hvd_vector vector;                                                               \
        SLOT bits[HVD_GROUP_##NAME];                                                     \
    };                                                                                   \
    HVD_KERNEL_FUNCTION bool hvd_is_whole_##NAME(const char *at, uint32_t count)         \
    {                                                                                    \
        return sizeof(TENSOR) == sizeof(SLOT) && count == HVD_GROUP_##NAME &&            \
               hvd_kernel_offset(at, HVD_KERNEL_VECTOR) == 0;                            \
    }                                                                                    \
    HVD_KERNEL_FUNCTION hvd_vector hvd_take_##NAME(const struct hvd_kernel_push *push,   \
                                                   const struct hvd_push_part *part)     \
    {                                                                                    \
        union hvd_bits_##NAME taken;                                                     \
                                                                                         \
        (void)push;                                                                      \
        if (part->from != NULL && hvd_is_whole_##NAME(part->from, part->count)) {        \
            return hvd_load_vector(part->from);                                          \
        }                                                                                \
        HVD_KERNEL_UNROLL                                                                \
        for (uint32_t i = 0; i < HVD_GROUP_##NAME; i++) {                                \
            TENSOR bits = 0;                                                             \
                                                                                         \
            if (i < part->count && part->from != NULL) {                                 \
                bits = (TENSOR)hvd_load_bits(part->from + i * sizeof(TENSOR),            \
                                             sizeof(TENSOR));                            \
            }                                                                            \
            taken.bits[i] = NARROW(bits, (NUMBER)push->before);                          \
        }                                                                                \
        return taken.vector;                                                             \
    }                                                                                    \
    HVD_KERNEL_FUNCTION void hvd_pack_##NAME(const struct hvd_kernel_push *push,         \
                                             uint32_t block, uint32_t thread)            \
    {                                                                                    \
        const bool is_over = hvd_push_is_over(push);                                     \
                                                                                         \
        for (uint32_t at = block * push->block_vectors + thread;                         \
             at < hvd_push_end(push, block) && !is_over; at += HVD_KERNEL_THREADS) {     \
            struct hvd_push_part part =                                                  \
                hvd_push_part(push, at, HVD_GROUP_##NAME, sizeof(TENSOR));               \
            hvd_vector taken = hvd_take_##NAME(push, &part);                             \
                                                                                         \
            for (int32_t inbox = 0; inbox < push->ranks; inbox++) {                      \
                hvd_store_vector(hvd_push_slot(push, inbox, push->rank, at), taken);     \
            }                                                                            \
        }                                                                                \
    }                                                                                    \
    HVD_KERNEL_FUNCTION hvd_vector hvd_total_##NAME(const struct hvd_kernel_push *push,  \
                                                    uint32_t at)                         \
    {                                                                                    \
        const NUMBER each = (NUMBER)(EACH);                                              \
        union hvd_bits_##NAME some[HVD_KERNEL_AT_ONCE];                                  \
        NUMBER totals[HVD_GROUP_##NAME] = {0};                                           \
                                                                                         \
        for (int32_t first = 0; first < push->ranks; first += HVD_KERNEL_AT_ONCE) {      \
            HVD_KERNEL_UNROLL                                                            \
            for (int32_t i = 0; i < HVD_KERNEL_AT_ONCE; i++) {                           \
                if (first + i < push->ranks) {                                           \
                    some[i].vector =                                                     \
                        hvd_load_vector(hvd_push_slot(push, push->rank, first + i, at)); \
                }                                                                        \
            }                                                                            \
            HVD_KERNEL_UNROLL                                                            \
            for (int32_t i = 0; i < HVD_KERNEL_AT_ONCE; i++) {                           \
                HVD_KERNEL_UNROLL                                                        \
                for (int k = 0; k < HVD_GROUP_##NAME && first + i < push->ranks; k++) {  \
                    NUMBER number = LOAD(some[i].bits[k]) * each;                        \
                                                                                         \
                    totals[k] = first + i == 0                                           \
                                    ? number                                             \
                                    : COMBINE(HVD_KERNEL_PLUS, totals[k], number);       \
                }                                                                        \
            }                                                                            \
        }                                                                                \
        HVD_KERNEL_UNROLL                                                                \
        for (int k = 0; k < HVD_GROUP_##NAME; k++) {                                     \
            some[0].bits[k] =                                                            \
                (SLOT)STORE(COMBINE(HVD_KERNEL_TIMES, totals[k], (NUMBER)push->after));  \
        }                                                                                \
        return some[0].vector;                                                           \
    }                                                                                    \
    HVD_KERNEL_FUNCTION void hvd_finish_##NAME(const struct hvd_kernel_push *push,       \
                                               uint32_t block, uint32_t thread,          \
                                               bool is_aborted)                          \
    {                                                                                    \
        if (is_aborted && thread == 0 && !hvd_push_is_over(push)) {                      \
            hvd_store_uint64(hvd_push_last(push), push->call);                           \
        }                                                                                \
        for (uint32_t at = block * push->block_vectors + thread;                         \
             at < hvd_push_end(push, block); at += HVD_KERNEL_THREADS) {                 \
            struct hvd_push_part part =                                                  \
                hvd_push_part(push, at, HVD_GROUP_##NAME, sizeof(TENSOR));               \
            union hvd_bits_##NAME sum;                                                   \
                                                                                         \
            sum.vector = hvd_total_##NAME(push, at);                                     \
            if (part.to != NULL && !is_aborted &&                                        \
                hvd_is_whole_##NAME(part.to, part.count)) {                              \
                hvd_store_vector(part.to, sum.vector);                                   \
                continue;                                                                \
            }                                                                            \
            HVD_KERNEL_UNROLL                                                            \
            for (uint32_t i = 0; i < HVD_GROUP_##NAME; i++) {                            \
                TENSOR bits = (TENSOR)WIDEN(sum.bits[i], 1);                             \
                                                                                         \
                if (i < part.count && part.to != NULL) {                                 \
                    hvd_store_bits(part.to + i * sizeof(TENSOR), sizeof(TENSOR),         \
                                   is_aborted ? push->nan : bits);                       \
                }                                                                        \
            }                                                                            \
        }                                                                                \
    }

#define HVD_PUSH_TO_FLOAT16(bits, factor) hvd_convert_float32_to_float16(bits, factor, 1)
#define HVD_PUSH_FROM_FLOAT16(bits, factor)                                              \
    hvd_convert_float16_to_float32(bits, factor, 1)
#define HVD_PUSH_TO_BFLOAT16(bits, factor)                                               \
    hvd_convert_float32_to_bfloat16(bits, factor, 1)
#define HVD_PUSH_FROM_BFLOAT16(bits, factor)                                             \
    hvd_convert_bfloat16_to_float32(bits, factor, 1)

HVD_KERNEL_PUSHER(push_float16, uint16_t, uint16_t, float, hvd_combine_float32,
                  hvd_number_float16, hvd_bits_float16, push->before, HVD_PUSH_SAME,
                  HVD_PUSH_SAME)
HVD_KERNEL_PUSHER(push_bfloat16, uint16_t, uint16_t, float, hvd_combine_float32,
                  hvd_number_bfloat16, hvd_bits_bfloat16, push->before, HVD_PUSH_SAME,
                  HVD_PUSH_SAME)
HVD_KERNEL_PUSHER(push_float32, uint32_t, uint32_t, float, hvd_combine_float32,
                  hvd_number_float32, hvd_bits_float32, push->before, HVD_PUSH_SAME,
                  HVD_PUSH_SAME)
HVD_KERNEL_PUSHER(push_float64, uint64_t, uint64_t, double, hvd_combine_float64,
                  hvd_number_float64, hvd_bits_float64, push->before, HVD_PUSH_SAME,
                  HVD_PUSH_SAME)
HVD_KERNEL_PUSHER(push_float32_as_float16, uint32_t, uint16_t, float, hvd_combine_float32,
                  hvd_number_float16, hvd_bits_float16, 1, HVD_PUSH_TO_FLOAT16,
                  HVD_PUSH_FROM_FLOAT16)
HVD_KERNEL_PUSHER(push_float32_as_bfloat16, uint32_t, uint16_t, float,
                  hvd_combine_float32, hvd_number_bfloat16, hvd_bits_bfloat16, 1,
                  HVD_PUSH_TO_BFLOAT16, HVD_PUSH_FROM_BFLOAT16)

#endif
