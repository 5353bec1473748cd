/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of the stand-in for NCCL. Non-blocking ones connect, launch and finalize
 * in a thread of their own. */
#include "tests/fake_gpu/fake_nccl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"

static const unsigned config_magic = 0xcafebeef;
static const int config_version = 21400;
/* in these versions, non-blocking communicators hang */
static const int hangs_from = 22600, hangs_before = 22700;
/* before this version, NCCL keeps a pointer to the caller's configuration */
static const int copied_version = 21800;
/* from this version on, each launch by a non-blocking communicator has a thread */
static const int thread_version = 22300;

int fake_nccl_result(const char *function)
{
    const char *failing = getenv("FAKE_NCCL_FAILS");

    if (failing != NULL && strcmp(failing, function) == 0) {
        fake_nccl_warn("misc/socket.cc:51",
                       "socketProgress: Connection closed by remote peer 10.0.0.1<%d>",
                       (int)getpid());
        return FAKE_SYSTEM_ERROR;
    }
    return fake_gpu_fails(function) ? FAKE_SYSTEM_ERROR : FAKE_NCCL_SUCCESS;
}

int fake_nccl_version(void)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

    return text != NULL ? atoi(text) : 21803;
}

HVD_EXPORT int ncclGetVersion(int *out)
{
    *out = fake_nccl_version();
    return fake_nccl_result("ncclGetVersion");
}

HVD_EXPORT int ncclGetUniqueId(struct fake_id *id)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    memset(id, 0, sizeof(*id));
    if (fake_gpu_device() < 0) {
        fprintf(stderr, "fake NCCL: an id without a context would make one on GPU 0\n");
        return FAKE_SYSTEM_ERROR;
    }
    snprintf(id->name, sizeof(id->name), "/fake_nccl_%d_%lx%lx", (int)getpid(),
             (unsigned long)now.tv_sec, (unsigned long)now.tv_nsec);
    return fake_nccl_result("ncclGetUniqueId");
}

/* --- the thread of a non-blocking communicator --- */

static void end_job(struct fake_comm *comm)
{
    if (comm->has_job) {
        pthread_join(comm->job, NULL);
        comm->has_job = false;
    }
}

static int begin_job(struct fake_comm *comm, void *(*job)(void *comm))
{
    end_job(comm);
    atomic_store(&comm->state, FAKE_IN_PROGRESS);
    comm->has_job = pthread_create(&comm->job, NULL, job, comm) == 0;
    if (!comm->has_job) {
        atomic_store(&comm->state, FAKE_SYSTEM_ERROR);
    }
    return comm->has_job ? FAKE_IN_PROGRESS : FAKE_SYSTEM_ERROR;
}

/* With NCCL_COMM_BLOCKING=1, waits until the call has ended, although the caller asked
 * for a non-blocking communicator. Returns the result of the call. */
static int wait_if_told(struct fake_comm *comm, int result)
{
    const char *text = getenv("NCCL_COMM_BLOCKING");

    if (text == NULL || strcmp(text, "1") != 0 || result != FAKE_IN_PROGRESS) {
        return result;
    }
    end_job(comm);
    return atomic_load(&comm->state);
}

int fake_comm_begin_job(struct fake_comm *comm, void *(*job)(void *comm))
{
    return wait_if_told(comm, begin_job(comm, job));
}

bool fake_comm_is_ready(struct fake_comm *comm)
{
    if (atomic_load(&comm->state) == FAKE_IN_PROGRESS) {
        fprintf(stderr, "fake NCCL: a communicator is used before its last call has "
                        "ended\n");
        return false;
    }
    return true;
}

static void *launch_late(void *argument)
{
    const struct timespec moment = {.tv_nsec = 200000};
    struct fake_comm *comm = argument;

    nanosleep(&moment, NULL);
    fake_gpu_enqueue(comm->late->stream, fake_calls_run, comm->late);
    atomic_store(&comm->state, FAKE_NCCL_SUCCESS);
    return NULL;
}

static void look_at_config(const struct fake_comm *comm)
{
    if (comm->config != NULL && comm->config->magic != config_magic) {
        fprintf(stderr, "fake NCCL: the caller has freed or changed the configuration of "
                        "a communicator\n");
        abort();
    }
}

int fake_comm_launch(struct fake_comm *comm, struct fake_call *calls)
{
    look_at_config(comm);
    atomic_fetch_add(&comm->under_way, 1);
    fake_gpu_count_call(FAKE_NCCL_LAUNCH);
    if (!comm->may_block && fake_nccl_version() >= thread_version) {
        fake_gpu_count_call(FAKE_NCCL_THREAD);
    }
    if (comm->may_block || comm->launches++ % 2 != 0) {
        fake_gpu_enqueue(calls->stream, fake_calls_run, calls);
        return FAKE_NCCL_SUCCESS;
    }
    comm->late = calls;
    return begin_job(comm, launch_late);
}

static int meet_others(struct fake_comm *comm)
{
    int result = fake_link_meet(&comm->link) ? FAKE_NCCL_SUCCESS : FAKE_SYSTEM_ERROR;
    const char *shares = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    bool may_share = fake_nccl_version() >= 23000 && shares != NULL && atoi(shares) != 0;
    int rank =
        result == FAKE_NCCL_SUCCESS && !may_share ? fake_link_duplicate(&comm->link) : -1;

    if (rank >= 0) {
        fprintf(stderr, "fake NCCL: Duplicate GPU detected: rank %d and another one\n",
                rank);
        result = FAKE_INVALID_USAGE;
    }
    return result;
}

static void *meet(void *argument)
{
    struct fake_comm *comm = argument;

    atomic_store(&comm->state, meet_others(comm));
    return NULL;
}

/* --- creation and end --- */

static int make_comm(struct fake_comm **out, int size, const struct fake_id *id, int rank)
{
    struct fake_comm *comm = calloc(1, sizeof(*comm));
    const char *host = getenv("NCCL_HOSTID");
    char gpu[FAKE_PLACE], bus_id[16];

    if (fake_gpu_device() < 0) {
        fprintf(stderr, "fake NCCL: a communicator without a context would be GPU 0's\n");
        free(comm);
        return FAKE_SYSTEM_ERROR;
    }
    fake_nccl_begin_log();
    fake_gpu_bus_id(bus_id, sizeof(bus_id));
    snprintf(gpu, sizeof(gpu), "%.60s %s", host != NULL ? host : "", bus_id);
    if (getenv("FAKE_NCCL_DIES") != NULL) {
        raise(SIGKILL);
    }
    if (comm == NULL || fake_link_open(&comm->link, id->name, rank, size, gpu) != 0) {
        free(comm);
        return FAKE_SYSTEM_ERROR;
    }
    comm->owner = pthread_self();
    comm->device = fake_gpu_device();
    fake_gpu_count_comm(1);
    *out = comm;
    return FAKE_NCCL_SUCCESS;
}

HVD_EXPORT int ncclCommInitRank(struct fake_comm **out, int size, struct fake_id id,
                                int rank)
{
    int result = fake_nccl_result("ncclCommInitRank");

    if (result == FAKE_NCCL_SUCCESS) {
        result = make_comm(out, size, &id, rank);
    }
    if (result == FAKE_NCCL_SUCCESS) {
        (*out)->may_block = true;
        result = meet_others(*out);
    }
    return result;
}

HVD_EXPORT int ncclCommInitRankConfig(struct fake_comm **out, int size, struct fake_id id,
                                      int rank, const struct fake_config *config)
{
    int result = fake_nccl_result("ncclCommInitRankConfig");

    if (fake_nccl_version() < config_version || config->size < sizeof(*config) ||
        config->magic != config_magic || config->version < (unsigned)config_version ||
        config->version > (unsigned)fake_nccl_version() || config->blocking != 0) {
        fprintf(stderr, "fake NCCL: not a configuration for NCCL %d\n",
                fake_nccl_version());
        return FAKE_INVALID_ARGUMENT;
    }
    if (fake_nccl_version() >= hangs_from && fake_nccl_version() < hangs_before) {
        fprintf(stderr, "fake NCCL: a communicator that may not block hangs\n");
        return FAKE_SYSTEM_ERROR;
    }
    if (result == FAKE_NCCL_SUCCESS) {
        result = make_comm(out, size, &id, rank);
    }
    if (result == FAKE_NCCL_SUCCESS && fake_nccl_version() < copied_version) {
        (*out)->config = config;
    }
    return result == FAKE_NCCL_SUCCESS ? fake_comm_begin_job(*out, meet) : result;
}

static void end_comm(struct fake_comm *comm)
{
    end_job(comm);
    for (unsigned turn = 0; atomic_load(&comm->under_way) > 0; turn++) {
        fake_link_pause(turn);
    }
    fake_windows_drop(comm);
    fake_link_close(&comm->link);
    free(comm);
    fake_gpu_count_comm(-1);
}

static void look_for_windows(const struct fake_comm *comm)
{
    if (comm->windows != NULL) {
        fprintf(stderr, "fake NCCL: a communicator ends before its windows\n");
        abort();
    }
}

/* A non-blocking communicator has ended only when all of its ranks have called this. */
static void *finalize(void *argument)
{
    struct fake_comm *comm = argument;
    bool met = fake_link_barrier(&comm->link);

    atomic_store(&comm->state, met ? FAKE_NCCL_SUCCESS : FAKE_SYSTEM_ERROR);
    return NULL;
}

HVD_EXPORT int ncclCommFinalize(struct fake_comm *comm)
{
    if (!fake_comm_is_ready(comm) || comm->may_block || comm->is_finalized ||
        fake_nccl_version() < config_version) {
        return FAKE_INVALID_ARGUMENT;
    }
    if (atomic_load(&comm->under_way) > 0) {
        fprintf(stderr, "fake NCCL: a communicator is finalized while it is in use\n");
        abort();
    }
    look_for_windows(comm);
    if (fake_gpu_fails("ncclCommFinalize")) {
        return FAKE_SYSTEM_ERROR;
    }
    comm->is_finalized = true;
    return fake_comm_begin_job(comm, finalize);
}

HVD_EXPORT int ncclCommDestroy(struct fake_comm *comm)
{
    if (!fake_comm_is_ready(comm)) {
        return FAKE_INVALID_ARGUMENT;
    }
    look_for_windows(comm);
    end_comm(comm);
    return fake_nccl_result("ncclCommDestroy");
}

HVD_EXPORT int ncclCommAbort(struct fake_comm *comm)
{
    atomic_store(&comm->link.is_aborted, true);
    end_comm(comm);
    return fake_nccl_result("ncclCommAbort");
}

/* Calls made while another call is in progress never fail and are not counted, because
 * their number is random. */
HVD_EXPORT int ncclCommGetAsyncError(struct fake_comm *comm, int *result)
{
    /* Both this function and a launch complete the pending call, so they must be in one
     * thread. */
    if (!pthread_equal(comm->owner, pthread_self())) {
        fprintf(stderr, "fake NCCL: another thread than the one that launches asks for "
                        "errors\n");
        return FAKE_INVALID_USAGE;
    }
    *result = atomic_load(&comm->state);
    if (*result == FAKE_IN_PROGRESS) {
        return FAKE_NCCL_SUCCESS;
    }
    if (*result == FAKE_NCCL_SUCCESS) {
        *result = atomic_load(&comm->error);
    }
    return fake_nccl_result("ncclCommGetAsyncError");
}
