/* SPDX-License-Identifier: Apache-2.0 */
/* Answers come on PMIx's thread; the thread of run waits for them with a deadline. */
#include "pmix_boot/pmix_collect.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmix_boot/exchange.h"

/* Between two questions to a server that does not wait for a value but says "not found". */
#define ASK_AGAIN_MS 100

/* One rank's value. */
struct answer {
    struct hvd_collect *collect;
    struct hvd_blob blob; /* data NULL: not here */
    pmix_status_t status;
    bool is_awaited;
};

struct hvd_collect {
    pthread_mutex_t lock; /* guards the counts and the answers */
    pthread_cond_t changed;
    bool is_fence_over;
    int awaited; /* questions without an answer */
    int missing; /* ranks without a value */
    /* constant; PMIx borrows key and with_data until the answer */
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
    bool is_collecting = true;

    if (collect == NULL) {
        return NULL;
    }
    pthread_mutex_init(&collect->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&collect->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    collect->missing = size;
    collect->size = size;
    collect->self = *self;
    PMIX_LOAD_KEY(collect->key, key);
    PMIX_INFO_LOAD(&collect->with_data, PMIX_COLLECT_DATA, &is_collecting, PMIX_BOOL);
    for (int rank = 0; rank < size; rank++) {
        collect->answers[rank].collect = collect;
        collect->answers[rank].status = PMIX_ERR_TIMEOUT;
    }
    return collect;
}

static void on_fence(pmix_status_t status, void *context)
{
    struct hvd_collect *collect = context;

    (void)status;
    pthread_mutex_lock(&collect->lock);
    collect->is_fence_over = true;
    pthread_cond_signal(&collect->changed);
    pthread_mutex_unlock(&collect->lock);
}

static struct hvd_blob copy_value(const pmix_value_t *value)
{
    struct hvd_blob blob = {NULL, 0};

    if (value != NULL && value->type == PMIX_BYTE_OBJECT && value->data.bo.size > 0) {
        blob.data = malloc(value->data.bo.size);
    }
    if (blob.data != NULL) {
        blob.bytes = value->data.bo.size;
        memcpy(blob.data, value->data.bo.bytes, blob.bytes);
    }
    return blob;
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *context)
{
    struct answer *answer = context;
    struct hvd_collect *collect = answer->collect;

    pthread_mutex_lock(&collect->lock);
    answer->status = status;
    answer->is_awaited = false;
    if (status == PMIX_SUCCESS) {
        answer->blob = copy_value(value);
    }
    collect->missing -= answer->blob.data != NULL ? 1 : 0;
    collect->awaited--;
    pthread_cond_signal(&collect->changed);
    pthread_mutex_unlock(&collect->lock);
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

static bool is_past(const struct timespec *deadline)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > deadline->tv_sec ||
           (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

static void fence_until(struct hvd_collect *collect, const struct timespec *deadline)
{
    pmix_status_t status =
        PMIx_Fence_nb(NULL, 0, &collect->with_data, 1, on_fence, collect);
    int waited = 0;

    if (status != PMIX_SUCCESS) {
        on_fence(status, collect); /* failed, or over already: no callback will come */
    }
    pthread_mutex_lock(&collect->lock);
    while (!collect->is_fence_over && waited == 0) {
        waited = pthread_cond_timedwait(&collect->changed, &collect->lock, deadline);
    }
    pthread_mutex_unlock(&collect->lock);
}

/* Claims rank for a question, unless its value is here or a question is open. */
static bool claim(struct hvd_collect *collect, int rank)
{
    struct answer *answer = &collect->answers[rank];
    bool is_needed;

    pthread_mutex_lock(&collect->lock);
    is_needed = answer->blob.data == NULL && !answer->is_awaited;
    answer->is_awaited = answer->is_awaited || is_needed;
    collect->awaited += is_needed ? 1 : 0;
    pthread_mutex_unlock(&collect->lock);
    return is_needed;
}

static void ask_missing(struct hvd_collect *collect)
{
    for (int rank = 0; rank < collect->size; rank++) {
        struct answer *answer = &collect->answers[rank];
        pmix_proc_t peer = collect->self;
        pmix_status_t status;

        if (!claim(collect, rank)) {
            continue;
        }
        peer.rank = (pmix_rank_t)rank;
        status = PMIx_Get_nb(&peer, collect->key, NULL, 0, on_value, answer);
        if (status != PMIX_SUCCESS) {
            on_value(status, NULL, answer);
        }
    }
}

/* Until every question is answered, or the deadline. Returns the number of missing ranks. */
static int wait_for_answers(struct hvd_collect *collect, const struct timespec *deadline)
{
    int waited = 0;
    int missing;

    pthread_mutex_lock(&collect->lock);
    while (collect->awaited > 0 && waited == 0) {
        waited = pthread_cond_timedwait(&collect->changed, &collect->lock, deadline);
    }
    missing = collect->missing;
    pthread_mutex_unlock(&collect->lock);
    return missing;
}

int hvd_collect_run(struct hvd_collect *collect, int fence_ms, int timeout_ms)
{
    struct timespec pause = after_ms((struct timespec){0}, ASK_AGAIN_MS);
    struct timespec start;
    struct timespec deadline;
    int missing;

    clock_gettime(CLOCK_MONOTONIC, &start);
    deadline = after_ms(start, fence_ms);
    fence_until(collect, &deadline);
    deadline = after_ms(start, timeout_ms);
    ask_missing(collect);
    missing = wait_for_answers(collect, &deadline);
    while (missing > 0 && !is_past(&deadline)) {
        nanosleep(&pause, NULL);
        ask_missing(collect);
        missing = wait_for_answers(collect, &deadline);
    }
    return missing;
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
    for (int rank = 0; rank < collect->size; rank++) {
        free(collect->answers[rank].blob.data);
    }
    pthread_cond_destroy(&collect->changed);
    pthread_mutex_destroy(&collect->lock);
    free(collect);
}
