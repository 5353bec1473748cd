/* SPDX-License-Identifier: Apache-2.0 */
/* The modex through a store given by the program and shared by its ranks.
 *
 *     rank r                          rank 0
 *     puts hvd.SIZE.NUMBER.r          gets the records of all others
 *     gets hvd.SIZE.NUMBER.all        puts all records, or an error text
 *
 * So each rank gets one value, instead of one from each other rank. NUMBER is the first
 * number under which the store has nothing of this rank: a store keeps its values, and
 * old ones must never be taken for new ones. Ranks that have taken part in the same
 * starts find the same number. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu_binding/base/clock.h"
#include "pmix_boot/modex.h"
#include "pmix_boot/rendezvous/missing.h"

/* Changes with the layout that follows; a wrong byte order also makes it differ. */
#define ALL_MAGIC 0x68766461u

#define MOST_STARTS (1 << 30)
#define LONGEST_PAUSE_MS 50

struct session {
    const struct hvd_boot_store *store;
    int timeout_ms;
    int64_t deadline_ns;
    int number;
};

/* Followed by each record, as its length (uint64_t) and its bytes; or by the text of the
 * failure. */
struct all_header {
    uint32_t magic;
    int32_t status;
    uint64_t count; /* number of records, or bytes of the text */
};

struct key {
    char text[64];
};

static struct key own_key(const struct session *session, int rank, int number)
{
    struct key key;

    snprintf(key.text, sizeof(key.text), "hvd.%d.%d.%d", session->store->size, number,
             rank);
    return key;
}

static struct key all_key(const struct session *session)
{
    struct key key;

    snprintf(key.text, sizeof(key.text), "hvd.%d.%d.all", session->store->size,
             session->number);
    return key;
}

/* --- the program's functions --- */

static int put_value(const struct session *session, const struct key *key,
                     const struct hvd_blob *value, struct hvd_error *err)
{
    struct hvd_error cause = {0};

    if (session->store->put(session->store->context, key->text, value->data, value->bytes,
                            &cause) == 0) {
        return 0;
    }
    cause.text[sizeof(cause.text) - 1] = '\0';
    return hvd_fail(err, HVD_ERR_SYS, "the program's store cannot put %s%s%s", key->text,
                    cause.text[0] != '\0' ? ": " : "", cause.text);
}

/* Gets a value. Returns HVD_INPROGRESS if the store does not have it yet. The caller
 * frees out->data. */
static int get_value(const struct session *session, const struct key *key, int timeout_ms,
                     struct hvd_blob *out, struct hvd_error *err)
{
    struct hvd_blob value = {0};
    struct hvd_error cause = {0};
    int status = session->store->get(session->store->context, key->text, timeout_ms,
                                     &value.data, &value.bytes, &cause);

    if (status == HVD_INPROGRESS) {
        return status;
    }
    cause.text[sizeof(cause.text) - 1] = '\0';
    if (status != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "the program's store cannot get %s%s%s",
                        key->text, cause.text[0] != '\0' ? ": " : "", cause.text);
    }
    if (value.data == NULL) {
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "the program's store says that %s has %zu bytes, but returned "
                        "no value",
                        key->text, value.bytes);
    }
    *out = value;
    return 0;
}

static int left_ms(const struct session *session)
{
    int64_t left_ns = session->deadline_ns - hvd_clock_ns();

    return left_ns > 0 ? (int)(left_ns / 1000000) : 0;
}

/* Waits for a value until the deadline. A store that does not wait itself is asked again
 * after a growing pause. */
static int wait_for(const struct session *session, const struct key *key,
                    struct hvd_blob *out, struct hvd_error *err)
{
    for (int pause_ms = 1;; pause_ms *= 2) {
        int left = left_ms(session);
        int status = get_value(session, key, left, out, err);
        struct timespec pause = {0};

        if (status != HVD_INPROGRESS || left == 0) {
            return status;
        }
        left = left_ms(session);
        pause_ms = pause_ms < LONGEST_PAUSE_MS ? pause_ms : LONGEST_PAUSE_MS;
        pause.tv_nsec = 1000000L * (pause_ms < left ? pause_ms : left);
        nanosleep(&pause, NULL);
    }
}

/* --- the number of this start --- */

/* Returns 1 if this rank has a value under that number, 0 if not, or a negative
 * status. */
static int has_taken(const struct session *session, int number, struct hvd_error *err)
{
    struct key key = own_key(session, session->store->rank, number);
    struct hvd_blob value = {0};
    int status = get_value(session, &key, 0, &value, err);

    free(value.data);
    return status < 0 ? status : status == 0;
}

/* Finds the first number that this rank has not used. If it has used 1 ... n, this takes
 * about 2 log n questions. */
static int find_number(struct session *session, struct hvd_error *err)
{
    int taken = 0;
    int free_number = 1;
    int answer;

    while ((answer = has_taken(session, free_number, err)) == 1) {
        if (free_number == MOST_STARTS) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "the program's store has a value for each key, also for "
                            "keys that no rank has put");
        }
        taken = free_number;
        free_number *= 2;
    }
    while (answer >= 0 && free_number - taken > 1) {
        int middle = taken + (free_number - taken) / 2;

        answer = has_taken(session, middle, err);
        taken = answer == 1 ? middle : taken;
        free_number = answer == 0 ? middle : free_number;
    }
    session->number = free_number;
    return answer < 0 ? answer : 0;
}

/* --- rank 0 --- */

static int fail_missing(const struct session *session, const struct hvd_blob *blobs,
                        struct hvd_error *err)
{
    struct hvd_missing missing = {0};

    for (int rank = 0; rank < session->store->size; rank++) {
        if (blobs[rank].data == NULL) {
            hvd_missing_add(&missing, rank, "");
        }
    }
    return hvd_missing_fail(&missing, session->store->size, session->timeout_ms,
                            "each rank of the job has to call hvd_init_with (hvd.init) "
                            "with its own rank, this size and the same store",
                            err);
}

static int gather_blobs(const struct session *session, struct hvd_blob *blobs,
                        struct hvd_error *err)
{
    bool is_complete = true;

    for (int rank = 1; rank < session->store->size; rank++) {
        struct key key = own_key(session, rank, session->number);
        int status = wait_for(session, &key, &blobs[rank], err);

        if (status < 0) {
            return status;
        }
        is_complete = is_complete && status == 0 && blobs[rank].data != NULL;
    }
    return is_complete ? 0 : fail_missing(session, blobs, err);
}

static char *append_data(char *end, const void *data, size_t bytes)
{
    if (bytes > 0) {
        memcpy(end, data, bytes);
    }
    return end + bytes;
}

static int publish_all(const struct session *session, const struct hvd_blob *blobs,
                       struct hvd_error *err)
{
    const int size = session->store->size;
    const struct all_header header = {.magic = ALL_MAGIC, .count = (uint64_t)size};
    struct key key = all_key(session);
    struct hvd_blob all = {.bytes = sizeof(header)};
    char *end;
    int status;

    for (int rank = 0; rank < size; rank++) {
        all.bytes += sizeof(uint64_t) + blobs[rank].bytes;
    }
    all.data = malloc(all.bytes);
    if (all.data == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the records of %d ranks",
                        size);
    }
    end = append_data(all.data, &header, sizeof(header));
    for (int rank = 0; rank < size; rank++) {
        const uint64_t bytes = blobs[rank].bytes;

        end = append_data(end, &bytes, sizeof(bytes));
        end = append_data(end, blobs[rank].data, blobs[rank].bytes);
    }
    status = put_value(session, &key, &all, err);
    free(all.data);
    return status;
}

/* Tells the other ranks the failure at once, so that they need not wait for their time
 * limit. They do wait if the store cannot take the text. */
static void publish_failure(const struct session *session,
                            const struct hvd_error *failure)
{
    struct {
        struct all_header header;
        char text[sizeof(failure->text)];
    } message = {.header = {.magic = ALL_MAGIC,
                            .status = failure->status,
                            .count = strlen(failure->text)}};
    struct hvd_blob value = {&message, sizeof(message.header) + message.header.count};
    struct key key = all_key(session);

    memcpy(message.text, failure->text, message.header.count);
    (void)put_value(session, &key, &value, NULL);
}

static int lead(const struct session *session, struct hvd_blob *blobs,
                struct hvd_error *err)
{
    struct hvd_error failure = {0};
    int status = gather_blobs(session, blobs, &failure);

    if (status == 0) {
        status = publish_all(session, blobs, &failure);
    }
    if (status == 0) {
        return 0;
    }
    publish_failure(session, &failure);
    return hvd_fail(err, status, "%s", failure.text);
}

/* --- the other ranks --- */

static int fail_unreadable(const struct session *session, const struct hvd_blob *all,
                           struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "the %zu bytes that the program's store has for %s are not what rank "
                    "0 put there, or come from another version of hvd: install the same "
                    "hvd on all nodes",
                    all->bytes, all_key(session).text);
}

static int repeat_failure(const struct session *session, const struct hvd_blob *all,
                          const struct all_header *header, struct hvd_error *err)
{
    const char *text = (const char *)all->data + sizeof(*header);

    if (header->status > 0 || header->count != all->bytes - sizeof(*header)) {
        return fail_unreadable(session, all, err);
    }
    return hvd_fail(err, header->status, "%.*s", (int)header->count, text);
}

/* Copies the next record out of *rest, and leaves there what follows it. */
static int take_record(struct hvd_blob *rest, struct hvd_blob *out)
{
    uint64_t bytes;

    if (rest->bytes < sizeof(bytes)) {
        return HVD_ERR_MISMATCH;
    }
    memcpy(&bytes, rest->data, sizeof(bytes));
    if (bytes > rest->bytes - sizeof(bytes)) {
        return HVD_ERR_MISMATCH;
    }
    out->data = malloc(bytes > 0 ? bytes : 1);
    if (out->data == NULL) {
        return HVD_ERR_NOMEM;
    }
    out->bytes = bytes;
    (void)append_data(out->data, (const char *)rest->data + sizeof(bytes), bytes);
    rest->data = (char *)rest->data + sizeof(bytes) + bytes;
    rest->bytes -= sizeof(bytes) + bytes;
    return 0;
}

static int unpack_all(const struct session *session, const struct hvd_blob *all,
                      struct hvd_blob *blobs, struct hvd_error *err)
{
    const int size = session->store->size;
    struct all_header header = {0};
    struct hvd_blob rest;
    int status = 0;

    if (all->bytes >= sizeof(header)) {
        memcpy(&header, all->data, sizeof(header));
    }
    if (header.magic != ALL_MAGIC) {
        return fail_unreadable(session, all, err);
    }
    if (header.status != 0) {
        return repeat_failure(session, all, &header, err);
    }
    rest.data = (char *)all->data + sizeof(header);
    rest.bytes = all->bytes - sizeof(header);
    for (int rank = 0; rank < size && status == 0; rank++) {
        status = take_record(&rest, &blobs[rank]);
    }
    if (status == HVD_ERR_NOMEM) {
        return hvd_fail(err, status, "no memory for the records of %d ranks", size);
    }
    return status == 0 && rest.bytes == 0 && header.count == (uint64_t)size
               ? 0
               : fail_unreadable(session, all, err);
}

static int follow_root(const struct session *session, const struct hvd_blob *mine,
                       struct hvd_blob *blobs, struct hvd_error *err)
{
    const struct hvd_blob *seen = &blobs[session->store->rank];
    struct key key = all_key(session);
    struct hvd_blob all = {0};
    int status = wait_for(session, &key, &all, err);

    if (status == HVD_INPROGRESS) {
        return hvd_fail(err, HVD_ERR_TIMEOUT,
                        "rank 0 of %d did not start within %d s, or the program's store "
                        "is not the one that rank 0 uses",
                        session->store->size, session->timeout_ms / 1000);
    }
    if (status == 0) {
        status = unpack_all(session, &all, blobs, err);
    }
    free(all.data);
    if (status == 0 && (seen->data == NULL || seen->bytes != mine->bytes ||
                        memcmp(seen->data, mine->data, mine->bytes) != 0)) {
        status = hvd_fail(err, HVD_ERR_MISMATCH,
                          "the program's store has values of another job, or two "
                          "processes have rank %d: give each job a store, a folder or a "
                          "prefix of its own, and each process its own rank",
                          session->store->rank);
    }
    return status;
}

/* --- the modex --- */

static int check_store(const struct hvd_boot_store *store, struct hvd_error *err)
{
    if (store->size < 1 || store->rank < 0 || store->rank >= store->size) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "rank %d of %d: there has to be at least one rank, and ranks are "
                        "numbered from 0 to size - 1",
                        store->rank, store->size);
    }
    if (store->size > 1 && (store->put == NULL || store->get == NULL)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the store needs put and get for a job of %d ranks", store->size);
    }
    return 0;
}

static int copy_mine(const struct hvd_blob *mine, struct hvd_blob *out)
{
    out->data = malloc(mine->bytes);
    if (out->data == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(out->data, mine->data, mine->bytes);
    out->bytes = mine->bytes;
    return 0;
}

static int run_session(struct session *session, const struct hvd_blob *mine,
                       struct hvd_blob *blobs, struct hvd_error *err)
{
    const int rank = session->store->rank;
    struct key key;
    int status = find_number(session, err);

    if (status == 0) {
        key = own_key(session, rank, session->number);
        status = put_value(session, &key, mine, err);
    }
    if (status < 0 || rank > 0) {
        return status < 0 ? status : follow_root(session, mine, blobs, err);
    }
    if (copy_mine(mine, &blobs[0]) < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a record of %zu bytes",
                        mine->bytes);
    }
    return lead(session, blobs, err);
}

int hvd_modex_store(const struct hvd_modex_query *query, struct hvd_modex *out,
                    struct hvd_error *err)
{
    const struct hvd_boot_store *store = query->store;
    struct session session = {
        .store = store,
        .timeout_ms = query->timeout_ms,
        .deadline_ns = hvd_clock_ns() + (int64_t)query->timeout_ms * 1000000,
    };
    struct hvd_blob *blobs;
    int status = check_store(store, err);

    if (status < 0) {
        return status;
    }
    if (store->size == 1) {
        return hvd_modex_single(query, out, err);
    }
    blobs = calloc((size_t)store->size, sizeof(*blobs));
    if (blobs == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", store->size);
    }
    status = run_session(&session, &query->mine, blobs, err);
    if (status < 0) {
        hvd_blobs_free(blobs, store->size);
        return status;
    }
    *out = (struct hvd_modex){.rank = store->rank, .size = store->size, .blobs = blobs};
    return 0;
}
