/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that reduces a small batch by itself, step by step on two ranks: which flags
 * it waits for, and what it does in and after an aborted call. Prints TAP. */
#include "collectives/gpu/module/kernel_push.h"

#include "tests/tap.h"

enum {
    COUNT = 2000, /* elements: two blocks */
    BLOCKS = 2,
    SLOT = COUNT * (int)sizeof(float),
    INBOX = HVD_KERNEL_HEAD_BYTES + 4 * SLOT,
};

static _Alignas(16) char inboxes[2][INBOX], before[INBOX];
static _Alignas(16) float tensors[2][COUNT];
static uint32_t aborted;

static struct hvd_kernel_push push_of(int rank, uint64_t call)
{
    return (struct hvd_kernel_push){.before = 1,
                                    .after = 1,
                                    .nan = 0x7fc00000,
                                    .call = call,
                                    .aborted = &aborted,
                                    .slot_bytes = SLOT,
                                    .vectors = SLOT / HVD_KERNEL_VECTOR,
                                    .block_vectors = SLOT / HVD_KERNEL_VECTOR / BLOCKS,
                                    .count = 1,
                                    .rank = rank,
                                    .ranks = 2,
                                    .inboxes = {inboxes[0], inboxes[1]},
                                    .counts = {COUNT},
                                    .from = {(char *)tensors[rank]},
                                    .to = {(char *)tensors[rank]}};
}

static void pack(const struct hvd_kernel_push *push, uint32_t block)
{
    for (uint32_t thread = 0; thread < HVD_KERNEL_THREADS; thread++) {
        hvd_pack_push_float32(push, block, thread);
    }
    for (uint32_t thread = 0; thread < HVD_KERNEL_THREADS; thread++) {
        hvd_push_tell(push, block, thread);
    }
}

static void finish(const struct hvd_kernel_push *push, uint32_t block, bool is_aborted)
{
    for (uint32_t thread = 0; thread < HVD_KERNEL_THREADS; thread++) {
        hvd_finish_push_float32(push, block, thread, is_aborted);
    }
}

/* Returns what the thread that waits for rank 1 sees in block 0 of rank 0. */
static enum hvd_push_state look(const struct hvd_kernel_push *push, uint32_t turn)
{
    return hvd_push_look(push, 0, 1, turn);
}

static void test_flags(void)
{
    const uint64_t late = (UINT64_C(1) << 32) + 1;
    struct hvd_kernel_push first = push_of(0, 1), other = push_of(1, 1);

    pack(&first, 0);
    pack(&other, 1);
    tap_ok(look(&first, 1) == HVD_PUSH_PENDING, "a block waits for the same block");
    pack(&other, 0);
    tap_ok(look(&first, 1) == HVD_PUSH_ARRIVED, "until that has stored its part");
    other.call = 2;
    pack(&other, 0);
    tap_ok(look(&first, 1) == HVD_PUSH_ARRIVED, "another rank may be a call ahead");
    other.call = late - 1;
    pack(&other, 0);
    first.call = late;
    tap_ok(look(&first, 1) == HVD_PUSH_PENDING, "calls are counted beyond 2^32");
}

static void test_abort(void)
{
    struct hvd_kernel_push call, next;
    bool is_nan = true, is_told;

    memset(inboxes, 0, sizeof(inboxes));
    call = push_of(0, 1);
    next = push_of(0, 2);
    pack(&call, 0);
    tap_ok(look(&call, 1024) == HVD_PUSH_PENDING, "a rank may be waited for for long");
    aborted = 1;
    tap_ok(look(&call, 1023) == HVD_PUSH_PENDING && look(&call, 1024) == HVD_PUSH_ABORTED,
           "an abort ends the wait");
    finish(&call, 0, true);
    for (int i = 0; i < COUNT / BLOCKS; i++) {
        is_nan = is_nan && tensors[0][i] != tensors[0][i];
    }
    tap_ok(is_nan && tensors[0][COUNT / BLOCKS] == 0, "its block of the result is NaN");
    pack(&call, 1);
    is_told = hvd_load_flag(hvd_push_flag(&call, 1, 0, 1)) == 1;
    tap_ok(is_told, "the other blocks of this call still store their parts");
    memcpy(before, inboxes[1], sizeof(before));
    for (int i = 0; i < 3; i++, next.call++) {
        pack(&next, 0);
        pack(&next, 1);
    }
    tap_ok(memcmp(before, inboxes[1], sizeof(before)) == 0,
           "later calls store nothing that another rank may still read");
    tap_ok(look(&next, 1) == HVD_PUSH_ABORTED, "and do not wait");
}

int main(void)
{
    test_flags();
    test_abort();
    return tap_done();
}
