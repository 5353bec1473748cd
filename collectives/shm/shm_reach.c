/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the node's other ranks, by process_vm_readv and process_vm_writev. */
#include "collectives/shm/shm_reach.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collectives/control/clock.h"
#include "collectives/shm/shared_peers.h"
#include "collectives/shm/shm_state.h"
#include "gpu_binding/log.h"

/* Who writes a piece is waited for so long. */
static const int64_t most_wait_ns = 3000000000;
static const int64_t most_step_ns = 4000000;

enum verdict {
    UNKNOWN,
    CANNOT,
    CAN,
    CAN_MAP, /* shared memory, too */
};

void hvd_shm_introduce(struct hvd_shm *shm)
{
    struct hvd_shm_line *line = hvd_shm_line_of(shm, shm->local_rank);

    if (getrandom(&shm->secret, sizeof(shm->secret), GRND_NONBLOCK) < 0) {
        shm->secret = 0; /* the others cannot be sure of this rank then */
    }
    line->secret = shm->secret;
    line->fd = shm->fd;
    line->secret_at = (uint64_t)(uintptr_t)&shm->secret;
    if (!shm->sizes.reaches || shm->secret == 0) {
        atomic_store(&line->verdict, CANNOT);
    }
    atomic_store(&line->pid, (int32_t)getpid());
}

static struct iovec piece_of(const void *data, size_t bytes)
{
    return (struct iovec){(void *)data, bytes};
}

static struct iovec piece_at(uint64_t address, size_t bytes)
{
    return piece_of((const void *)(uintptr_t)address, bytes);
}

bool hvd_shm_is_there(const struct hvd_shm *shm, int local_rank)
{
    const struct hvd_shm_line *line = hvd_shm_line_of(shm, local_rank);
    uint64_t secret = 0;
    struct iovec near = piece_of(&secret, sizeof(secret));
    struct iovec far = piece_at(line->secret_at, sizeof(secret));

    return process_vm_readv(atomic_load(&line->pid), &near, 1, &far, 1, 0) ==
               (ssize_t)sizeof(secret) &&
           secret == line->secret;
}

/* Of a reading or writing that ended early, with errno. Who has hidden may have freed what he
 * offered. */
static int failure(const struct hvd_shm *shm, int local_rank, uint64_t address,
                   const char *verb)
{
    if (errno == ESRCH) {
        return HVD_INPROGRESS;
    }
    if (errno == EFAULT) {
        return hvd_shm_is_there(shm, local_rank) ? HVD_ERR_ARG : HVD_INPROGRESS;
    }
    hvd_log(HVD_LOG_ERROR, "cannot %s the memory of local rank %d at %#llx: %m", verb,
            local_rank, (unsigned long long)address);
    return HVD_ERR_SYS;
}

/* Data and secret come by one call, so from one process; data first. */
int hvd_shm_read(const struct hvd_shm *shm, int local_rank, uint64_t address, void *to,
                 size_t bytes)
{
    const struct hvd_shm_line *line = hvd_shm_line_of(shm, local_rank);
    uint64_t secret = 0;
    struct iovec near[2] = {piece_of(to, bytes), piece_of(&secret, sizeof(secret))};
    struct iovec far[2] = {piece_at(address, bytes),
                           piece_at(line->secret_at, sizeof(secret))};
    ssize_t all = (ssize_t)(bytes + sizeof(secret));
    ssize_t done;

    errno = EFAULT;
    done = process_vm_readv(atomic_load(&line->pid), near, 2, far, 2, 0);
    if (done != all) {
        return failure(shm, local_rank, address, "read");
    }
    return secret == line->secret ? 0 : HVD_INPROGRESS;
}

/* That the pid goes to another process between two calls would take all other pids in
 * between. */
static int write_there(const struct hvd_shm *shm, int local_rank, uint64_t address,
                       const void *from, size_t bytes)
{
    const struct hvd_shm_line *line = hvd_shm_line_of(shm, local_rank);
    struct iovec near = piece_of(from, bytes), far = piece_at(address, bytes);
    int status = hvd_shm_read(shm, local_rank, line->secret_at, &(uint64_t){0},
                              sizeof(line->secret));

    if (status != 0) {
        return status;
    }
    errno = EFAULT;
    if (process_vm_writev(atomic_load(&line->pid), &near, 1, &far, 1, 0) !=
        (ssize_t)bytes) {
        return failure(shm, local_rank, address, "write");
    }
    return 0;
}

/* Either this rank sees that the other one hides, or that one sees this one write. */
int hvd_shm_write(const struct hvd_shm *shm, int local_rank, uint64_t address,
                  const void *from, size_t bytes)
{
    struct hvd_shm_line *own = hvd_shm_line_of(shm, shm->local_rank);
    int status;

    atomic_store(&own->writes_to, local_rank + 1);
    /* The look is the kernel's plain read: it must not come before that store. */
    atomic_thread_fence(memory_order_seq_cst);
    status = write_there(shm, local_rank, address, from, bytes);
    atomic_store(&own->writes_to, 0);
    return status;
}

/* Reads and writes a rank's secret: the latter changes nothing. */
static bool can_reach(const struct hvd_shm *shm, int local_rank)
{
    const struct hvd_shm_line *line = hvd_shm_line_of(shm, local_rank);
    int32_t pid = atomic_load(&line->pid);
    uint64_t secret = 0;
    struct iovec near = piece_of(&secret, sizeof(secret));
    struct iovec far = piece_at(line->secret_at, sizeof(secret));

    errno = EFAULT;
    if (process_vm_readv(pid, &near, 1, &far, 1, 0) != (ssize_t)sizeof(secret)) {
        hvd_log(HVD_LOG_DEBUG, "cannot read the memory of local rank %d: %m", local_rank);
        return false;
    }
    if (secret != line->secret) {
        hvd_log(HVD_LOG_DEBUG, "local rank %d has another pid here", local_rank);
        return false;
    }
    return process_vm_writev(pid, &near, 1, &far, 1, 0) == (ssize_t)sizeof(secret);
}

/* Tries all others, once all have said who they are. */
static void try_others(struct hvd_shm *shm)
{
    struct hvd_shm_line *own = hvd_shm_line_of(shm, shm->local_rank);
    bool can = true, maps = true;

    for (int i = 0; i < shm->sizes.local_size; i++) {
        if (atomic_load(&hvd_shm_line_of(shm, i)->pid) == 0) {
            return;
        }
    }
    for (int i = 0; i < shm->sizes.local_size && can; i++) {
        can = i == shm->local_rank || can_reach(shm, i);
    }
    for (int i = 0; i < shm->sizes.local_size && maps; i++) {
        maps = i == shm->local_rank || hvd_shared_can_map(shm, i);
    }
    atomic_store(&own->verdict, !can ? CANNOT : maps ? CAN_MAP : CAN);
    for (int i = 0; i < shm->sizes.local_size; i++) {
        if (i != shm->local_rank) {
            hvd_shm_ring(shm, i);
        }
    }
}

bool hvd_shm_settle(struct hvd_shm *shm)
{
    bool can = true, maps = true;

    if (shm->is_settled) {
        return true;
    }
    if (atomic_load(&hvd_shm_line_of(shm, shm->local_rank)->verdict) == UNKNOWN) {
        try_others(shm);
    }
    for (int i = 0; i < shm->sizes.local_size; i++) {
        uint32_t verdict = atomic_load(&hvd_shm_line_of(shm, i)->verdict);

        if (verdict == UNKNOWN) {
            return false;
        }
        can = can && verdict != CANNOT;
        maps = maps && verdict == CAN_MAP;
    }
    shm->can_reach = can;
    shm->can_map = maps;
    shm->is_settled = true;
    hvd_log(HVD_LOG_DEBUG, "the ranks of this node %s each other's memory",
            can ? "reach" : "do not reach");
    return true;
}

bool hvd_shm_can_reach(const struct hvd_shm *shm)
{
    return shm->can_reach;
}

bool hvd_shm_can_map(const struct hvd_shm *shm)
{
    return shm->can_map;
}

/* Who has died while it wrote does not say that it has ended. */
static bool is_writing_here(const struct hvd_shm *shm, int local_rank)
{
    const struct hvd_shm_line *line = hvd_shm_line_of(shm, local_rank);

    int32_t writes_to = atomic_load(&line->writes_to);

    return (writes_to == shm->local_rank + 1 || writes_to == HVD_SHM_WRITES_TO_ALL) &&
           local_rank != shm->local_rank && hvd_shm_is_there(shm, local_rank);
}

/* Of what passed since then at most one step counts: in a pause of the whole machine no one
 * could write. */
static int64_t counted_ns(int64_t *since_ns)
{
    int64_t now_ns = hvd_clock_ns();
    int64_t passed_ns = now_ns - *since_ns;

    *since_ns = now_ns;
    return passed_ns < most_step_ns ? passed_ns : most_step_ns;
}

bool hvd_shm_hide(struct hvd_shm *shm)
{
    int64_t since_ns = hvd_clock_ns(), waited_ns = 0;

    atomic_store((_Atomic uint64_t *)&shm->secret, 0);
    atomic_store(&hvd_shm_line_of(shm, shm->local_rank)->hides, 1);
    atomic_thread_fence(memory_order_seq_cst); /* as hvd_shm_write does */
    for (int i = 0; i < shm->sizes.local_size; i++) {
        while (is_writing_here(shm, i)) {
            if (waited_ns >= most_wait_ns) {
                hvd_log(
                    HVD_LOG_WARN,
                    "local rank %d does not end a write into this rank's memory: that "
                    "is not given back",
                    i);
                return false;
            }
            sched_yield();
            waited_ns += counted_ns(&since_ns);
        }
    }
    return true;
}
