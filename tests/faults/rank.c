/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of the fault table: rank VICTIM PLACE HOW DELAY_US SECONDS. Ranks repeat the
 * collective that PLACE names. Rank VICTIM causes the fault HOW in itself, DELAY_US after
 * it has reached PLACE (run.py draws both):
 *
 *   PLACE   boot, init, steps (between two collectives), shutdown, or a collective
 *           (calls, below)
 *   HOW     kill, segv, exit (_exit 7), leave (_exit 0), stop (SIGSTOP), files (uses up
 *           all descriptors), memory (uses up all memory), clock (jumps), mark (nothing:
 *           the job is disturbed from outside)
 *
 * The job ends with success after SECONDS, unless the fault ends it before. Prints, with
 * CLOCK_MONOTONIC in nanoseconds:
 *
 *   fault RANK NS PID           the fault is due now
 *   said RANK NS STATUS TEXT    the error that hvd gave to this rank
 *   done RANK NS                this rank has shut down without an error */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/attr.h"

enum {
    FEW = 12, /* number of elements of a small tensor */
    MANY = 2 << 20,
    EXIT_CODE = 7, /* exit code of a victim that exits with a failure */
    EXIT_SURVIVOR = 3,
    JUMP_SECONDS = 3600,
    /* how long the victim waits after hvd_shutdown for a fault whose PLACE is shutdown */
    LATE_SECONDS = 10
};

static struct {
    int rank, victim;
    const char *place, *how;
    useconds_t delay_us;
    double seconds;
    _Atomic bool is_there; /* the victim is in the call that PLACE names */
    _Atomic bool has_jumped;
    float *data; /* [2 * MANY] */
} job;

/* Replaces libc's function, also for libhvd, so that the clock of one process can
 * jump. */
HVD_EXPORT int clock_gettime(clockid_t id, struct timespec *out)
{
    int status = (int)syscall(SYS_clock_gettime, id, out);

    if (status == 0 && id == CLOCK_REALTIME && atomic_load(&job.has_jumped)) {
        out->tv_sec += JUMP_SECONDS;
    }
    return status;
}

static long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Descriptors that are in use until the end of the job. They are closed then, because a
 * leak checker needs some to open files. */
static int spare_fds[8];
static const int spare_count = sizeof(spare_fds) / sizeof(spare_fds[0]);

static void use_up_descriptors(void)
{
    struct rlimit limit;

    for (int i = 0; i < spare_count; i++) {
        spare_fds[i] = dup(STDOUT_FILENO);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 3;
    while (fcntl((int)limit.rlim_cur, F_GETFD) >= 0) {
        limit.rlim_cur++;
    }
    limit.rlim_max = limit.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void give_descriptors_back(void)
{
    for (int i = 0; i < spare_count; i++) {
        if (spare_fds[i] > 0) {
            close(spare_fds[i]);
        }
    }
}

/* Sets the score by which the kernel chooses the process to kill when memory runs out:
 * from -1000 (never this process) to 1000 (this process first). */
static void be_killed_for_memory(int score)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    dprintf(file, "%d\n", score);
    close(file);
}

/* Allocates memory until the kernel kills this process. The score makes the kernel choose
 * it, even if other processes use as much memory. */
static void use_up_memory(void)
{
    be_killed_for_memory(1000);
    while (true) {
        (void)mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    }
}

static void fail(void)
{
    dprintf(STDOUT_FILENO, "fault %d %lld %d\n", job.rank, now_ns(), (int)getpid());
    if (is(job.how, "kill")) {
        kill(getpid(), SIGKILL);
    } else if (is(job.how, "segv")) {
        signal(SIGSEGV, SIG_DFL);
        kill(getpid(), SIGSEGV);
    } else if (is(job.how, "stop")) {
        kill(getpid(), SIGSTOP);
    } else if (is(job.how, "memory")) {
        use_up_memory();
    } else if (is(job.how, "files")) {
        use_up_descriptors();
    } else if (is(job.how, "clock")) {
        atomic_store(&job.has_jumped, true);
    } else if (!is(job.how, "mark")) {
        _exit(is(job.how, "leave") ? 0 : EXIT_CODE);
    }
}

static void *fail_later(void *arg)
{
    (void)arg;
    if (is(job.place, "init") || is(job.place, "shutdown")) {
        while (!atomic_load(&job.is_there)) {
        }
        usleep(job.delay_us);
    } else {
        usleep(job.delay_us);
        while (!atomic_load(&job.is_there)) {
        }
    }
    fail();
    return NULL;
}

static bool is_victim(const char *place)
{
    return job.rank == job.victim && is(job.place, place);
}

static void say(int status, const struct hvd_error *err)
{
    dprintf(STDOUT_FILENO, "said %d %lld %d %s\n", job.rank, now_ns(), status, err->text);
}

/* --- collectives -------------------------------------------------------------------- */

static struct hvd_tensor tensor_of(const int64_t *count)
{
    return (struct hvd_tensor){.name = job.place,
                               .input = job.data,
                               .output = job.data + MANY,
                               .shape = count,
                               .ndim = 1,
                               .dtype = HVD_FLOAT32,
                               .device = HVD_DEVICE_CPU};
}

static int start_reduction(int64_t count, struct hvd_request **request,
                           struct hvd_error *err)
{
    struct hvd_tensor tensor = tensor_of(&count);

    return hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, request, err);
}

static int start_small(struct hvd_request **request, struct hvd_error *err)
{
    return start_reduction(FEW, request, err);
}

static int start_large(struct hvd_request **request, struct hvd_error *err)
{
    return start_reduction(MANY, request, err);
}

static int start_allgather(struct hvd_request **request, struct hvd_error *err)
{
    const int64_t count = MANY / 16;
    struct hvd_tensor tensor = tensor_of(&count);

    return hvd_allgather_start(&tensor, 1, 0, request, err);
}

static int start_broadcast(struct hvd_request **request, struct hvd_error *err)
{
    const int64_t count = MANY / 4;
    struct hvd_tensor tensor = tensor_of(&count);

    return hvd_broadcast_start(&tensor, 1, 0, request, err);
}

static int start_alltoall(struct hvd_request **request, struct hvd_error *err)
{
    const int64_t count = MANY / 4;
    struct hvd_tensor tensor = tensor_of(&count);

    return hvd_alltoall_start(&tensor, NULL, 0, 0, request, err);
}

static int start_reducescatter(struct hvd_request **request, struct hvd_error *err)
{
    const int64_t count = MANY / 4;
    struct hvd_tensor tensor = tensor_of(&count);

    return hvd_reducescatter_start(&tensor, 1, HVD_SUM, 1, 1, 0, request, err);
}

static int start_barrier(struct hvd_request **request, struct hvd_error *err)
{
    return hvd_barrier_start(0, request, err);
}

static const struct {
    const char *place;
    int (*start)(struct hvd_request **request, struct hvd_error *err);
} calls[] = {
    {"small", start_small},         {"large", start_large},
    {"allgather", start_allgather}, {"broadcast", start_broadcast},
    {"alltoall", start_alltoall},   {"reducescatter", start_reducescatter},
    {"barrier", start_barrier},
};

static int finish(int status, struct hvd_request *request, struct hvd_error *err)
{
    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

/* Runs the collective of PLACE once. Then sums *more over the ranks: if the sum is above
 * 0, all ranks run another step. */
static int step(size_t call, bool may_fail, float *more, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    struct hvd_tensor tensor = {.name = "more",
                                .input = more,
                                .output = more,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    int status;

    atomic_store(&job.is_there, may_fail && is(calls[call].place, job.place));
    status = calls[call].start(&request, err);
    status = finish(status, request, err);
    atomic_store(&job.is_there, false);
    if (status == 0) {
        status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);
        status = finish(status, request, err);
    }
    return status;
}

/* --- a rank's life ------------------------------------------------------------------ */

/* Returns the index of PLACE in calls; 0, a small allreduce, if PLACE is not a
 * collective. */
static size_t find_call(void)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (is(calls[i].place, job.place)) {
            return i;
        }
    }
    return 0;
}

static int train(struct hvd_error *err)
{
    long long start_ns, end_ns;
    size_t call = find_call();
    bool is_due = is_victim("steps");
    float more = 1;
    int status = step(call, false, &more, err);

    start_ns = now_ns();
    end_ns = start_ns + (long long)(job.seconds * 1e9);
    while (status == 0 && more > 0) {
        if (is_due && now_ns() - start_ns > job.delay_us * 1000LL) {
            is_due = false;
            fail();
        }
        more = now_ns() < end_ns && job.rank == 0 ? 1 : 0;
        status = step(call, true, &more, err);
    }
    return status;
}

static int live(struct hvd_error *err)
{
    int status;

    /* hvdrun ends the ranks with SIGTERM; this rank must print its error first */
    signal(SIGTERM, SIG_IGN);
    atomic_store(&job.is_there, is(job.place, "init"));
    status = hvd_init(err);
    atomic_store(&job.is_there, false);
    if (is_victim("init") && status == 0) {
        fail(); /* hvd_init ended before the fault */
    }
    if (status == 0) {
        status = train(err);
    }
    atomic_store(&job.is_there, is(job.place, "shutdown"));
    hvd_shutdown();
    give_descriptors_back();
    return status;
}

static bool has_thread(void)
{
    return job.rank == job.victim && !is(job.place, "boot") && !is(job.place, "steps");
}

int main(int argc, char **argv)
{
    struct hvd_error err = {0};
    pthread_t thread;
    int status;

    if (argc != 6 || getenv("HOROVOD_RANK") == NULL) {
        fprintf(stderr, "usage: rank VICTIM PLACE HOW DELAY_US SECONDS, under hvdrun\n");
        return 2;
    }
    job.rank = atoi(getenv("HOROVOD_RANK"));
    job.victim = atoi(argv[1]);
    job.place = argv[2];
    job.how = argv[3];
    job.delay_us = (useconds_t)atoi(argv[4]);
    job.seconds = atof(argv[5]);
    if (is(job.how, "memory") && job.rank != job.victim) {
        /* lowering the score needs root, as the cgroup does */
        be_killed_for_memory(-1000);
    }
    job.data = calloc(2 * MANY, sizeof(*job.data));
    if (is_victim("boot")) {
        usleep(job.delay_us);
        fail();
    }
    if (has_thread() && pthread_create(&thread, NULL, fail_later, NULL) == 0) {
        pthread_detach(thread);
    }
    status = live(&err);
    if (status != 0) {
        say(status, &err);
    } else {
        dprintf(STDOUT_FILENO, "done %d %lld\n", job.rank, now_ns());
    }
    if (is_victim("shutdown")) {
        sleep(LATE_SECONDS);
    }
    free(job.data);
    return status != 0 ? EXIT_SURVIVOR : 0;
}
