/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 leaves the job while another of its threads forks, or starts and stops the
 * timeline. Both threads want to drive the rank (progress.h), and rank 1 is not ready to
 * leave. Runs as each rank of a job of two with HOROVOD_TIMELINE=DYNAMIC. Rank 0 prints
 * TAP. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "contrib/bench/direct/direct.h"
#include "gpu_binding/base/log.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    LIMIT_S = 60, /* far above what a loaded machine needs */
};

static int rank;
static char folder[64];
static _Atomic int complaints;

static void count_complaint(enum hvd_log_level level, const char *line)
{
    if (level >= HVD_LOG_WARN) {
        complaints++;
        fprintf(stderr, "# rank %d: %s\n", rank, line);
    }
}

/* --- marks: files by which ranks signal each other --- */

static const char *path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static void leave_mark(const char *name)
{
    char path[128];
    FILE *file = fopen(path_of(name, path), "we");

    if (file != NULL) {
        fclose(file);
    }
}

static void await_mark(const char *name)
{
    time_t limit = time(NULL) + LIMIT_S;
    struct stat ignored;
    char path[128];

    while (stat(path_of(name, path), &ignored) != 0 && time(NULL) < limit) {
        usleep(1000);
    }
}

static void share_folder(void)
{
    const int64_t shape[] = {sizeof(folder)};
    struct hvd_tensor tensor = call_tensor("folder", HVD_UINT8, shape, 1, folder, folder);

    snprintf(folder, sizeof(folder), "/tmp/hvd-leave.XXXXXX");
    if (rank == 0 && mkdtemp(folder) == NULL) {
        exit(1);
    }
    call_broadcast(&tensor, 0, 0);
}

static void remove_folder(void)
{
    static const char *const names[] = {"held", "go", "trace.json"};
    char path[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unlink(path_of(names[i], path));
    }
    rmdir(folder);
}

/* --- the threads of rank 0 --- */

/* Returns when hvd_shutdown has begun in the leaving thread, which waits for rank 1. */
static void await_leaving(void)
{
    int status;

    do {
        struct hvd_request *request = NULL;

        status = hvd_barrier_start(0, &request, NULL);
        /* rank 1 does not start this barrier, so only the shutdown ends it */
        hvd_request_free(request);
    } while (status == 0);
}

static void *record_while_leaving(void *arg)
{
    struct hvd_error err = {0};
    char path[128];

    (void)arg;
    await_leaving();
    if (hvd_timeline_start(path_of("trace.json", path), 0, &err) != HVD_ERR_SHUTDOWN) {
        fprintf(stderr, "# a timeline was started during the shutdown\n");
        complaints++;
    }
    hvd_timeline_stop(NULL);
    leave_mark("go");
    return NULL;
}

/* Makes the calls that a child, forked while this rank leaves, may make; each must return
 * at once. */
static int be_child(void)
{
    struct hvd_error err = {0};
    int status;

    alarm(LIMIT_S);
    status = hvd_init(&err);
    return status == HVD_ERR_STATE && strstr(err.text, "forked") != NULL &&
                   hvd_shutdown() == 0 && !hvd_is_initialized() &&
                   hvd_rank() == HVD_ERR_STATE
               ? 0
               : 1;
}

static void *fork_while_leaving(void *arg)
{
    int *code = arg;
    pid_t child;

    await_leaving();
    child = fork();
    if (child == 0) {
        _exit(be_child());
    }
    waitpid(child, code, 0);
    leave_mark("go");
    return NULL;
}

static void *let_rank_1_go(void *arg)
{
    (void)arg;
    await_leaving();
    leave_mark("go");
    return NULL;
}

static void *shut_down(void *arg)
{
    (void)arg;
    hvd_shutdown();
    return NULL;
}

/* --- rank 1, which holds the job in hvd_direct_open until rank 0 lets it go --- */

static int hold(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    float value = 1;
    struct hvd_tensor tensor =
        call_tensor("pending", HVD_FLOAT32, NULL, 0, &value, &value);
    int status;

    hvd_direct_open(NULL);
    leave_mark("held");
    await_mark("go");
    hvd_direct_close();
    status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);
    status = status == 0 ? hvd_wait(request, &err) : status;
    hvd_request_free(request);
    hvd_shutdown();
    if (status != HVD_ERR_SHUTDOWN) {
        fprintf(stderr, "# rank 1 got %d %s\n", status, err.text);
    }
    return status != HVD_ERR_SHUTDOWN;
}

static void begin(void)
{
    rank = call_init();
    share_folder();
    call_barrier();
    complaints = 0;
}

static void test_timeline_beside_shutdown(void)
{
    pthread_t recorder;

    await_mark("held");
    pthread_create(&recorder, NULL, record_while_leaving, NULL);
    hvd_shutdown();
    pthread_join(recorder, NULL);
    tap_ok(complaints == 0,
           "a shutdown works while another thread starts and stops the timeline");
}

static void test_fork_beside_shutdown(void)
{
    pthread_t forker;
    int code = -1;

    await_mark("held");
    pthread_create(&forker, NULL, fork_while_leaving, &code);
    hvd_shutdown();
    pthread_join(forker, NULL);
    tap_ok(code == 0,
           "a child that is forked during a shutdown gets errors (it ended with %#x)",
           code);
}

static void test_shutdown_beside_timeline(void)
{
    pthread_t leaver, helper;
    char path[128];

    await_mark("held");
    hvd_timeline_start(path_of("trace.json", path), 0, NULL);
    pthread_create(&helper, NULL, let_rank_1_go, NULL);
    pthread_create(&leaver, NULL, shut_down, NULL);
    hvd_timeline_stop(NULL); /* waits for rank 1's last events */
    pthread_join(leaver, NULL);
    pthread_join(helper, NULL);
    tap_ok(complaints == 0,
           "the end of a timeline works while another thread shuts down");
}

int main(void)
{
    void (*const tests[])(void) = {
        test_fork_beside_shutdown,
        test_timeline_beside_shutdown,
        test_shutdown_beside_timeline,
    };
    int bad = 0;

    setenv("HOROVOD_TIMELINE", "DYNAMIC", 1);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (tests[i] == test_shutdown_beside_timeline) {
            setenv("HVD_TIMELINE_RANKS", "all", 1);
        }
        begin();
        hvd_log_to(count_complaint, HVD_LOG_WARN);
        if (rank == 1) {
            bad |= hold();
        } else {
            tests[i]();
            remove_folder();
        }
        hvd_log_to(NULL, HVD_LOG_WARN);
    }
    return rank == 0 ? tap_done() : bad;
}
