/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for a request drives the rank (progress.h) as soon as no other
 * thread does, even if the progress thread gets no CPU for a long time. Runs as a job of
 * one rank; a signal stops the progress thread. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "contrib/bench/direct/direct.h"
#include "collectives/core/job_state.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    LIMIT_MS = 20000, /* far above what a loaded machine needs */
};

static sem_t is_stopped, may_go_on;

static void stop_here(int number)
{
    (void)number;
    sem_post(&is_stopped);
    while (sem_wait(&may_go_on) != 0) {
    }
}

/* Whether the kernel reports the thread as sleeping. */
static bool is_asleep(pid_t tid)
{
    char path[64], line[256] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    file = fopen(path, "re");
    if (file == NULL || fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
    state = strrchr(line, ')');
    return state != NULL && state[1] == ' ' && state[2] == 'S';
}

/* Whether all threads of this process but the calling one sleep. */
static bool others_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    bool all = tasks != NULL;

    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        const pid_t tid = (pid_t)atoi(task->d_name);

        all = all && (tid == 0 || tid == gettid() || is_asleep(tid));
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return all;
}

/* Stops the progress thread while it sleeps and holds none of the locks that it shares
 * with waiters, including malloc's. */
static void stop_progress_thread(struct hvd_job *job)
{
    const struct sigaction action = {.sa_handler = stop_here};

    sem_init(&is_stopped, 0, 0);
    sem_init(&may_go_on, 0, 0);
    sigaction(SIGTRAP, &action, NULL);
    pthread_mutex_lock(&job->progress.turn);
    pthread_mutex_lock(&job->wakeup.muting);
    while (!others_sleep()) {
        sched_yield();
    }
    pthread_kill(job->progress.thread, SIGTRAP);
    while (sem_wait(&is_stopped) != 0) {
    }
    pthread_mutex_unlock(&job->wakeup.muting);
    pthread_mutex_unlock(&job->progress.turn);
}

struct waiter {
    pthread_t thread;
    _Atomic pid_t tid;
    int status;
    float sum;
};

static void *wait_for_sum(void *arg)
{
    struct waiter *waiter = arg;
    float value = 3;
    struct hvd_tensor tensor =
        call_tensor("sum", HVD_FLOAT32, NULL, 0, &value, &waiter->sum);
    struct hvd_request *request = NULL;

    waiter->status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, NULL);
    if (waiter->status == 0) {
        atomic_store(&waiter->tid, gettid());
        waiter->status = hvd_wait_for(request, LIMIT_MS, NULL);
    }
    return request;
}

static void await_sleep(struct hvd_job *job, struct waiter *waiter)
{
    while (atomic_load(&job->waiters.count) == 0 ||
           !is_asleep(atomic_load(&waiter->tid))) {
        sched_yield();
    }
}

int main(void)
{
    struct waiter waiter = {0};
    struct hvd_job *job;
    void *request;

    call_init();
    job = hvd_job_enter(NULL);
    hvd_direct_open(NULL); /* from now on, this thread drives the rank */
    pthread_create(&waiter.thread, NULL, wait_for_sum, &waiter);
    await_sleep(job, &waiter);
    stop_progress_thread(job);
    hvd_direct_close();
    pthread_join(waiter.thread, &request);
    tap_ok(waiter.status == 0 && waiter.sum == 3,
           "a waiter drives once the driver has unlocked (status %d)", waiter.status);
    sem_post(&may_go_on);
    hvd_request_free(request);
    hvd_job_exit();
    hvd_shutdown();
    return tap_done();
}
