/* SPDX-License-Identifier: Apache-2.0 */
/* Memory is allocated while signals arrive. The fallocate below behaves like a kernel
 * that gives up whenever a signal arrives, as Linux did. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectives/transport/shm/shm_pages.h"
#include "tests/tap.h"

enum {
    BYTES = 64 << 20,
    /* the most memory that can be allocated between two signals of a profiler's timer */
    BETWEEN_SIGNALS = 16 << 20,
    MOST_CALLS = 1000,
};

static struct {
    int calls;
    int fails_at; /* the call that finds no memory, or 0 */
    bool was_freed;
} kernel;

/* Interrupts every second call, and every call that takes too long. Passes other calls on
 * to the kernel. */
static int allocate(int fd, int mode, off_t at, off_t bytes)
{
    const bool frees = (mode & FALLOC_FL_PUNCH_HOLE) != 0;

    kernel.calls++;
    if (kernel.calls > MOST_CALLS || kernel.calls == kernel.fails_at) {
        errno = ENOSPC;
        return -1;
    }
    if (kernel.calls % 2 == 1 || (!frees && bytes > BETWEEN_SIGNALS)) {
        errno = EINTR;
        return -1;
    }
    kernel.was_freed |= frees;
    return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    return allocate(fd, mode, at, bytes);
}

int main(void)
{
    struct hvd_error err = {0};
    int file = memfd_create("signals", MFD_CLOEXEC);
    int status = hvd_shm_back(file, 0, BYTES, &err);
    struct stat facts = {0};

    tap_ok(status == 0, "memory is allocated while signals arrive: %s", err.text);
    tap_ok(fstat(file, &facts) == 0 && (int64_t)facts.st_blocks * 512 >= BYTES,
           "all of the memory is backed");
    close(file);
    memset(&kernel, 0, sizeof(kernel));
    kernel.fails_at = 6;
    file = memfd_create("signals", MFD_CLOEXEC);
    status = hvd_shm_back(file, 0, BYTES, &err);
    tap_ok(status == HVD_ERR_NOMEM && strstr(err.text, "for the job") != NULL &&
               strstr(err.text, strerror(ENOSPC)) != NULL,
           "if there is no memory, the error says so: %s", err.text);
    tap_ok(kernel.was_freed && fstat(file, &facts) == 0 && facts.st_blocks == 0,
           "memory that was backed before the error is freed");
    close(file);
    return tap_done();
}
