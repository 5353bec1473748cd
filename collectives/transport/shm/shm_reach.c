/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses the memory of other ranks of the node by process_vm_readv and
 * process_vm_writev. */
#include "collectives/transport/shm/shm_reach.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collectives/transport/shm/shm_pages.h"
#include "collectives/transport/shm/shm_state.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"

/* The longest time that hvd_shm_hide waits for ranks that are still writing. */
static const int64_t most_wait_ns = 3000000000;
static const int64_t most_step_ns = 4000000;

enum verdict {
    UNKNOWN,
    CANNOT,
    CAN,
};

static char *make_door(void)
{
    void *door = mmap(NULL, hvd_shm_round_to_page(1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return door != MAP_FAILED ? door : NULL;
}

/* Frees this rank's door (see write_there). If another rank may still write to it, the
 * door stays mapped and inaccessible, so that nothing else is mapped at its address. */
void hvd_shm_take_leave(struct hvd_shm *shm)
{
    if (shm->door != NULL && !shm->is_door_kept) {
        munmap(shm->door, hvd_shm_round_to_page(1));
    }
}

/* Announces a write to a local rank, given as local rank + 1, or the end of the write
 * (0). Sequentially consistent. */
static void announce_write(struct hvd_shm *shm, int32_t writes_to)
{
    static _Thread_local pid_t self;
    struct hvd_shm_line *own = &shm->lines[shm->local_rank];

    if (self == 0) {
        self = (pid_t)syscall(SYS_gettid); /* glibc has gettid() since 2.30 */
    }
    atomic_store_explicit(&own->writer, self, memory_order_relaxed);
    atomic_store(&own->writes_to, writes_to);
}

void hvd_shm_introduce(struct hvd_shm *shm)
{
    struct hvd_shm_line *line = &shm->lines[shm->local_rank];

    if (getrandom(&shm->secret, sizeof(shm->secret), GRND_NONBLOCK) < 0) {
        shm->secret = 0; /* the others then cannot identify this rank */
    }
    line->secret = shm->secret;
    line->secret_at = (uint64_t)(uintptr_t)&shm->secret;
    shm->door = make_door();
    line->door_at = (uint64_t)(uintptr_t)shm->door;
    if (!shm->sizes.reaches || shm->secret == 0 || shm->door == NULL) {
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

/* Whether a local rank is alive and has not called hvd_shm_hide: reads its secret. */
static bool is_there(const struct hvd_shm *shm, int local_rank)
{
    const struct hvd_shm_line *line = &shm->lines[local_rank];
    uint64_t secret = 0;
    struct iovec near = piece_of(&secret, sizeof(secret));
    struct iovec far = piece_at(line->secret_at, sizeof(secret));

    return process_vm_readv(atomic_load(&line->pid), &near, 1, &far, 1, 0) ==
               (ssize_t)sizeof(secret) &&
           secret == line->secret;
}

/* Returns the status for the errno of a failed read or write. A fault is no error if the
 * other rank has called hvd_shm_hide, because the rank may have freed the memory. */
static int fail_access(const struct hvd_shm *shm, int local_rank, uint64_t address,
                       const char *verb)
{
    if (errno == ESRCH) {
        return HVD_INPROGRESS;
    }
    if (errno == EFAULT) {
        return is_there(shm, local_rank) ? HVD_ERR_ARG : HVD_INPROGRESS;
    }
    hvd_log(HVD_LOG_ERROR, "cannot %s the memory of local rank %d at %#llx: %m", verb,
            local_rank, (unsigned long long)address);
    return HVD_ERR_SYS;
}

/* Reads the data and then the secret in one call, and therefore from one process. */
int hvd_shm_read(const struct hvd_shm *shm, int local_rank, uint64_t address, void *to,
                 size_t bytes)
{
    const struct hvd_shm_line *line = &shm->lines[local_rank];
    uint64_t secret = 0;
    struct iovec near[2] = {piece_of(to, bytes), piece_of(&secret, sizeof(secret))};
    struct iovec far[2] = {piece_at(address, bytes),
                           piece_at(line->secret_at, sizeof(secret))};
    ssize_t all = (ssize_t)(bytes + sizeof(secret));
    ssize_t done;

    errno = EFAULT;
    done = process_vm_readv(atomic_load(&line->pid), near, 2, far, 2, 0);
    if (done != all) {
        return fail_access(shm, local_rank, address, "read");
    }
    return secret == line->secret ? 0 : HVD_INPROGRESS;
}

/* Checks the secret, then writes. The pid cannot be reused between the two calls: the
 * kernel would have to use all other pids first.
 *
 * Each rank has a door: a page of its own. The write starts with one byte of the door,
 * and the kernel goes on to the data only if the door is accessible. So a writer that is
 * stopped before the write, and continues after the other rank has closed its door,
 * writes nothing. */
static int write_there(const struct hvd_shm *shm, int local_rank, uint64_t address,
                       const void *from, size_t bytes)
{
    const struct hvd_shm_line *line = &shm->lines[local_rank];
    const char knock = 0;
    struct iovec near[2] = {piece_of(&knock, sizeof(knock)), piece_of(from, bytes)};
    struct iovec far[2] = {piece_at(line->door_at, sizeof(knock)),
                           piece_at(address, bytes)};
    int status = hvd_shm_read(shm, local_rank, line->secret_at, &(uint64_t){0},
                              sizeof(line->secret));

    if (status != 0) {
        return status;
    }
    errno = EFAULT;
    if (process_vm_writev(atomic_load(&line->pid), near, 2, far, 2, 0) !=
        (ssize_t)(sizeof(knock) + bytes)) {
        return fail_access(shm, local_rank, address, "write");
    }
    return 0;
}

/* Store, fence, load on both sides: either this rank sees that the other has hidden its
 * secret, or the other sees that this rank is writing. */
int hvd_shm_write(struct hvd_shm *shm, int local_rank, uint64_t address, const void *from,
                  size_t bytes)
{
    int status;

    announce_write(shm, local_rank + 1);
    /* The kernel reads the secret by plain loads: they must not happen before the
     * announcement. */
    atomic_thread_fence(memory_order_seq_cst);
    status = write_there(shm, local_rank, address, from, bytes);
    announce_write(shm, 0);
    return status;
}

/* Reads and writes the secret of a rank; the write does not change its value. */
static bool can_reach(const struct hvd_shm *shm, int local_rank)
{
    const struct hvd_shm_line *line = &shm->lines[local_rank];
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
        hvd_log(HVD_LOG_DEBUG, "local rank %d has a different pid in this pid namespace",
                local_rank);
        return false;
    }
    return process_vm_writev(pid, &near, 1, &far, 1, 0) == (ssize_t)sizeof(secret);
}

/* Tries to reach all other ranks, once all have published their pid and secret. */
static void try_others(struct hvd_shm *shm)
{
    struct hvd_shm_line *own = &shm->lines[shm->local_rank];
    bool can = true;

    for (int i = 0; i < shm->sizes.local_size; i++) {
        if (atomic_load(&shm->lines[i].pid) == 0) {
            return;
        }
    }
    for (int i = 0; i < shm->sizes.local_size && can; i++) {
        can = i == shm->local_rank || can_reach(shm, i);
    }
    atomic_store(&own->verdict, can ? CAN : CANNOT);
    for (int i = 0; i < shm->sizes.local_size; i++) {
        if (i != shm->local_rank) {
            hvd_shm_ring(shm, i);
        }
    }
}

bool hvd_shm_settle(struct hvd_shm *shm)
{
    bool can = true;

    if (shm->is_settled) {
        return true;
    }
    if (atomic_load(&shm->lines[shm->local_rank].verdict) == UNKNOWN) {
        try_others(shm);
    }
    for (int i = 0; i < shm->sizes.local_size; i++) {
        uint32_t verdict = atomic_load(&shm->lines[i].verdict);

        if (verdict == UNKNOWN) {
            return false;
        }
        can = can && verdict != CANNOT;
    }
    shm->can_reach = can;
    shm->is_settled = true;
    hvd_log(HVD_LOG_DEBUG, "the ranks of this node %s each other's memory",
            can ? "reach" : "do not reach");
    return true;
}

bool hvd_shm_can_reach(const struct hvd_shm *shm)
{
    return shm->can_reach;
}

/* Whether a local rank is writing to this one. A rank that died during a write cannot
 * announce its end, so this also checks that it is alive. */
static bool writes_here(const struct hvd_shm *shm, int local_rank)
{
    const struct hvd_shm_line *line = &shm->lines[local_rank];

    return atomic_load(&line->writes_to) == shm->local_rank + 1 &&
           local_rank != shm->local_rank && is_there(shm, local_rank);
}

/* Whether the writing thread is neither running nor busy in the kernel. The kernel stops
 * or freezes a thread only when it is about to return to user mode. */
static bool is_stopped(const struct hvd_shm *shm, int local_rank)
{
    char path[64], text[256];
    const char *state = NULL;
    ssize_t bytes = 0;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/stat",
             (int)atomic_load(&shm->lines[local_rank].writer));
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        bytes = read(file, text, sizeof(text) - 1);
        close(file);
    }
    if (bytes > 0) {
        text[bytes] = '\0';
        state = strrchr(text, ')');
    }
    return state != NULL && strlen(state) > 2 && strchr("RD", state[2]) == NULL;
}

/* Returns the time since *since_ns, but most_step_ns at most. Longer gaps mean that the
 * whole machine was paused, and then no rank could write. */
static int64_t counted_ns(int64_t *since_ns)
{
    int64_t now_ns = hvd_clock_ns();
    int64_t passed_ns = now_ns - *since_ns;

    *since_ns = now_ns;
    return passed_ns < most_step_ns ? passed_ns : most_step_ns;
}

struct wait {
    int64_t since_ns;
    int64_t waited_ns;
};

/* Outcome of waiting for a writer. */
enum end {
    ENDED, /* the writer has finished or is gone */
    STOPPED, /* it has not finished and is stopped */
    LASTS, /* it has not finished and is running */
};

static enum end await_writer(const struct hvd_shm *shm, int local_rank, struct wait *wait)
{
    while (writes_here(shm, local_rank)) {
        if (is_stopped(shm, local_rank)) {
            return STOPPED;
        }
        if (wait->waited_ns >= most_wait_ns) {
            return LASTS;
        }
        sched_yield();
        wait->waited_ns += counted_ns(&wait->since_ns);
    }
    return ENDED;
}

static void shut_door(struct hvd_shm *shm)
{
    atomic_store((_Atomic uint64_t *)&shm->secret, 0);
    if (shm->door != NULL) {
        mprotect(shm->door, hvd_shm_round_to_page(1), PROT_NONE);
    }
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in hvd_shm_write */
}

bool hvd_shm_hide(struct hvd_shm *shm)
{
    struct wait wait = {.since_ns = hvd_clock_ns()};
    bool is_safe = true;

    shut_door(shm);
    for (int i = 0; i < shm->sizes.local_size; i++) {
        enum end end = await_writer(shm, i, &wait);

        shm->is_door_kept |= end != ENDED;
        if (end == LASTS) {
            hvd_log(HVD_LOG_WARN,
                    "local rank %d is still writing to this rank's memory, which is "
                    "therefore not freed",
                    i);
            is_safe = false;
        }
    }
    return is_safe;
}
