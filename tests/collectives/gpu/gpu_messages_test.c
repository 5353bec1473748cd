/* SPDX-License-Identifier: Apache-2.0 */
/* Tests messages of GPU tensors: they wait for the caller's stream, the stream waits for
 * them, they arrive in order, also between hosts and GPUs. Runs as each rank of a job. */
#include <string.h>
#include <time.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"

enum {
    MOST = 5 << 20, /* bytes */
    LATE = 60, /* number of copies that delay later work on a stream */
    MANY = 100,
};

static int rank, size, next, before;
static void *stream, *other_stream;
static unsigned char *on_host, *back; /* pinned */
static char *sent_memory, *got_memory, *scrap;

/* --- calls that must succeed --- */

static struct hvd_tensor tensor_of(const int64_t *bytes, const void *input, void *output,
                                   bool is_on_gpu)
{
    return is_on_gpu ? gpu_tensor(NULL, HVD_UINT8, bytes, 1, input, output, stream)
                     : call_tensor("on the host", HVD_UINT8, bytes, 1, input, output);
}

static struct hvd_request *checked(int status, struct hvd_request *request,
                                   const struct hvd_error *err)
{
    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err->text);
        exit(1);
    }
    return request;
}

static struct hvd_request *send(const void *data, int64_t bytes, int to, int64_t tag,
                                bool is_on_gpu)
{
    struct hvd_tensor tensor = tensor_of(&bytes, data, NULL, is_on_gpu);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_send_start(&tensor, to, tag, 0, &request, &err);

    return checked(status, request, &err);
}

static struct hvd_request *receive(void *data, int64_t bytes, int from, int64_t tag,
                                   bool is_on_gpu)
{
    struct hvd_tensor tensor = tensor_of(&bytes, NULL, data, is_on_gpu);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_recv_start(&tensor, from, tag, 0, &request, &err);

    return checked(status, request, &err);
}

/* Makes the stream wait for the request. For a receive, returns the rank that sent the
 * message. */
static int follow(struct hvd_request *request)
{
    struct hvd_error err = {0};
    int source;

    checked(hvd_wait_on(request, stream, -1, &err), request, &err);
    source = hvd_request_source(request);
    hvd_request_free(request);
    return source;
}

static void delay(void *which)
{
    for (int i = 0; i < LATE; i++) {
        gpu_copy(scrap, on_host, 4096, which);
    }
}

static unsigned char value_at(int64_t i, int seed)
{
    return (unsigned char)(i * 31 + (i >> 8) + seed * 7);
}

static void fill(unsigned char *data, int64_t bytes, int seed)
{
    for (int64_t i = 0; i < bytes; i++) {
        data[i] = value_at(i, seed);
    }
}

static bool is_filled(const unsigned char *data, int64_t bytes, int seed)
{
    for (int64_t i = 0; i < bytes; i++) {
        if (data[i] != value_at(i, seed)) {
            fprintf(stderr, "# rank %d: byte %lld of %lld is %d, not %d\n", rank,
                    (long long)i, (long long)bytes, data[i], value_at(i, seed));
            return false;
        }
    }
    return true;
}

/* --- streams --- */

/* Sends to the next rank and receives from the previous one. Earlier work on the stream
 * writes the sent data and reads the old received data; this work is delayed. */
static bool shift(int64_t bytes, int round)
{
    struct hvd_request *received, *sent;
    bool good;

    gpu_finish(stream);
    fill(on_host, bytes, 100 + round);
    gpu_copy(got_memory, on_host, (size_t)bytes, stream);
    gpu_finish(stream);
    fill(on_host, bytes, rank + round);
    delay(stream);
    gpu_copy(sent_memory, on_host, (size_t)bytes, stream);
    gpu_copy(back, got_memory, (size_t)bytes, stream);
    received = receive(got_memory, bytes, before, bytes, true);
    sent = send(sent_memory, bytes, next, bytes, true);
    good = follow(received) == before;
    gpu_copy(back + bytes, got_memory, (size_t)bytes, stream);
    follow(sent);
    gpu_finish(stream);
    return good && is_filled(back, bytes, 100 + round) &&
           is_filled(back + bytes, bytes, before + round);
}

static void test_sizes(void)
{
    static const int64_t sizes[] = {0, 1, 16384, 16385, 1000003, MOST};
    bool good = true;

    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
        good = shift(sizes[i], i) && good;
    }
    report(good, "messages of all sizes wait for the stream, and the stream for them");
}

static void test_host_waits(void)
{
    bool good = true;

    for (int i = 0; i < 10; i++) {
        struct hvd_request *received, *sent;
        struct hvd_error err = {0};

        fill(on_host, 50000, rank + i);
        gpu_copy(sent_memory, on_host, 50000, stream);
        received = receive(got_memory, 50000, before, 1, true);
        sent = send(sent_memory, 50000, next, 1, true);
        good = hvd_wait(received, &err) == 0 && hvd_request_source(received) == before &&
               hvd_wait(sent, &err) == 0 && good;
        hvd_request_free(received);
        hvd_request_free(sent);
        /* `other_stream` does not wait for the message */
        gpu_copy(back, got_memory, 50000, other_stream);
        gpu_finish(other_stream);
        good = is_filled(back, 50000, before + i) && good;
        gpu_finish(stream);
    }
    report(good, "hvd_wait of a receive returns when the tensor has the message");
}

static void test_unattended(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct hvd_request *received = receive(got_memory, 300000, before, 2, true);
    struct hvd_request *sent;

    fill(on_host, 300000, rank);
    delay(stream);
    gpu_copy(sent_memory, on_host, 300000, stream);
    sent = send(sent_memory, 300000, next, 2, true);
    while (hvd_wait_for(received, 0, NULL) == HVD_INPROGRESS ||
           hvd_wait_for(sent, 0, NULL) == HVD_INPROGRESS) {
        nanosleep(&moment, NULL);
    }
    gpu_copy(back, got_memory, 300000, other_stream);
    gpu_finish(other_stream);
    report(is_filled(back, 300000, before) && follow(received) == before,
           "messages arrive while no thread waits for them");
    follow(sent);
}

/* --- order --- */

/* The data of the first message is late. The second message is in host memory and could
 * be sent at once. */
static void test_order(void)
{
    static unsigned char second[100], got_second[100], third[50], got_third[50];
    struct hvd_request *requests[6];
    bool good;

    fill(on_host, 100, rank);
    fill(second, 100, rank + 1);
    fill(third, 50, rank + 2);
    delay(stream);
    gpu_copy(sent_memory, on_host, 100, stream);
    requests[0] = send(sent_memory, 100, next, 3, true);
    requests[1] = send(second, 100, next, 3, false);
    requests[2] = send(third, 50, next, 4, false);
    requests[3] = receive(got_third, 50, before, 4, false);
    requests[4] = receive(got_memory, 100, before, 3, true);
    requests[5] = receive(got_second, 100, before, 3, false);
    for (int i = 5; i >= 0; i--) {
        follow(requests[i]);
    }
    gpu_copy(back, got_memory, 100, stream);
    gpu_finish(stream);
    good = is_filled(back, 100, before) && is_filled(got_second, 100, before + 1) &&
           is_filled(got_third, 50, before + 2);
    report(good,
           "a message from the host does not overtake one from the GPU with its tag");
}

static void test_mixed(void)
{
    bool good = true;

    for (int i = 0; i < 4; i++) {
        const int64_t bytes = i < 2 ? 2000 : 200000;
        const bool sends_gpu = i % 2 == 0;
        struct hvd_request *sent, *received;

        fill(on_host, bytes, rank + i);
        gpu_copy(sent_memory, on_host, (size_t)bytes, stream);
        sent = send(sends_gpu ? (void *)sent_memory : on_host, bytes, next, 5, sends_gpu);
        received =
            receive(sends_gpu ? (void *)back : got_memory, bytes, before, 5, !sends_gpu);
        follow(sent);
        follow(received);
        if (!sends_gpu) {
            gpu_copy(back, got_memory, (size_t)bytes, stream);
        }
        gpu_finish(stream);
        good = is_filled(back, bytes, before + i) && good;
    }
    report(good, "messages go from GPU to host, and from host to GPU");
}

static void test_many(void)
{
    struct hvd_request *sends[MANY], *receives[MANY];
    bool good = true;

    fill(on_host, 1000 * MANY, rank);
    gpu_copy(sent_memory, on_host, 1000 * MANY, stream);
    for (int i = 0; i < MANY; i++) {
        sends[i] = send(sent_memory + 1000 * i, 1000, next, i, true);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        receives[i] = receive(got_memory + 1000 * i, 1000, before, i, true);
    }
    for (int i = 0; i < MANY; i++) {
        good = follow(receives[i]) == before && good;
        follow(sends[i]);
    }
    gpu_copy(back, got_memory, 1000 * MANY, stream);
    gpu_finish(stream);
    report(good && is_filled(back, 1000 * MANY, before),
           "a hundred messages at once are received in reverse order");
}

static void test_any_source(void)
{
    bool good = true;
    struct hvd_request *sent;

    memset(on_host, rank + 1, 100);
    gpu_copy(sent_memory, on_host, 100, stream);
    sent = send(sent_memory, 100, 0, 6, true);
    for (int i = 0; rank == 0 && i < size; i++) {
        int source = follow(receive(got_memory, 100, HVD_ANY_SOURCE, 6, true));

        gpu_copy(back, got_memory, 100, stream);
        gpu_finish(stream);
        good = source >= 0 && back[0] == source + 1 && back[99] == source + 1 && good;
    }
    follow(sent);
    report(good,
           "messages arrive from any rank, including oneself, with the sender's rank");
}

static void test_sets(void)
{
    const int ranks[] = {0, size - 1};
    const int64_t bytes = 70000;
    const int peer = rank == 0 ? size - 1 : 0;
    struct hvd_tensor out = tensor_of(&bytes, sent_memory, NULL, true);
    struct hvd_tensor in = tensor_of(&bytes, NULL, got_memory, true);
    struct hvd_request *request = NULL, *received = NULL;
    struct hvd_error err = {0};
    bool good = true;
    int set;

    if (size <= 2) {
        return;
    }
    set = call_set_add(ranks, 2);
    if (rank == 0 || rank == size - 1) {
        fill(on_host, bytes, rank);
        gpu_copy(sent_memory, on_host, (size_t)bytes, stream);
        good = hvd_recv_start(&in, peer, 7, set, &received, &err) == 0 &&
               hvd_send_start(&out, peer, 7, set, &request, &err) == 0;
        good = good && follow(received) == peer;
        follow(request);
        gpu_copy(back, got_memory, (size_t)bytes, stream);
        gpu_finish(stream);
        good = good && is_filled(back, bytes, peer);
    }
    report(good, "messages arrive in a process set");
}

/* Sends and receives while an allreduce, by NCCL or through the host, is in flight on the
 * same stream. */
static void test_beside_collectives(void)
{
    const int64_t count = 20000;
    int16_t *sums = gpu_memory(20000 * 4);
    struct hvd_tensor floats =
        gpu_tensor("floats", HVD_FLOAT32, &count, 1, sums, sums, stream);
    bool good = true;

    memset(on_host, 0, 80000);
    gpu_copy(sums, on_host, 80000, stream);
    gpu_finish(stream);
    for (int i = 0; i < 10; i++) {
        struct hvd_request *requests[3] = {NULL};
        struct hvd_error err = {0};

        floats.dtype = i % 2 == 0 ? HVD_FLOAT32 : HVD_INT16;
        fill(on_host, 40000, rank + i);
        gpu_copy(sent_memory, on_host, 40000, stream);
        requests[0] = receive(got_memory, 40000, before, 8, true);
        checked(hvd_allreduce_start(&floats, 1, HVD_SUM, 1, 1, 0, &requests[1], &err),
                requests[1], &err);
        requests[2] = send(sent_memory, 40000, next, 8, true);
        for (int j = 0; j < 3; j++) {
            follow(requests[j]);
        }
        gpu_copy(back, got_memory, 40000, stream);
        gpu_finish(stream);
        good = is_filled(back, 40000, before + i) && good;
    }
    report(good, "messages arrive beside collectives");
}

/* --- mistakes --- */

static int end_of(struct hvd_request *request, struct hvd_error *err)
{
    int status = hvd_wait_on(request, stream, -1, err);

    hvd_request_free(request);
    return status;
}

static void test_mismatch(void)
{
    struct hvd_error here = {0}, there = {0};
    struct hvd_request *sent = send(sent_memory, 200000, next, 9, true);
    struct hvd_request *received = receive(got_memory, 199999, before, 9, true);
    bool good = end_of(received, &here) == HVD_ERR_MISMATCH &&
                end_of(sent, &there) == HVD_ERR_MISMATCH;

    report(good && strstr(here.text, "sends 200000 bytes (uint8)") != NULL &&
               strstr(there.text, "expects 199999 bytes (uint8)") != NULL,
           "different sizes: both requests fail and name both sizes");
    report(shift(100000, 3), "the job continues after that");
}

/* A message that no rank receives, and a receive without a message, end with the job. */
static void test_shutdown(void)
{
    struct hvd_request *sent = send(sent_memory, 100000, next, 10, true);
    struct hvd_request *received = receive(got_memory, 100000, before, 11, true);
    struct hvd_error err = {0};

    call_barrier();
    hvd_shutdown();
    report_alone(end_of(sent, &err) == HVD_ERR_SHUTDOWN &&
                     end_of(received, &err) == HVD_ERR_SHUTDOWN,
                 "messages under way end at shutdown");
}

int main(void)
{
    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    stream = gpu_stream();
    other_stream = gpu_stream();
    on_host = gpu_host_memory(MOST);
    back = gpu_host_memory(2 * MOST);
    sent_memory = gpu_memory(MOST);
    got_memory = gpu_memory(MOST);
    scrap = gpu_memory(4096);
    test_sizes();
    test_host_waits();
    test_unattended();
    test_order();
    test_mixed();
    test_many();
    test_any_source();
    test_sets();
    test_beside_collectives();
    test_mismatch();
    test_shutdown();
    return report_done();
}
