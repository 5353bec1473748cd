/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that find each other by a store of the program; the ranks are threads. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pmix_boot/modex.h"
#include "tests/tap.h"

enum {
    MOST_RANKS = 8,
    MOST_VALUES = 4096,
    GENEROUS_MS = 60000
};

/* --- a store in memory, and its faults ---------------------------------------------- */

enum fault {
    SOUND,
    PUT_FAILS,
    GET_FAILS,
    HAS_EVERYTHING,
    HAS_NO_VALUES, /* claims to have a value, but returns none */
    CUTS_ALL, /* the last byte of what rank 0 puts is missing */
    SPOILS_ALL /* the first byte of what rank 0 puts is changed */
};

struct value {
    char key[64];
    void *data;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock;
    struct value values[MOST_VALUES];
    int count;
    int questions;
    enum fault fault;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_of_all(const char *key)
{
    return strcmp(key + strlen(key) - 4, ".all") == 0;
}

static int put(void *context, const char *key, const void *value, size_t bytes,
               struct hvd_error *err)
{
    struct value *new_value;

    (void)context;
    if (memory.fault == PUT_FAILS) {
        return hvd_fail(err, HVD_ERR_SYS, "the disk is full");
    }
    pthread_mutex_lock(&memory.lock);
    new_value = &memory.values[memory.count++];
    snprintf(new_value->key, sizeof(new_value->key), "%s", key);
    new_value->data = malloc(bytes);
    memcpy(new_value->data, value, bytes);
    new_value->bytes = bytes;
    if (is_of_all(key) && memory.fault == CUTS_ALL) {
        new_value->bytes--;
    } else if (is_of_all(key) && memory.fault == SPOILS_ALL) {
        *(char *)new_value->data ^= 1;
    }
    pthread_mutex_unlock(&memory.lock);
    return 0;
}

static int find(const char *key, void **value, size_t *bytes)
{
    for (int i = 0; i < memory.count; i++) {
        if (strcmp(memory.values[i].key, key) == 0) {
            *value = malloc(memory.values[i].bytes);
            memcpy(*value, memory.values[i].data, memory.values[i].bytes);
            *bytes = memory.values[i].bytes;
            return 0;
        }
    }
    return HVD_INPROGRESS;
}

static int get(void *context, const char *key, int timeout_ms, void **value,
               size_t *bytes, struct hvd_error *err)
{
    int status;

    (void)context;
    (void)timeout_ms;
    (void)err; /* fails without a text */
    if (memory.fault == GET_FAILS) {
        return -77;
    }
    if (memory.fault == HAS_EVERYTHING) {
        *value = calloc(1, 1);
        *bytes = 1;
        return 0;
    }
    if (memory.fault == HAS_NO_VALUES) {
        *bytes = 5;
        return 0;
    }
    pthread_mutex_lock(&memory.lock);
    memory.questions++;
    status = find(key, value, bytes);
    pthread_mutex_unlock(&memory.lock);
    return status;
}

static void empty_memory(enum fault fault)
{
    for (int i = 0; i < memory.count; i++) {
        free(memory.values[i].data);
    }
    memory.count = 0;
    memory.questions = 0;
    memory.fault = fault;
}

/* --- ranks -------------------------------------------------------------------------- */

struct rank {
    int rank;
    int size;
    int timeout_ms;
    int run; /* makes the records of one start differ from those of others */
    int status;
    struct hvd_error err;
    bool is_right;
};

/* Makes a record; lengths differ, and rank 1 has an empty one. */
static size_t record(char *out, int rank, int run)
{
    return rank == 1 ? 0
                     : (size_t)snprintf(out, 64, "%*d of run %d", rank + 1, rank, run);
}

static bool has_all(const struct rank *rank, const struct hvd_modex *modex)
{
    bool is_right = modex->rank == rank->rank && modex->size == rank->size;

    for (int i = 0; is_right && i < rank->size; i++) {
        char expected[64];
        size_t bytes = record(expected, i, rank->run);

        is_right = modex->blobs[i].bytes == bytes &&
                   memcmp(modex->blobs[i].data, expected, bytes) == 0;
    }
    return is_right;
}

static void *take_part(void *argument)
{
    struct rank *rank = argument;
    const struct hvd_boot_store store = {
        .rank = rank->rank, .size = rank->size, .put = put, .get = get};
    char mine[64] = "";
    const struct hvd_modex_query query = {
        .mine = {mine, record(mine, rank->rank, rank->run)},
        .store = &store,
        .timeout_ms = rank->timeout_ms,
    };
    struct hvd_modex modex = {0};

    rank->status = hvd_modex_store(&query, &modex, &rank->err);
    rank->is_right = rank->status == 0 && has_all(rank, &modex);
    hvd_modex_finish(&modex);
    return NULL;
}

/* Runs ranks first ... first + count - 1 of size at the same time. */
static struct rank *run(int first, int count, int size, int timeout_ms)
{
    static struct rank ranks[MOST_RANKS];
    static int runs;
    pthread_t threads[MOST_RANKS];

    runs++;
    for (int i = 0; i < count; i++) {
        ranks[i] = (struct rank){
            .rank = first + i, .size = size, .timeout_ms = timeout_ms, .run = runs};
        if (pthread_create(&threads[i], NULL, take_part, &ranks[i]) != 0) {
            printf("Bail out! no threads\n");
            exit(99);
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return ranks;
}

static bool all_right(const struct rank *ranks, int count)
{
    bool is_right = true;

    for (int i = 0; i < count; i++) {
        if (!ranks[i].is_right) {
            tap_note("rank %d: %d %s", ranks[i].rank, ranks[i].status, ranks[i].err.text);
        }
        is_right &= ranks[i].is_right;
    }
    return is_right;
}

static bool all_fail(const struct rank *ranks, int count, int status, const char *text)
{
    bool do_fail = true;

    for (int i = 0; i < count; i++) {
        bool fails = ranks[i].status == status && strstr(ranks[i].err.text, text) != NULL;

        if (!fails) {
            tap_note("rank %d: %d %s", ranks[i].rank, ranks[i].status, ranks[i].err.text);
        }
        do_fail &= fails;
    }
    return do_fail;
}

/* --- promises ----------------------------------------------------------------------- */

static void test_starts(void)
{
    bool is_right = true;

    for (int size = 1; size <= MOST_RANKS; size++) {
        is_right &= all_right(run(0, size, size, GENEROUS_MS), size);
    }
    tap_ok(is_right, "each_of_1_to_8_ranks_gets_the_records_of_all");
    for (int i = 0; i < 20; i++) {
        int size = i % 3 == 0 ? 2 : 3;

        is_right &= all_right(run(0, size, size, GENEROUS_MS), size);
    }
    tap_ok(is_right, "a_store_serves_again_with_other_sizes_too");
    memory.questions = 0;
    for (int i = 0; i < 100; i++) {
        is_right &= all_right(run(0, 1, 1, GENEROUS_MS), 1);
    }
    tap_ok(is_right && memory.questions == 0, "a_single_rank_needs_no_store");
}

static void test_missing_ranks(void)
{
    const char *missing = "3 of 4 ranks did not start within 0.3 s: ranks 1-3; ";

    empty_memory(SOUND);
    tap_ok(all_fail(run(0, 1, 4, 300), 1, HVD_ERR_TIMEOUT, missing),
           "missing_ranks_are_named");
    tap_ok(all_fail(run(1, 3, 4, GENEROUS_MS), 3, HVD_ERR_TIMEOUT, missing),
           "ranks_that_come_too_late_get_the_same_error");
    tap_ok(all_right(run(0, 4, 4, GENEROUS_MS), 4), "and_all_can_start_afterwards");
    tap_ok(all_fail(run(1, 2, 3, 300), 2, HVD_ERR_TIMEOUT, "rank 0 of 3 did not start"),
           "a_missing_rank_0_is_named_too");
}

static void test_unsound_stores(void)
{
    empty_memory(PUT_FAILS);
    tap_ok(
        all_fail(run(0, 2, 2, GENEROUS_MS), 2, HVD_ERR_SYS, "store cannot put hvd.2.1."),
        "a_store_that_cannot_put_ends_the_start");
    tap_ok(all_fail(run(1, 1, 2, GENEROUS_MS), 1, HVD_ERR_SYS, ": the disk is full"),
           "its_own_error_is_repeated");
    empty_memory(GET_FAILS);
    tap_ok(
        all_fail(run(0, 2, 2, GENEROUS_MS), 2, HVD_ERR_SYS, "store cannot get hvd.2.1."),
        "a_store_that_cannot_get_ends_the_start");
    empty_memory(HAS_EVERYTHING);
    tap_ok(all_fail(run(0, 2, 2, GENEROUS_MS), 2, HVD_ERR_MISMATCH,
                    "has a value for each key"),
           "a_store_that_has_every_key_is_detected");
    empty_memory(HAS_NO_VALUES);
    tap_ok(all_fail(run(0, 2, 2, GENEROUS_MS), 2, HVD_ERR_MISMATCH, "returned no value"),
           "a_value_that_is_promised_and_not_given_is_an_error");
    empty_memory(CUTS_ALL);
    tap_ok(all_fail(run(0, 3, 3, GENEROUS_MS) + 1, 2, HVD_ERR_MISMATCH,
                    "another version of hvd"),
           "a_value_that_is_too_short_is_an_error");
    empty_memory(SPOILS_ALL);
    tap_ok(all_fail(run(0, 3, 3, GENEROUS_MS) + 1, 2, HVD_ERR_MISMATCH,
                    "another version of hvd"),
           "a_changed_value_is_an_error");
}

static void test_arguments(void)
{
    struct hvd_boot_store store = {.rank = 0, .size = 2};
    const struct hvd_modex_query query = {.store = &store, .timeout_ms = GENEROUS_MS};
    struct hvd_modex modex;
    struct hvd_error err;

    empty_memory(SOUND);
    tap_ok(all_fail(run(3, 1, 3, GENEROUS_MS), 1, HVD_ERR_ARG, "rank 3 of 3: ") &&
               all_fail(run(-1, 1, 3, GENEROUS_MS), 1, HVD_ERR_ARG, "rank -1 of 3: ") &&
               all_fail(run(0, 1, 0, GENEROUS_MS), 1, HVD_ERR_ARG, "rank 0 of 0: "),
           "ranks_outside_of_the_job_are_refused");
    tap_ok(hvd_modex_store(&query, &modex, &err) == HVD_ERR_ARG &&
               strstr(err.text, "put and get") != NULL,
           "a_store_without_functions_is_refused");
}

/* Hides from rank 2 the record of its first start. Rank 2 then takes the values of that
 * start for those of its second one. */
static void test_foreign_values(void)
{
    empty_memory(SOUND);
    (void)run(0, 3, 3, GENEROUS_MS);
    for (int i = 0; i < memory.count; i++) {
        if (strcmp(memory.values[i].key, "hvd.3.1.2") == 0) {
            memory.values[i].key[0] = '-';
        }
    }
    tap_ok(all_fail(run(2, 1, 3, GENEROUS_MS), 1, HVD_ERR_MISMATCH,
                    "values of another job, or two processes have rank 2"),
           "values_of_another_job_are_detected");
}

int main(void)
{
    test_starts();
    test_missing_ranks();
    test_unsound_stores();
    test_arguments();
    test_foreign_values();
    empty_memory(SOUND);
    return tap_done();
}
