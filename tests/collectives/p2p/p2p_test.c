/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from one rank to another, of all sizes and in all orders. Runs as each rank of
 * a job; rank 0 prints TAP. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/report.h"

enum {
    MANY = 10000,
    THREADS = 4,
    LIMIT_S = 60, /* far longer than a loaded machine needs */
};

static int rank, size;
static struct hvd_error err;

/* --- calls that must succeed --- */

static struct hvd_request *send_bytes(const void *data, int64_t bytes, int dest,
                                      int64_t tag)
{
    const struct hvd_tensor tensor = call_tensor(NULL, HVD_UINT8, &bytes, 1, data, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error own = {0};

    if (hvd_send_start(&tensor, dest, tag, 0, &request, &own) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, own.text);
        exit(1);
    }
    return request;
}

static struct hvd_request *receive_bytes(void *data, int64_t bytes, int source,
                                         int64_t tag)
{
    const struct hvd_tensor tensor = call_tensor("in", HVD_UINT8, &bytes, 1, NULL, data);
    struct hvd_request *request = NULL;
    struct hvd_error own = {0};

    if (hvd_recv_start(&tensor, source, tag, 0, &request, &own) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, own.text);
        exit(1);
    }
    return request;
}

/* Returns the rank that sent the message, if this was a receive. */
static int finish(struct hvd_request *request)
{
    struct hvd_error own = {0};
    int source;

    call_finish(0, &request, &own);
    source = hvd_request_source(request);
    hvd_request_free(request);
    return source;
}

static void fill(unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (unsigned char)(i * 31 + (i >> 8) + seed);
    }
}

static bool is_filled(const unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != (unsigned char)(i * 31 + (i >> 8) + seed)) {
            return false;
        }
    }
    return true;
}

/* --- sizes and types --- */

/* Sends to the next rank and receives from the one before. Returns whether all was
 * right. */
static bool shift_bytes(int64_t bytes, bool receives_first)
{
    unsigned char *out = malloc((size_t)bytes + 1), *in = malloc((size_t)bytes + 1);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    struct hvd_request *received = NULL, *sent;
    bool ok;

    fill(out, (size_t)bytes, (unsigned)rank);
    in[bytes] = 77;
    if (receives_first) {
        received = receive_bytes(in, bytes, before, bytes);
    }
    sent = send_bytes(out, bytes, next, bytes);
    if (!receives_first) {
        received = receive_bytes(in, bytes, before, bytes);
    }
    ok = finish(received) == before;
    finish(sent);
    ok = ok && is_filled(in, (size_t)bytes, (unsigned)before) && in[bytes] == 77;
    free(out);
    free(in);
    return ok;
}

static void test_sizes(void)
{
    static const int64_t sizes[] = {0,     1,     3,     64,      4096,    16383,
                                    16384, 16385, 65536, 1000003, 5 << 20, 64 << 20};

    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
        char what[64];

        snprintf(what, sizeof(what), "%" PRId64 " bytes around the ring", sizes[i]);
        report(shift_bytes(sizes[i], i % 2 == 0) && shift_bytes(sizes[i], i % 2 != 0),
               "%s", what);
    }
}

static bool shift_type(enum hvd_dtype dtype)
{
    const int64_t shape[] = {3, 7};
    const size_t bytes = 21 * hvd_dtype_bytes(dtype);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char out[21 * 8], in[21 * 8];
    const struct hvd_tensor from = call_tensor(NULL, dtype, shape, 2, out, NULL);
    const struct hvd_tensor to = call_tensor(NULL, dtype, shape, 2, NULL, in);
    struct hvd_request *sent = NULL, *received = NULL;

    fill(out, bytes, (unsigned)rank);
    call_finish(hvd_send_start(&from, next, dtype, 0, &sent, &err), &sent, &err);
    call_finish(hvd_recv_start(&to, before, dtype, 0, &received, &err), &received, &err);
    hvd_request_free(sent);
    hvd_request_free(received);
    return is_filled(in, bytes, (unsigned)before);
}

static void test_types(void)
{
    bool ok = true;

    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        ok = shift_type((enum hvd_dtype)dtype) && ok;
    }
    report(ok, "tensors of all types");
}

static void test_ping_pong(void)
{
    const int other = rank ^ 1;
    bool ok = true;

    for (int i = 0; i < 1000 && other < size; i++) {
        int number = i * 2, answer = -1;

        if (rank < other) {
            finish(send_bytes(&number, sizeof(number), other, 5));
            finish(receive_bytes(&answer, sizeof(answer), other, 5));
            ok = ok && answer == i * 2 + 1;
        } else {
            finish(receive_bytes(&answer, sizeof(answer), other, 5));
            answer++;
            finish(send_bytes(&answer, sizeof(answer), other, 5));
        }
    }
    report(ok, "a thousand small messages are answered");
}

/* --- orders --- */

static void test_order(void)
{
    static int in[100], out[100];
    struct hvd_request *requests[200];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    bool ok = true;

    /* messages with tag 0 and tag 1 alternate */
    for (int i = 0; i < 100; i++) {
        out[i] = i;
        requests[i] = send_bytes(&out[i], sizeof(int), next, i % 2);
    }
    /* receives all messages with tag 1 first, then all with tag 0 */
    for (int i = 0; i < 100; i++) {
        in[i] = -1;
        requests[100 + i] = receive_bytes(&in[i], sizeof(int), before, i < 50 ? 1 : 0);
    }
    for (int i = 0; i < 200; i++) {
        finish(requests[i]);
    }
    for (int i = 0; i < 100; i++) {
        ok = ok && in[i] == (i < 50 ? 2 * i + 1 : 2 * (i - 50));
    }
    report(
        ok,
        "messages with the same tag stay in order, those with different tags need not");
}

static void test_mixed_sizes(void)
{
    enum {
        COUNT = 40
    };
    static unsigned char *in[COUNT], *out[COUNT];
    struct hvd_request *requests[2 * COUNT];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    bool ok = true;

    for (int i = 0; i < COUNT; i++) {
        const int64_t bytes = i % 2 == 0 ? 100 : 100000 + i;

        in[i] = malloc((size_t)bytes);
        out[i] = malloc((size_t)bytes);
        fill(out[i], (size_t)bytes, (unsigned)(i + rank));
        requests[i] = send_bytes(out[i], bytes, next, 9);
    }
    for (int i = 0; i < COUNT; i++) {
        requests[COUNT + i] =
            receive_bytes(in[i], i % 2 == 0 ? 100 : 100000 + i, before, 9);
    }
    for (int i = 2 * COUNT - 1; i >= 0; i--) {
        finish(requests[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        const size_t bytes = i % 2 == 0 ? 100 : 100000 + (size_t)i;

        ok = ok && is_filled(in[i], bytes, (unsigned)(i + before));
        free(in[i]);
        free(out[i]);
    }
    report(ok, "small messages do not overtake large ones with the same tag");
}

/* Every rank, rank 0 included, sends three messages to rank 0. */
static void test_any_source(void)
{
    int *seen = calloc((size_t)size, sizeof(seen[0]));
    bool ok = true;

    for (int i = 0; i < 3; i++) {
        const int values[2] = {rank, i};

        finish(send_bytes(values, sizeof(values), 0, 3));
    }
    for (int i = 0; rank == 0 && i < 3 * size; i++) {
        int values[2] = {0, -1};
        int source = finish(receive_bytes(values, sizeof(values), HVD_ANY_SOURCE, 3));

        ok = ok && source == values[0] && values[1] == seen[source]++;
    }
    free(seen);
    report(ok, "a receive from any rank tells which rank sent the message");
}

/* --- many --- */

/* Sends so many messages before the receives start that they fill the window for small
 * messages (HVD_EAGER_WINDOW). */
static void test_many(bool backwards)
{
    static int out[MANY], in[MANY];
    static struct hvd_request *sends[MANY], *receives[MANY];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    bool ok = true;

    for (int i = 0; i < MANY; i++) {
        out[i] = i;
        sends[i] = send_bytes(&out[i], sizeof(int), next, backwards ? MANY - 1 - i : i);
    }
    call_barrier();
    for (int i = 0; i < MANY; i++) {
        in[i] = -1;
        receives[i] = receive_bytes(&in[i], sizeof(int), before, i);
    }
    for (int i = 0; i < MANY; i++) {
        finish(receives[i]);
        finish(sends[i]);
        ok = ok && in[i] == (backwards ? MANY - 1 - i : i);
    }
    report(ok, backwards
                   ? "10,000 messages arrive before their receives, in reverse order"
                   : "10,000 messages arrive before their receives");
}

/* Every rank sends a large message to every rank, itself included. It waits for its sends
 * first, then for its receives. */
static void test_everyone(void)
{
    const size_t bytes = 300000;
    unsigned char *out = malloc(bytes), *in = malloc(bytes * (size_t)size);
    struct hvd_request **requests = calloc(2 * (size_t)size, sizeof(*requests));
    bool ok = true;

    fill(out, bytes, (unsigned)rank);
    for (int i = 0; i < size; i++) {
        requests[i] = receive_bytes(in + (size_t)i * bytes, (int64_t)bytes, i, 1);
        requests[size + i] = send_bytes(out, (int64_t)bytes, i, 1);
    }
    for (int i = 2 * size - 1; i >= 0; i--) {
        finish(requests[i]);
    }
    for (int i = 0; i < size; i++) {
        ok = ok && is_filled(in + (size_t)i * bytes, bytes, (unsigned)i);
    }
    report(ok, "every rank sends to every rank, itself included");
    free(requests);
    free(in);
    free(out);
}

/* A rank sends to itself. The send of the small message ends before its receive
 * starts. */
static void test_self(void)
{
    unsigned char large[50000], got[50000] = {0};
    struct hvd_request *request;
    int number = 7, other = 0;

    fill(large, sizeof(large), 3);
    finish(send_bytes(&number, sizeof(number), rank, 2));
    finish(receive_bytes(&other, sizeof(other), rank, 2));
    request = send_bytes(large, sizeof(large), rank, 2);
    finish(receive_bytes(got, sizeof(got), HVD_ANY_SOURCE, 2));
    finish(request);
    report(other == 7 && is_filled(got, sizeof(got), 3), "a rank sends to itself");
}

/* --- beside other work --- */

static void *exchange(void *arg)
{
    const int *thread = arg;
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    static _Thread_local unsigned char in[40000], out[40000];
    intptr_t ok = 1;

    for (int i = 0; i < 100; i++) {
        const int64_t bytes = i % 3 == 0 ? 40000 : i;
        struct hvd_request *received = receive_bytes(in, bytes, before, 1000 + *thread);

        fill(out, (size_t)bytes, (unsigned)(i + *thread));
        finish(send_bytes(out, bytes, next, 1000 + *thread));
        finish(received);
        ok = ok && is_filled(in, (size_t)bytes, (unsigned)(i + *thread));
    }
    return (void *)ok;
}

/* Waits until the request has ended, without hvd_wait, which might do the work itself. */
static bool has_come(struct hvd_request *request)
{
    const time_t limit = time(NULL) + LIMIT_S;
    int status;

    while ((status = hvd_wait_for(request, 0, &err)) == HVD_INPROGRESS &&
           time(NULL) < limit) {
        usleep(1000);
    }
    return status == 0;
}

static void test_unattended(int64_t bytes, const char *what)
{
    static unsigned char in[1 << 20], out[1 << 20];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    bool ok = true;

    for (int i = 0; i < 5; i++) {
        struct hvd_request *received = receive_bytes(in, bytes, before, i);
        struct hvd_request *sent;

        fill(out, (size_t)bytes, (unsigned)(rank + i));
        sent = send_bytes(out, bytes, next, i);
        ok = has_come(received) && has_come(sent) &&
             is_filled(in, (size_t)bytes, (unsigned)(before + i)) && ok;
        finish(received);
        finish(sent);
    }
    report(ok, "%s", what);
}

static bool reduce_some(void)
{
    static float values[70000];
    const int64_t shape[] = {70000};
    const struct hvd_tensor tensor =
        call_tensor("sum", HVD_FLOAT32, shape, 1, values, values);
    bool ok = true;

    for (int i = 0; i < 30; i++) {
        values[69999] = 1;
        call_allreduce(&tensor, 1, HVD_SUM, 1, 1, 0);
        ok = ok && values[69999] == (float)size;
    }
    return ok;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    bool ok;

    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, exchange, &numbers[i]);
    }
    ok = reduce_some();
    for (int i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        ok = ok && result != NULL;
    }
    report(ok, "four threads send at once, beside allreduces");
}

/* The first and the last rank exchange messages with the same tag in two process sets,
 * the global one and `set`. */
static bool exchange_in_sets(int set)
{
    const int other = rank == 0 ? size - 1 : 0;
    const int values[2] = {rank * 2, rank * 2 + 1};
    const int64_t one = 1;
    int in[2] = {0, 0};
    const struct hvd_tensor of_set =
        call_tensor(NULL, HVD_INT32, &one, 1, &values[1], &in[1]);
    struct hvd_request *sent = NULL, *received = NULL;

    finish(send_bytes(&values[0], sizeof(int), other, 6));
    call_finish(hvd_send_start(&of_set, other, 6, set, &sent, &err), &sent, &err);
    call_finish(hvd_recv_start(&of_set, HVD_ANY_SOURCE, 6, set, &received, &err),
                &received, &err);
    finish(receive_bytes(&in[0], sizeof(int), other, 6));
    hvd_request_free(sent);
    hvd_request_free(received);
    return in[0] == other * 2 && in[1] == other * 2 + 1;
}

static void test_sets(void)
{
    const int ranks[] = {0, size - 1};
    bool ok = true;
    int set;

    if (size <= 2) {
        return;
    }
    set = call_set_add(ranks, 2);
    if (rank == 0 || rank == size - 1) {
        ok = exchange_in_sets(set);
    }
    report(ok, "messages of different sets do not mix");
}

/* --- wrong calls --- */

/* Returns the status of a request that fails; its text is in err. */
static int end_of(struct hvd_request *request)
{
    int status;

    err = (struct hvd_error){0};
    status = hvd_wait(request, &err);
    hvd_request_free(request);
    return status;
}

static bool tells_sizes(int64_t sent, int64_t received)
{
    char from[64], to[64];

    snprintf(from, sizeof(from), "sends %" PRId64 " bytes (uint8)", sent);
    snprintf(to, sizeof(to), "expects %" PRId64 " bytes (uint8)", received);
    return strstr(err.text, from) != NULL && strstr(err.text, to) != NULL &&
           strstr(err.text, "tag 11") != NULL;
}

static void test_mismatch(void)
{
    static unsigned char out[200000], in[200000];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    struct hvd_request *sent = send_bytes(out, 200000, next, 11);
    struct hvd_request *received = receive_bytes(in, 199999, before, 11);
    bool ok = end_of(received) == HVD_ERR_MISMATCH && tells_sizes(200000, 199999);

    ok = ok && end_of(sent) == HVD_ERR_MISMATCH && tells_sizes(200000, 199999);
    report(ok, "sizes of a large message that differ: both requests fail, and the errors "
               "give both sizes");
    received = receive_bytes(in, 5, before, 11);
    sent = send_bytes(out, 6, next, 11);
    ok = end_of(received) == HVD_ERR_MISMATCH && tells_sizes(6, 5) && end_of(sent) == 0;
    report(ok, "sizes of a small message that differ: only the receive fails");
    report(shift_bytes(100, true) && shift_bytes(100000, true),
           "the job continues after such errors");
}

static int start_wrong(const struct hvd_tensor *tensor, int other, int set)
{
    struct hvd_request *request = NULL;
    int status;

    err = (struct hvd_error){0};
    status = hvd_send_start(tensor, other, 0, set, &request, &err);
    if (rank == 0) {
        tap_note("%s", err.text);
    }
    return status;
}

static void test_arguments(void)
{
    const int64_t one = 1;
    struct hvd_tensor tensor = call_tensor(NULL, HVD_FLOAT32, &one, 1, &one, NULL);
    struct hvd_request *request = NULL;
    bool ok = start_wrong(&tensor, size, 0) == HVD_ERR_ARG &&
              start_wrong(&tensor, HVD_ANY_SOURCE, 0) == HVD_ERR_ARG &&
              start_wrong(&tensor, 0, 99) == HVD_ERR_ARG &&
              hvd_recv_start(&tensor, -2, 0, 0, &request, &err) == HVD_ERR_ARG &&
              hvd_recv_start(&tensor, rank, 0, 0, &request, &err) == HVD_ERR_ARG;

    report(ok, "wrong ranks, sets and memory are refused");
    tensor.device = HVD_DEVICE_CPU - 1;
    ok = start_wrong(&tensor, 0, 0) == HVD_ERR_ARG;
    tensor.device = HVD_DEVICE_CPU;
    tensor.dtype = HVD_DTYPE_COUNT;
    report(ok && start_wrong(&tensor, 0, 0) == HVD_ERR_ARG,
           "unknown devices and dtypes are refused");
}

/* A message that nobody has received and a receive that gets no message end at
 * shutdown. */
static void test_shutdown(void)
{
    static unsigned char out[100000], in[4];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    struct hvd_request *sent = send_bytes(out, sizeof(out), next, 21);
    struct hvd_request *received = receive_bytes(in, sizeof(in), before, 22);
    bool ok;

    call_barrier();
    hvd_shutdown();
    ok = end_of(sent) == HVD_ERR_SHUTDOWN && end_of(received) == HVD_ERR_SHUTDOWN;
    report_alone(ok, "a send and a receive that are under way end at shutdown");
}

int main(void)
{
    rank = report_init();
    size = hvd_size();
    test_sizes();
    test_types();
    test_ping_pong();
    test_order();
    test_mixed_sizes();
    test_any_source();
    test_many(false);
    test_many(true);
    test_everyone();
    test_self();
    test_unattended(100, "small messages arrive without a call of hvd_wait");
    test_unattended(1 << 20, "large messages arrive without a call of hvd_wait");
    test_threads();
    test_sets();
    test_mismatch();
    test_arguments();
    test_shutdown();
    return report_done();
}
