/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: init, shutdown, and facts about the job. Requests are started in
 * api_start.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectives/api/api.h"
#include "collectives/core/float_env.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/fork_mark.h"
#include "pmix_boot/boot.h"

/* The job of this process: a process has at most one, so it is file-scope. Every function
 * holds the lock for reading while it uses the job; init and shutdown hold it for writing
 * while they change it. */
static struct {
    pthread_mutex_t life; /* serializes init and shutdown */
    pthread_rwlock_t lock;
    struct hvd_job *job;
    uint64_t number; /* the job's number among those of this process, from 1 */
    /* set by init, to tell a forked child, which is not a rank */
    struct hvd_fork_mark mark;
    _Atomic bool changes; /* some thread holds life */
    bool was_cut; /* set in a child that was forked while another thread held `life` */
} current = {.life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_RWLOCK_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char not_initialized_text[] =
    "Horovod has not been initialized; use hvd.init().";
static const char forked_text[] = "this process was forked by a rank after hvd.init(): "
                                  "only the rank itself may use hvd";

static const char cut_text[] =
    "this process was forked while another thread was in hvd.init() "
    "or hvd.shutdown(): it cannot use hvd";

/* Makes the locks usable in a forked child, which lacks the threads that hold them.
 * Nothing is locked before a fork: life is held while ranks wait for each other, and a
 * fork must not wait that long. */
static void after_fork_in_child(void)
{
    current.was_cut = current.was_cut || atomic_load(&current.changes);
    current.life = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    current.lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void begin_change(void)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&current.life);
    atomic_store(&current.changes, true);
}

static void end_change(void)
{
    atomic_store(&current.changes, false);
    pthread_mutex_unlock(&current.life);
}

/* Returns why this process cannot use hvd, or NULL. */
static const char *find_obstacle(void)
{
    if (current.was_cut) {
        return cut_text;
    }
    return current.job != NULL && !hvd_fork_mark_is_mine(&current.mark) ? forked_text
                                                                        : NULL;
}

struct hvd_job *hvd_job_enter(struct hvd_error *err)
{
    const char *reason;

    pthread_rwlock_rdlock(&current.lock);
    if (current.job != NULL && hvd_fork_mark_is_mine(&current.mark)) {
        return current.job;
    }
    reason = find_obstacle();
    hvd_fail(err, HVD_ERR_STATE, "%s", reason != NULL ? reason : not_initialized_text);
    pthread_rwlock_unlock(&current.lock);
    return NULL;
}

struct hvd_job *hvd_job_try_enter(void)
{
    if (pthread_rwlock_tryrdlock(&current.lock) != 0) {
        return NULL;
    }
    if (current.job != NULL && hvd_fork_mark_is_mine(&current.mark)) {
        return current.job;
    }
    pthread_rwlock_unlock(&current.lock);
    return NULL;
}

uint64_t hvd_job_number(void)
{
    return current.number;
}

void hvd_job_exit(void)
{
    pthread_rwlock_unlock(&current.lock);
}

static int init_locked(const struct hvd_boot_query *who, struct hvd_error *err)
{
    const char *reason = find_obstacle();
    struct hvd_job *job;
    int status;

    if (reason != NULL) {
        return hvd_fail(err, HVD_ERR_STATE, "%s", reason);
    }
    if (current.job != NULL) {
        return 0;
    }
    status = hvd_job_create(who, &job, err);
    if (status == 0) {
        pthread_rwlock_wrlock(&current.lock);
        current.job = job;
        current.number++;
        hvd_fork_mark_set(&current.mark);
        pthread_rwlock_unlock(&current.lock);
    }
    return status;
}

/* Joins a job. The threads of the library are created here, and inherit hvd's
 * floating-point environment. */
static int init_job(const struct hvd_boot_query *who, struct hvd_error *err)
{
    struct hvd_float_env callers;
    int status;

    hvd_float_env_enter(&callers);
    begin_change();
    status = init_locked(who, err);
    end_change();
    hvd_float_env_leave(&callers);
    return status;
}

HVD_EXPORT int hvd_init(struct hvd_error *err)
{
    return init_job(&(struct hvd_boot_query){0}, err);
}

HVD_EXPORT int hvd_init_ranks(const int *ranks, int count, struct hvd_error *err)
{
    if (ranks == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "hvd_init_ranks needs a list of ranks");
    }
    return init_job(&(struct hvd_boot_query){.ranks = ranks, .count = count}, err);
}

HVD_EXPORT int hvd_init_with(int rank, int size, const struct hvd_store *store,
                             struct hvd_error *err)
{
    struct hvd_boot_store place = {.rank = rank, .size = size};

    if (store != NULL) {
        place.context = store->context;
        place.put = store->put;
        place.get = store->get;
    }
    return init_job(&(struct hvd_boot_query){.store = &place}, err);
}

HVD_EXPORT int hvd_shutdown_because(const char *why)
{
    struct hvd_float_env callers;
    struct hvd_job *job;

    hvd_float_env_enter(&callers);
    begin_change();
    /* A forked child has no job to leave: the rank itself goes on. */
    job = find_obstacle() == NULL ? current.job : NULL;
    if (job != NULL) {
        hvd_job_leave(job, why);
        /* All requests have ended, so the threads that wait for one leave and release the
         * lock. */
        pthread_rwlock_wrlock(&current.lock);
        current.job = NULL;
        pthread_rwlock_unlock(&current.lock);
        hvd_job_destroy(job);
    }
    end_change();
    hvd_float_env_leave(&callers);
    return 0;
}

HVD_EXPORT int hvd_shutdown(void)
{
    return hvd_shutdown_because(NULL);
}

HVD_EXPORT int hvd_is_initialized(void)
{
    bool initialized = hvd_job_enter(NULL) != NULL;

    if (initialized) {
        hvd_job_exit();
    }
    return initialized ? 1 : 0;
}

/* Returns a number that the boot information has about this rank, or HVD_ERR_STATE. */
static int job_number(int (*number)(const struct hvd_boot *boot))
{
    struct hvd_job *job = hvd_job_enter(NULL);
    int value;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    value = number(hvd_job_boot(job));
    hvd_job_exit();
    return value;
}

static int number_rank(const struct hvd_boot *boot)
{
    return boot->rank;
}

static int number_size(const struct hvd_boot *boot)
{
    return boot->size;
}

static int number_local_rank(const struct hvd_boot *boot)
{
    return boot->layout.local_rank[boot->rank];
}

static int number_local_size(const struct hvd_boot *boot)
{
    return hvd_layout_local_size(&boot->layout, boot->layout.node[boot->rank]);
}

static int number_cross_rank(const struct hvd_boot *boot)
{
    return hvd_layout_cross_rank(&boot->layout, boot->rank);
}

static int number_cross_size(const struct hvd_boot *boot)
{
    return hvd_layout_cross_size(&boot->layout, boot->rank);
}

static int number_is_homogeneous(const struct hvd_boot *boot)
{
    return hvd_layout_is_homogeneous(&boot->layout) ? 1 : 0;
}

HVD_EXPORT int hvd_rank(void)
{
    return job_number(number_rank);
}

HVD_EXPORT int hvd_size(void)
{
    return job_number(number_size);
}

HVD_EXPORT int hvd_local_rank(void)
{
    return job_number(number_local_rank);
}

HVD_EXPORT int hvd_local_size(void)
{
    return job_number(number_local_size);
}

HVD_EXPORT int hvd_cross_rank(void)
{
    return job_number(number_cross_rank);
}

HVD_EXPORT int hvd_cross_size(void)
{
    return job_number(number_cross_size);
}

HVD_EXPORT int hvd_is_homogeneous(void)
{
    return job_number(number_is_homogeneous);
}

HVD_EXPORT const char *hvd_host(int rank)
{
    struct hvd_job *job = hvd_job_enter(NULL);
    const struct hvd_boot *boot;
    const char *host = NULL;

    if (job == NULL) {
        return NULL;
    }
    boot = hvd_job_boot(job);
    if (rank >= 0 && rank < boot->size) {
        host = boot->peers[rank].host;
    }
    hvd_job_exit();
    return host;
}

HVD_EXPORT int hvd_count_step(void)
{
    struct hvd_job *job = hvd_job_try_enter();

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    hvd_job_count_step(job);
    hvd_job_exit();
    return 0;
}

HVD_EXPORT int hvd_section_begin(const char *name)
{
    struct hvd_job *job;

    if (name == NULL || name[0] == '\0') {
        return HVD_ERR_ARG;
    }
    job = hvd_job_try_enter();
    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    hvd_job_begin_section(job, name);
    hvd_job_exit();
    return 0;
}

HVD_EXPORT int hvd_section_end(void)
{
    struct hvd_job *job = hvd_job_try_enter();
    int status;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    status = hvd_job_end_section(job);
    hvd_job_exit();
    return status;
}

HVD_EXPORT const char *hvd_version(void)
{
    return HVD_VERSION;
}

HVD_EXPORT void hvd_free(void *data)
{
    free(data);
}
