/* SPDX-License-Identifier: Apache-2.0 */
/* Answers arrive on PMIx's thread; the thread that calls hvd_collect_run waits for
 * them. */
#include "pmix_boot/pmix_collect.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmix_boot/modex.h"

/* The longest pause between two questions to a server that answers "not found" instead of
 * waiting for a value. The pause starts at 1 ms and doubles. */
#define ASK_AGAIN_MS 100

/* A server that waits for a rank's value can forget to answer (libpmix 4.2.2, for 2 s or
 * forever) if that rank publishes another value first. A rank does so if it is still in
 * an earlier modex. Therefore the server is not asked to wait for ranks of its own node,
 * whose values it knows, and waits at most this long for other ranks. */
#define ANSWER_LIMIT_S 1

/* The server never returns this for a question that it must answer at once. */
#define UNANSWERED PMIX_ERR_TIMEOUT

/* The value of one rank. */
struct answer {
    struct hvd_collect *collect;
    struct hvd_blob blob; /* data is NULL until it arrives */
    pmix_status_t status;
    bool is_awaited;
    /* the server must answer without waiting, because the rank is on this node */
    bool is_at_once;
};

struct hvd_collect {
    pthread_mutex_t lock; /* guards the counts and the answers */
    pthread_cond_t changed;
    bool is_fence_over;
    bool is_stopped;
    int awaited; /* unanswered questions */
    int missing; /* ranks without a value */
    /* constant; PMIx borrows key and with_data until the answer arrives */
    int size;
    const int *ranks; /* [size]; NULL: 0, 1, ... */
    pmix_proc_t self;
    pmix_key_t key;
    pmix_info_t with_data;
    pmix_info_t in_time;
    pmix_info_t at_once;
    struct answer answers[];
};

static int rank_at(const struct hvd_collect *collect, int index)
{
    return collect->ranks != NULL ? collect->ranks[index] : index;
}

static void mark(struct hvd_collect *collect, int rank)
{
    for (int i = 0; i < collect->size; i++) {
        if (rank_at(collect, i) == rank) {
            collect->answers[i].is_at_once = true;
        }
    }
}

/* Finds the ranks of this node, which the launcher lists as "0,1,4". */
static void mark_local(struct hvd_collect *collect)
{
    pmix_proc_t job = collect->self;
    pmix_value_t *value = NULL;

    job.rank = PMIX_RANK_WILDCARD;
    if (PMIx_Get(&job, PMIX_LOCAL_PEERS, NULL, 0, &value) != PMIX_SUCCESS) {
        return;
    }
    if (value->type == PMIX_STRING) {
        char *rest = value->data.string;

        for (char *word = strtok_r(rest, ",", &rest); word != NULL;
             word = strtok_r(NULL, ",", &rest)) {
            mark(collect, atoi(word));
        }
    }
    PMIX_VALUE_RELEASE(value);
}

struct hvd_collect *hvd_collect_create(const pmix_proc_t *self, const char *key,
                                       const int *ranks, int size)
{
    struct hvd_collect *collect =
        calloc(1, sizeof(*collect) + (size_t)size * sizeof(struct answer));
    pthread_condattr_t attributes;
    const bool yes = true;
    const int limit_s = ANSWER_LIMIT_S;

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
    collect->ranks = ranks;
    collect->self = *self;
    PMIX_LOAD_KEY(collect->key, key);
    PMIX_INFO_LOAD(&collect->with_data, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&collect->in_time, PMIX_TIMEOUT, &limit_s, PMIX_INT);
    PMIX_INFO_LOAD(&collect->at_once, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    for (int rank = 0; rank < size; rank++) {
        collect->answers[rank].collect = collect;
        collect->answers[rank].status = UNANSWERED;
    }
    mark_local(collect);
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
        /* the fence failed or has already ended: no callback will come */
        on_fence(status, collect);
    }
    pthread_mutex_lock(&collect->lock);
    while (!collect->is_fence_over && !collect->is_stopped && waited == 0) {
        waited = pthread_cond_timedwait(&collect->changed, &collect->lock, deadline);
    }
    pthread_mutex_unlock(&collect->lock);
}

/* Returns whether the rank must be asked for, because its value is missing and no
 * question is open; if so, counts the question as open. */
static bool claim(struct hvd_collect *collect, int index)
{
    struct answer *answer = &collect->answers[index];
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
    for (int i = 0; i < collect->size; i++) {
        struct answer *answer = &collect->answers[i];
        const pmix_info_t *how =
            answer->is_at_once ? &collect->at_once : &collect->in_time;
        pmix_proc_t peer = collect->self;
        pmix_status_t status;

        if (!claim(collect, i)) {
            continue;
        }
        peer.rank = (pmix_rank_t)rank_at(collect, i);
        status = PMIx_Get_nb(&peer, collect->key, how, 1, on_value, answer);
        if (status != PMIX_SUCCESS) {
            on_value(status, NULL, answer);
        }
    }
}

/* Waits until every question is answered or the deadline has passed. Returns the number
 * of missing ranks. */
static int wait_for_answers(struct hvd_collect *collect, const struct timespec *deadline)
{
    int waited = 0;
    int missing;

    pthread_mutex_lock(&collect->lock);
    while (collect->awaited > 0 && !collect->is_stopped && waited == 0) {
        waited = pthread_cond_timedwait(&collect->changed, &collect->lock, deadline);
    }
    missing = collect->missing;
    pthread_mutex_unlock(&collect->lock);
    return missing;
}

bool hvd_collect_was_stopped(struct hvd_collect *collect)
{
    bool is_stopped;

    pthread_mutex_lock(&collect->lock);
    is_stopped = collect->is_stopped;
    pthread_mutex_unlock(&collect->lock);
    return is_stopped;
}

void hvd_collect_stop(struct hvd_collect *collect)
{
    pthread_mutex_lock(&collect->lock);
    collect->is_stopped = true;
    pthread_cond_signal(&collect->changed);
    pthread_mutex_unlock(&collect->lock);
}

void hvd_collect_reopen(struct hvd_collect *collect)
{
    pthread_mutex_lock(&collect->lock);
    for (int i = 0; i < collect->size; i++) {
        collect->answers[i].is_awaited = false;
    }
    collect->awaited = 0;
    pthread_mutex_unlock(&collect->lock);
}

int hvd_collect_run(struct hvd_collect *collect, int fence_ms, int timeout_ms)
{
    int pause_ms = 1;
    struct timespec start;
    struct timespec deadline;
    int missing;

    clock_gettime(CLOCK_MONOTONIC, &start);
    deadline = after_ms(start, fence_ms);
    if (fence_ms > 0) {
        fence_until(collect, &deadline);
    }
    deadline = after_ms(start, timeout_ms);
    ask_missing(collect);
    missing = wait_for_answers(collect, &deadline);
    while (missing > 0 && !is_past(&deadline) && !hvd_collect_was_stopped(collect)) {
        struct timespec pause = after_ms((struct timespec){0}, pause_ms);

        nanosleep(&pause, NULL);
        pause_ms = pause_ms * 2 < ASK_AGAIN_MS ? pause_ms * 2 : ASK_AGAIN_MS;
        ask_missing(collect);
        missing = wait_for_answers(collect, &deadline);
    }
    return missing;
}

bool hvd_collect_has(const struct hvd_collect *collect, int index)
{
    return collect->answers[index].blob.data != NULL;
}

pmix_status_t hvd_collect_status(const struct hvd_collect *collect, int index)
{
    return collect->answers[index].status;
}

bool hvd_collect_misses_local(struct hvd_collect *collect)
{
    bool is_missing = false;

    pthread_mutex_lock(&collect->lock);
    for (int i = 0; i < collect->size; i++) {
        const struct answer *answer = &collect->answers[i];

        is_missing = is_missing || (answer->is_at_once && answer->blob.data == NULL);
    }
    pthread_mutex_unlock(&collect->lock);
    return is_missing;
}

bool hvd_collect_is_silent(struct hvd_collect *collect)
{
    bool is_silent = false;

    pthread_mutex_lock(&collect->lock);
    for (int i = 0; i < collect->size; i++) {
        const struct answer *answer = &collect->answers[i];

        is_silent = is_silent || (answer->is_at_once && answer->status == UNANSWERED);
    }
    pthread_mutex_unlock(&collect->lock);
    return is_silent;
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
