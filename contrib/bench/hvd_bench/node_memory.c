/* SPDX-License-Identifier: Apache-2.0 */
/* The first rank of a node makes the memory under a name that exists until all have opened it. */
#include "contrib/bench/hvd_bench/node_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct name {
    char text[64];
};

static int make(size_t bytes, struct name *name, int *fd, struct hvd_error *err)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name->text, sizeof(name->text), "/hvd-bench-%d-%llx", (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000 +
                 (unsigned long long)now.tv_nsec);
    *fd = shm_open(name->text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0) {
        name->text[0] = '\0';
        return hvd_fail(err, HVD_ERR_SYS, "cannot create memory in /dev/shm: %m");
    }
    errno = posix_fallocate(*fd, 0, (off_t)bytes);
    return errno == 0
               ? 0
               : hvd_fail(
                     err, HVD_ERR_NOMEM,
                     "cannot get %zu bytes of shared memory: %m; make room in /dev/shm",
                     bytes);
}

static int map(const struct name *name, int fd, size_t bytes, void **memory,
               struct hvd_error *err)
{
    if (fd < 0) {
        fd = shm_open(name->text, O_RDWR | O_CLOEXEC, 0);
    }
    if (fd < 0) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot open the memory of the node's first rank: %m");
    }
    *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (*memory == MAP_FAILED) {
        *memory = NULL;
        return hvd_fail(err, HVD_ERR_SYS, "cannot map %zu bytes: %m", bytes);
    }
    return 0;
}

/* The name that the first rank of my node gave. */
static int learn_name(const struct bench_job *job, struct name *name,
                      struct hvd_error *err)
{
    struct name *names = calloc((size_t)job->size, sizeof(names[0]));
    int first = hvd_layout_rank(&job->layout, job->layout.node[job->rank], 0), status;

    if (names == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    status = bench_job_gather(name, sizeof(*name), names, err);
    *name = names[first];
    free(names);
    return status;
}

int bench_node_memory_open(const struct bench_job *job, size_t bytes, void **memory,
                           struct hvd_error *err)
{
    struct name name = {.text = ""};
    void *mapped = NULL;
    int fd = -1, status = 0, all;
    bool is_first = job->local_rank == 0;

    if (is_first) {
        status = make(bytes, &name, &fd, err);
    }
    all = bench_job_agree(status, err);
    if (all == 0) {
        all = learn_name(job, &name, err);
        status = all < 0 ? all : map(&name, fd, bytes, &mapped, err);
        fd = -1;
        all = bench_job_agree(status, err);
    }
    if (is_first && name.text[0] != '\0') {
        shm_unlink(name.text);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (all < 0) {
        bench_node_memory_close(mapped, bytes);
        return all;
    }
    *memory = mapped;
    return 0;
}

void bench_node_memory_close(void *memory, size_t bytes)
{
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}
