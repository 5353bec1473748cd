/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's line in the node's part: announces that the rank sleeps, and wakes other
 * ranks. */
#include <unistd.h>

#include "collectives/transport/shm/shm_state.h"
#include "gpu_binding/base/attr.h"

bool hvd_shm_set_asleep(struct hvd_shm *shm, bool asleep)
{
    uint32_t before =
        atomic_exchange(&shm->lines[shm->local_rank].asleep, asleep ? 1 : 0);
    bool was_rung = shm->says_asleep && before == 0;

    shm->says_asleep = asleep;
    /* The flag must be visible before the caller checks the others' writes. */
    atomic_thread_fence(memory_order_seq_cst);
    return was_rung;
}

/* If several ranks wake a sleeper, only one of them writes to the eventfd. */
void hvd_shm_ring_sleeper(struct hvd_shm *shm, int local_rank)
{
    _Atomic uint32_t *asleep = &shm->lines[local_rank].asleep;
    const uint64_t one = 1;
    ssize_t wrote HVD_UNUSED;

    if (atomic_load(asleep) != 0 && atomic_exchange(asleep, 0) != 0) {
        wrote = write(shm->eventfds[local_rank], &one, sizeof(one));
    }
}

void hvd_shm_ring(struct hvd_shm *shm, int local_rank)
{
    atomic_thread_fence(memory_order_seq_cst);
    hvd_shm_ring_sleeper(shm, local_rank);
}
