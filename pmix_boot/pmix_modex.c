/* SPDX-License-Identifier: Apache-2.0 */
/* Runs init, put, commit, collect and finalize; names the missing ranks. */
#include "pmix_boot/pmix_modex.h"

#include <errno.h>
#include <inttypes.h>
#include <pmix.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/launch_env.h"
#include "pmix_boot/pmix_collect.h"
#include "pmix_boot/rendezvous/missing.h"

/* For the first fence of a launch: how much of the time limit to keep for asking each
 * rank by itself. It is 1/ASK_SHARE of the limit, but no more than ASK_MAX_MS. */
#define ASK_SHARE 4
#define ASK_MAX_MS 5000

/* Time limit of a later fence, which may otherwise wait forever: if the server learns
 * late that a rank's helper of the previous modex has left, it does not count that rank
 * in the new fence (seen with Open MPI's server). The limit grows with the number of
 * ranks, because it also costs more to ask all of them. */
#define AGAIN_FENCE_MS 1000
#define AGAIN_FENCE_MS_PER_RANK 1

/* Time limit of a fence on a single node, where it costs little to ask for each value. */
#define LOCAL_FENCE_MS 50

/* For a list of ranks: how long to ask for values of this node before PMIx is opened
 * again. The time doubles with each attempt. */
#define REOPEN_MS 1000

/* The state of a modex. */
struct round {
    pmix_proc_t self;
    bool is_first; /* the first round of this process */
    /* unique to the round, so that old values are never taken for new ones */
    char key[48];
    struct hvd_blob mine; /* borrowed */
    const int *ranks; /* [size] ranks of the launch; NULL: all */
    int rank; /* index of this rank in the list */
    int size;
    int timeout_ms;
    int stop_fd;
    int collected_fd; /* an eventfd: all values have come, or the time is up */
    struct hvd_collect *collect; /* may still get answers until PMIx is finalized */
};

static int fail_open(pmix_status_t status, struct hvd_error *err)
{
    const char *rank = getenv(HVD_ENV_PMIX_RANK);

    return hvd_fail(
        err, HVD_ERR_NET,
        "rank %s cannot reach the PMIx server of its launcher (%s): the "
        "launcher may have ended, its directory may not be visible in this "
        "container, or the container may run as another user than the launcher's",
        rank != NULL ? rank : "?", PMIx_Error_string(status));
}

/* Two releases of libpmix wait forever for the server of Slurm before 25.11.2, which does
 * not tell its version (openpmix issue 3645). */
static int check_version(struct hvd_error *err)
{
    static const char slurms[] = "slurm.pmix.";
    const char *name_space = getenv(HVD_ENV_PMIX_NAMESPACE);
    const char *version = PMIx_Get_version();
    int major = 0, minor = 0, release = 0;

    version += strcspn(version, "0123456789");
    if (name_space == NULL || strncmp(name_space, slurms, strlen(slurms)) != 0 ||
        sscanf(version, "%d.%d.%d", &major, &minor, &release) != 3 || major != 5 ||
        minor != 0 || (release != 8 && release != 9)) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "libpmix %d.%d.%d hangs under Slurm before 25.11.2: install another "
                    "release, or start with srun --mpi=none",
                    major, minor, release);
}

/* Returns a number that the launcher provides about the job, or fallback if it does
 * not. */
static int get_number(const pmix_proc_t *self, const char *key, int fallback)
{
    pmix_proc_t job = *self;
    pmix_value_t *value = NULL;
    int number = fallback;

    job.rank = PMIX_RANK_WILDCARD;
    if (PMIx_Get(&job, key, NULL, 0, &value) != PMIX_SUCCESS) {
        return fallback;
    }
    if (value->type == PMIX_UINT32) {
        number = (int)value->data.uint32;
    }
    PMIX_VALUE_RELEASE(value);
    return number;
}

static int publish_blob(const struct round *round, struct hvd_error *err)
{
    const struct hvd_blob *mine = &round->mine;
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    pmix_status_t status;

    value.data.bo.bytes = mine->data;
    value.data.bo.size = mine->bytes;
    status = PMIx_Put(PMIX_GLOBAL, round->key, &value);
    if (status == PMIX_SUCCESS) {
        status = PMIx_Commit();
    }
    return status == PMIX_SUCCESS
               ? 0
               : hvd_fail(err, HVD_ERR_NET, "cannot publish %zu bytes through PMIx: %s",
                          mine->bytes, PMIx_Error_string(status));
}

/* Writes the host of the rank, if the launcher tells it. */
static void find_host(const pmix_proc_t *self, int rank,
                      char host[HVD_MISSING_HOST_BYTES])
{
    pmix_proc_t peer = *self;
    pmix_value_t *value = NULL;

    peer.rank = (pmix_rank_t)rank;
    if (PMIx_Get(&peer, PMIX_HOSTNAME, NULL, 0, &value) != PMIX_SUCCESS) {
        return;
    }
    if (value->type == PMIX_STRING) {
        snprintf(host, HVD_MISSING_HOST_BYTES, "%s", value->data.string);
    }
    PMIX_VALUE_RELEASE(value);
}

static int fail_missing(const struct round *round, int found, struct hvd_error *err)
{
    pmix_status_t own = hvd_collect_status(round->collect, round->rank);
    struct hvd_missing missing = {0};
    char host[HVD_MISSING_HOST_BYTES];

    if (own != PMIX_SUCCESS) {
        return hvd_fail(err, HVD_ERR_NET,
                        "rank %u lost the PMIx server of its launcher: %s",
                        round->self.rank, PMIx_Error_string(own));
    }
    /* The server of Slurm 24.11 waits for a node whose ranks have all ended. */
    if (hvd_collect_is_silent(round->collect)) {
        return hvd_fail(
            err, HVD_ERR_TIMEOUT,
            "rank %u found %d of %d ranks within %g s, then its launcher's PMIx "
            "server stopped answering: probably all ranks of a node have ended",
            round->self.rank, found, round->size, round->timeout_ms / 1000.0);
    }
    for (int i = 0; i < round->size; i++) {
        int rank = round->ranks != NULL ? round->ranks[i] : i;

        if (!hvd_collect_has(round->collect, i)) {
            host[0] = '\0';
            if (missing.ranges < HVD_MISSING_RANGES) {
                find_host(&round->self, rank, host);
            }
            hvd_missing_add(&missing, rank, host);
        }
    }
    return hvd_missing_fail(&missing, round->size, round->timeout_ms,
                            round->ranks != NULL ? HVD_MISSING_LIST : HVD_MISSING_CALL,
                            err);
}

static int choose_fence_ms(const struct round *round)
{
    int share_ms = round->timeout_ms / ASK_SHARE;
    int most_ms = round->timeout_ms - (share_ms < ASK_MAX_MS ? share_ms : ASK_MAX_MS);
    int fence_ms = most_ms;

    if (round->ranks != NULL) {
        return 0;
    }
    if (get_number(&round->self, PMIX_LOCAL_SIZE, 0) == round->size) {
        fence_ms = LOCAL_FENCE_MS;
    } else if (!round->is_first) {
        fence_ms = AGAIN_FENCE_MS + round->size * AGAIN_FENCE_MS_PER_RANK;
    }
    return fence_ms < most_ms ? fence_ms : most_ms;
}

static int find_place(struct round *round, const struct hvd_modex_query *query,
                      struct hvd_error *err)
{
    int launched = get_number(&round->self, PMIX_JOB_SIZE, 0);

    if (launched <= 0) {
        return hvd_fail(err, HVD_ERR_NET,
                        "the launcher does not provide the number of ranks");
    }
    round->ranks = query->ranks;
    return hvd_modex_position(query, (int)round->self.rank, launched, &round->rank,
                              &round->size, err);
}

/* Runs in a thread of its own until the values have been collected. */
static void *stop_collect(void *argument)
{
    struct round *round = argument;
    struct pollfd events[] = {{.fd = round->stop_fd, .events = POLLIN},
                              {.fd = round->collected_fd, .events = POLLIN}};
    int ready;

    do {
        ready = poll(events, 2, -1);
    } while (ready < 0 && errno == EINTR);
    if (ready > 0 && events[1].revents == 0) {
        hvd_collect_stop(round->collect);
    }
    return NULL;
}

static int open_pmix(struct round *round, struct hvd_error *err)
{
    pmix_status_t status;

    hvd_launch_need_home();
    status = PMIx_Init(&round->self, NULL, 0);
    return status == PMIX_SUCCESS ? 0 : fail_open(status, err);
}

/* Finalizes and opens PMIx, and publishes the value again. */
static int reopen(struct round *round, struct hvd_error *err)
{
    int status;

    PMIx_Finalize(NULL, 0);
    hvd_collect_reopen(round->collect);
    status = open_pmix(round, err);
    return status == 0 ? publish_blob(round, err) : status;
}

/* Collects the values of a list of ranks, and stores the number of missing ranks.
 *
 * A client that connected before the server removed its memory (see outlive_cleanup)
 * never sees values that ranks of its node publish afterwards, and they never see its
 * value. It cannot tell this from ranks that are late, so it connects anew from time to
 * time. Values that it has found stay. */
static int collect_list(struct round *round, int *missing, struct hvd_error *err)
{
    int left_ms = round->timeout_ms;
    int status = 0;

    for (int ms = REOPEN_MS; status == 0; ms *= 2) {
        int limit_ms = ms < left_ms ? ms : left_ms;

        *missing = hvd_collect_run(round->collect, 0, limit_ms);
        left_ms -= limit_ms;
        if (*missing == 0 || left_ms == 0 || hvd_collect_was_stopped(round->collect)) {
            return 0;
        }
        if (left_ms >= REOPEN_MS && hvd_collect_misses_local(round->collect)) {
            status = reopen(round, err);
        }
    }
    return status;
}

static int collect_values(struct round *round, int *missing, struct hvd_error *err)
{
    if (round->ranks != NULL) {
        return collect_list(round, missing, err);
    }
    *missing = hvd_collect_run(round->collect, choose_fence_ms(round), round->timeout_ms);
    return 0;
}

/* Collects the values until the caller gives up. Without the thread, it waits until the
 * time is up. */
static int collect_unless_stopped(struct round *round, int *missing,
                                  struct hvd_error *err)
{
    pthread_t thread;
    bool has_thread;
    int status;

    round->collected_fd = eventfd(0, EFD_CLOEXEC);
    has_thread = round->collected_fd >= 0 &&
                 pthread_create(&thread, NULL, stop_collect, round) == 0;
    status = collect_values(round, missing, err);
    if (has_thread) {
        (void)eventfd_write(round->collected_fd, 1);
        pthread_join(thread, NULL);
    }
    if (round->collected_fd >= 0) {
        close(round->collected_fd);
    }
    return status;
}

static int gather_round(struct round *round, struct hvd_modex *out, struct hvd_error *err)
{
    struct hvd_blob *blobs;
    int missing = round->size;
    int status;

    round->collect =
        hvd_collect_create(&round->self, round->key, round->ranks, round->size);
    if (round->collect == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", round->size);
    }
    status = collect_unless_stopped(round, &missing, err);
    if (status < 0) {
        return status;
    }
    if (missing > 0) {
        return fail_missing(round, round->size - missing, err);
    }
    blobs = hvd_collect_take(round->collect);
    if (blobs == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", round->size);
    }
    *out = (struct hvd_modex){.rank = round->rank, .size = round->size, .blobs = blobs};
    return 0;
}

/* Finalizes and opens PMIx as often as the node has ranks. After so many clients have
 * left, the server considers the job over and removes the memory in which clients find
 * the values of others. This happens once (libpmix 4.2.2), well after the first fence of
 * all ranks. Ranks that start with lists come and go at different times, so a value that
 * was just published could be lost; therefore each process provokes the removal before it
 * publishes. */
static int outlive_cleanup(struct round *round, struct hvd_error *err)
{
    int times = get_number(&round->self, PMIX_LOCAL_SIZE, 0);
    int status = 0;

    for (int i = 0; i < times && status == 0; i++) {
        PMIx_Finalize(NULL, 0);
        status = open_pmix(round, err);
    }
    return status;
}

int hvd_pmix_modex(const struct hvd_modex_query *query, const struct hvd_modex_key *key,
                   int stop_fd, struct hvd_modex *out, struct hvd_error *err)
{
    struct round round = {.is_first = key->is_first,
                          .mine = query->mine,
                          .timeout_ms = query->timeout_ms,
                          .stop_fd = stop_fd};
    int status = check_version(err);

    if (status == 0) {
        status = open_pmix(&round, err);
    }
    if (status == 0 && query->ranks != NULL && key->is_first) {
        status = outlive_cleanup(&round, err);
    }
    if (status != 0) {
        return status;
    }
    snprintf(round.key, sizeof(round.key), "hvd.card.%" PRIx64 ".%" PRIu32, key->list,
             key->number);
    status = find_place(&round, query, err);
    if (status == 0) {
        status = publish_blob(&round, err);
    }
    if (status == 0) {
        status = gather_round(&round, out, err);
    }
    PMIx_Finalize(NULL, 0);
    hvd_collect_destroy(round.collect);
    return status;
}
