/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks come on PMIx's thread, perhaps after the time limit: the struct counts who may
 * still touch it. */
#include "pmix_boot/pmix_collect.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmix_boot/exchange.h"

/* The share of the time limit that is kept for asking rank by rank, and its most. */
#define ASK_SHARE 4
#define ASK_MAX_MS 5000

/* The argument of one rank's callback. */
struct answer {
    struct hvd_collect *collect;
    struct hvd_blob blob; /* data NULL: not here */
    pmix_status_t status;
};

struct hvd_collect {
    pthread_mutex_t lock; /* guards all below but what is constant */
    pthread_cond_t changed;
    int holders; /* the creator and every callback that is still to come */
    bool is_fence_over;
    int unanswered; /* ranks that were asked and have not answered */
    int missing; /* ranks without a value */
    /* constant; PMIx borrows key and with_data until the callback */
    int size;
    pmix_proc_t self;
    pmix_key_t key;
    pmix_info_t with_data;
    struct answer answers[];
};

struct hvd_collect *hvd_collect_create(const pmix_proc_t *self, const char *key, int size)
{
    struct hvd_collect *collect =
        calloc(1, sizeof(*collect) + (size_t)size * sizeof(struct answer));
    pthread_condattr_t attributes;

    if (collect == NULL) {
        return NULL;
    }
    pthread_mutex_init(&collect->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&collect->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    collect->holders = 1;
    collect->missing = size;
    collect->size = size;
    collect->self = *self;
    PMIX_LOAD_KEY(collect->key, key);
    for (int rank = 0; rank < size; rank++) {
        collect->answers[rank].collect = collect;
        collect->answers[rank].status = PMIX_ERR_TIMEOUT;
    }
    return collect;
}

static void free_collect(struct hvd_collect *collect)
{
    for (int rank = 0; rank < collect->size; rank++) {
        free(collect->answers[rank].blob.data);
    }
    pthread_cond_destroy(&collect->changed);
    pthread_mutex_destroy(&collect->lock);
    free(collect);
}

/* Unlocks; the last holder frees. */
static void let_go(struct hvd_collect *collect)
{
    bool is_last = --collect->holders == 0;

    pthread_cond_broadcast(&collect->changed);
    pthread_mutex_unlock(&collect->lock);
    if (is_last) {
        free_collect(collect);
    }
}

static void on_fence(pmix_status_t status, void *context)
{
    struct hvd_collect *collect = context;

    /* Whatever the status: what counts is whether the values are there, and the gets that
     * follow find that out. */
    (void)status;
    pthread_mutex_lock(&collect->lock);
    collect->is_fence_over = true;
    let_go(collect);
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *context)
{
    struct answer *answer = context;
    struct hvd_collect *collect = answer->collect;
    void *copy = NULL;
    size_t bytes = 0;

    if (status == PMIX_SUCCESS && value != NULL && value->type == PMIX_BYTE_OBJECT) {
        bytes = value->data.bo.size;
        copy = malloc(bytes > 0 ? bytes : 1);
    }
    if (copy != NULL && bytes > 0) {
        memcpy(copy, value->data.bo.bytes, bytes);
    }
    pthread_mutex_lock(&collect->lock);
    collect->unanswered--;
    answer->status = status;
    answer->blob = (struct hvd_blob){copy, bytes};
    collect->missing -= copy != NULL ? 1 : 0;
    let_go(collect);
}

static struct timespec after_ms(struct timespec start, int ms)
{
    start.tv_sec += ms / 1000;
    start.tv_nsec += ms % 1000 * 1000000L;
    if (start.tv_nsec >= 1000000000L) {
        start.tv_sec++;
        start.tv_nsec -= 1000000000L;
    }
    return start;
}

static void fence_until(struct hvd_collect *collect, const struct timespec *deadline)
{
    bool is_collecting = true;
    pmix_status_t status;
    int waited = 0;

    PMIX_INFO_LOAD(&collect->with_data, PMIX_COLLECT_DATA, &is_collecting, PMIX_BOOL);
    pthread_mutex_lock(&collect->lock);
    collect->holders++;
    pthread_mutex_unlock(&collect->lock);
    status = PMIx_Fence_nb(NULL, 0, &collect->with_data, 1, on_fence, collect);
    if (status != PMIX_SUCCESS) {
        on_fence(status, collect); /* failed, or over already: no callback will come */
    }
    pthread_mutex_lock(&collect->lock);
    while (!collect->is_fence_over && waited == 0) {
        waited = pthread_cond_timedwait(&collect->changed, &collect->lock, deadline);
    }
    pthread_mutex_unlock(&collect->lock);
}

static void ask_all(struct hvd_collect *collect)
{
    pthread_mutex_lock(&collect->lock);
    collect->holders += collect->size;
    collect->unanswered = collect->size;
    pthread_mutex_unlock(&collect->lock);
    for (int rank = 0; rank < collect->size; rank++) {
        struct answer *answer = &collect->answers[rank];
        pmix_proc_t peer = collect->self;
        pmix_status_t status;

        peer.rank = (pmix_rank_t)rank;
        status = PMIx_Get_nb(&peer, collect->key, NULL, 0, on_value, answer);
        if (status != PMIX_SUCCESS) {
            on_value(status, NULL, answer);
        }
    }
}

static int wait_for_values(struct hvd_collect *collect, const struct timespec *deadline)
{
    int waited = 0;
    int missing;

    pthread_mutex_lock(&collect->lock);
    while (collect->unanswered > 0 && waited == 0) {
        waited = pthread_cond_timedwait(&collect->changed, &collect->lock, deadline);
    }
    missing = collect->missing;
    pthread_mutex_unlock(&collect->lock);
    return missing;
}

int hvd_collect_run(struct hvd_collect *collect, int timeout_ms)
{
    int ask_ms =
        timeout_ms / ASK_SHARE < ASK_MAX_MS ? timeout_ms / ASK_SHARE : ASK_MAX_MS;
    struct timespec now = {0};
    struct timespec deadline;

    clock_gettime(CLOCK_MONOTONIC, &now);
    deadline = after_ms(now, timeout_ms - ask_ms);
    fence_until(collect, &deadline);
    ask_all(collect);
    deadline = after_ms(now, timeout_ms);
    return wait_for_values(collect, &deadline);
}

bool hvd_collect_has(const struct hvd_collect *collect, int rank)
{
    return collect->answers[rank].blob.data != NULL;
}

pmix_status_t hvd_collect_status(const struct hvd_collect *collect, int rank)
{
    return collect->answers[rank].status;
}

struct hvd_blob *hvd_collect_take(struct hvd_collect *collect)
{
    struct hvd_blob *blobs = calloc((size_t)collect->size, sizeof(*blobs));

    for (int rank = 0; blobs != NULL && rank < collect->size; rank++) {
        blobs[rank] = collect->answers[rank].blob;
        collect->answers[rank].blob = (struct hvd_blob){NULL, 0};
    }
    return blobs;
}

void hvd_collect_destroy(struct hvd_collect *collect)
{
    if (collect == NULL) {
        return;
    }
    pthread_mutex_lock(&collect->lock);
    if (!PMIx_Initialized()) {
        collect->holders = 1; /* PMIx's thread is gone, no callback will come */
    }
    let_go(collect);
}
