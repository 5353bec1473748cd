/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of contrib/bench/large.sh: collectives and messages of more than 2^32 bytes,
 * whose results are compared byte by byte. Rank 0 prints a line for each.
 *
 * usage: large_ranks MIB REAL [OPERATION...]
 * MIB is the size of the tensors, which have 7 bytes more. REAL is the rank that has
 * memory for its results; -1: all ranks have.
 *
 * Contents repeat after `period` bytes, so that inputs need no more memory than that:
 * their pages are mapped again and again. A period divides neither 2^31 nor 2^32,
 * therefore an offset that has lost its upper bits leads to wrong bytes. On ranks
 * without memory for results, the output is mapped in the same way. There, a byte that
 * was never written can go unnoticed. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/clock.h"

enum {
    ROW_BYTES = 4096, /* of an alltoall, whose splits are 32-bit numbers of rows */
    PARTS = 3, /* tensors of a group */
    UNTOUCHED = 0xa5,
};

static const int64_t period = ((int64_t)16 << 20) + 11 * (int64_t)4096;

static struct {
    int rank, size, real;
    int64_t bytes;
    char *input; /* contents of this rank, mapped again and again */
    char *output;
    unsigned char *expected; /* [period] scratch */
} job;

/* --- contents --- */

/* Returns byte i of a rank's contents; i < period. */
static unsigned char content(int rank, int64_t i)
{
    const uint64_t x = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank * 77;

    return (unsigned char)(x >> 32);
}

/* Maps `file` again and again, `bytes` bytes in all. Returns NULL if that fails. */
static char *map_repeatedly(int file, int64_t bytes)
{
    const size_t room = (size_t)((bytes + 2 * period) / period * period);
    char *base =
        mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    for (size_t at = 0; base != MAP_FAILED && at < room; at += (size_t)period) {
        if (mmap(base + at, (size_t)period, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
            return NULL;
        }
    }
    return base != MAP_FAILED ? base : NULL;
}

static char *make_repeated(int64_t bytes)
{
    int file = memfd_create("large", MFD_CLOEXEC);
    char *data = NULL;

    if (file >= 0 && ftruncate(file, period) == 0) {
        data = map_repeatedly(file, bytes);
    }
    if (file >= 0) {
        close(file);
    }
    return data;
}

/* Small pages, so that no more memory is used than is written. */
static char *make_real(int64_t bytes)
{
    void *data = mmap(NULL, (size_t)(bytes + period), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (data == MAP_FAILED) {
        return NULL;
    }
    madvise(data, (size_t)(bytes + period), MADV_NOHUGEPAGE);
    return data;
}

static bool is_real(void)
{
    return job.real < 0 || job.real == job.rank;
}

static bool make_buffers(void)
{
    job.expected = malloc((size_t)period);
    job.input = make_repeated(job.bytes + ROW_BYTES);
    job.output = is_real() ? make_real(job.bytes + ROW_BYTES)
                           : make_repeated(job.bytes + ROW_BYTES);
    if (job.expected == NULL || job.input == NULL || job.output == NULL) {
        return false;
    }
    for (int64_t i = 0; i < period; i++) {
        job.input[i] = (char)content(job.rank, i);
    }
    return true;
}

/* Frees the memory of the results. */
static void clear_output(void)
{
    if (is_real()) {
        madvise(job.output, (size_t)(job.bytes + ROW_BYTES + period), MADV_DONTNEED);
    } else {
        memset(job.output, UNTOUCHED, (size_t)period);
    }
}

/* Whether data holds bytes [from, from + bytes) of contents that job.expected
 * describes. */
static bool is_expected(const char *data, int64_t from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes;) {
        int64_t skipped = (from + at) % period;
        int64_t part = period - skipped < bytes - at ? period - skipped : bytes - at;

        if (memcmp(data + at, job.expected + skipped, (size_t)part) != 0) {
            fprintf(stderr, "rank %d: wrong bytes between %lld and %lld\n", job.rank,
                    (long long)at, (long long)(at + part));
            return false;
        }
        at += part;
    }
    return true;
}

static bool is_from(int rank, const char *data, int64_t from, int64_t bytes)
{
    for (int64_t i = 0; i < period; i++) {
        job.expected[i] = content(rank, i);
    }
    return is_expected(data, from, bytes);
}

/* Whether data holds the sums of all ranks' bytes [from, from + bytes). */
static bool is_sum(const char *data, int64_t from, int64_t bytes)
{
    for (int64_t i = 0; i < period; i++) {
        unsigned char sum = 0;

        for (int rank = 0; rank < job.size; rank++) {
            sum = (unsigned char)(sum + content(rank, i));
        }
        job.expected[i] = sum;
    }
    return is_expected(data, from, bytes);
}

/* --- calls --- */

static struct hvd_tensor tensor_of(const char *name, const int64_t *shape, char *output)
{
    return (struct hvd_tensor){.name = name,
                               .input = job.input,
                               .output = output,
                               .shape = shape,
                               .ndim = 1,
                               .dtype = HVD_UINT8,
                               .device = HVD_DEVICE_CPU};
}

static void give_up(const struct hvd_error *err)
{
    fprintf(stderr, "rank %d: %s\n", job.rank, err->text);
    exit(1);
}

/* Waits for a request whose start returned `status`. Returns true. */
static bool finish(int status, struct hvd_request **request, struct hvd_error *err)
{
    if (status != 0 || hvd_wait(*request, err) != 0) {
        give_up(err);
    }
    hvd_request_free(*request);
    return true;
}

static bool sum_bytes(void)
{
    struct hvd_tensor tensor = tensor_of("allreduce", &job.bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    return finish(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err),
                  &request, &err) &&
           is_sum(job.output, 0, job.bytes);
}

static bool sum_in_place(void)
{
    struct hvd_tensor tensor = tensor_of("in place", &job.bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    memcpy(job.output, job.input, (size_t)job.bytes);
    tensor.input = job.output;
    return finish(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err),
                  &request, &err) &&
           is_sum(job.output, 0, job.bytes);
}

static bool sum_group(void)
{
    static const char *const names[PARTS] = {"half", "more than a quarter", "rest"};
    const int64_t counts[PARTS] = {job.bytes / 2, job.bytes / 4 + 1001,
                                   job.bytes - job.bytes / 2 - job.bytes / 4 - 1001};
    struct hvd_tensor tensors[PARTS];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t at = 0;

    for (int i = 0; i < PARTS; i++) {
        tensors[i] = tensor_of(names[i], &counts[i], job.output + at);
        tensors[i].input = job.input + at;
        at += counts[i];
    }
    return finish(hvd_allreduce_start(tensors, PARTS, HVD_SUM, 1, 1, 0, &request, &err),
                  &request, &err) &&
           is_sum(job.output, 0, job.bytes);
}

static bool sum_at_root(void)
{
    struct hvd_tensor tensor = tensor_of("reduce", &job.bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    const int root = job.real > 0 ? job.real : 0;

    return finish(hvd_reduce_start(&tensor, HVD_SUM, 1, 1, root, 0, &request, &err),
                  &request, &err) &&
           (job.rank != root || is_sum(job.output, 0, job.bytes));
}

/* Returns where a rank's share of a reducescatter or scatter begins: the first ranks get
 * one byte more than the others. */
static int64_t share_begin(int rank)
{
    const int64_t each = job.bytes / job.size, more = job.bytes % job.size;

    return rank * each + (rank < more ? rank : more);
}

static bool scatter_sums(void)
{
    struct hvd_tensor tensor = tensor_of("reducescatter", &job.bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    const int64_t from = share_begin(job.rank), end = share_begin(job.rank + 1);

    return finish(hvd_reducescatter_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err),
                  &request, &err) &&
           is_sum(job.output, from, end - from);
}

static bool broadcast_from(int root)
{
    struct hvd_tensor tensor = tensor_of("broadcast", &job.bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    return finish(hvd_broadcast_start(&tensor, root, 0, &request, &err), &request,
                  &err) &&
           is_from(root, job.output, 0, job.bytes);
}

static bool broadcast_first(void)
{
    return broadcast_from(0);
}

static bool broadcast_last(void)
{
    return broadcast_from(job.size - 1);
}

/* Returns the bytes that a rank gives to a gather: `own`; rank `most` gives the rest. */
static int64_t given_bytes(int rank, int most, int64_t own)
{
    return rank == most ? job.bytes - own * (job.size - 1) : own;
}

/* Whether data holds the bytes that all ranks have given, see given_bytes. Blocks of
 * several ranks have no common period, so memory that is mapped repeatedly does not hold
 * them. */
static bool check_gathered(const char *data, int most, int64_t own)
{
    int64_t at = 0;
    bool is_right = true;

    for (int rank = 0; rank < job.size && is_right && is_real(); rank++) {
        int64_t bytes = given_bytes(rank, most, own);

        is_right = is_from(rank, data + at, 0, bytes);
        at += bytes;
    }
    return is_right;
}

static bool gather_from(int most, int64_t own)
{
    const int64_t bytes = given_bytes(job.rank, most, own);
    struct hvd_tensor tensor = tensor_of("allgather", &bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    tensor.output_bytes = (size_t)job.bytes;
    return finish(hvd_allgather_start(&tensor, 1, 0, &request, &err), &request, &err) &&
           check_gathered(job.output, most, own);
}

static bool gather_uneven(void)
{
    const bool is_right = gather_from(job.size - 1, 5);

    return gather_from(0, 0) && is_right;
}

static bool gather_even(void)
{
    return gather_from(0, job.bytes / job.size);
}

/* The library allocates the result, on all ranks. */
static bool gather_allocated(void)
{
    const int64_t own = job.bytes / job.size;
    const int64_t bytes = given_bytes(job.rank, 0, own);
    struct hvd_tensor tensor = tensor_of("allgather", &bytes, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t rows = 0;
    void *data = NULL;
    bool is_right;

    if (hvd_allgather_start(&tensor, 1, 0, &request, &err) != 0 ||
        hvd_wait(request, &err) != 0 || hvd_request_take(request, 0, &data, &rows) != 0) {
        give_up(&err);
    }
    hvd_request_free(request);
    is_right = rows == job.bytes && check_gathered(data, 0, own);
    hvd_free(data);
    return is_right;
}

static bool gather_at_root(void)
{
    const int64_t own = job.bytes / job.size;
    const int root = job.real > 0 ? job.real : 0;
    const int64_t bytes = given_bytes(job.rank, 0, own);
    struct hvd_tensor tensor = tensor_of("gather", &bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    tensor.output_bytes = (size_t)job.bytes;
    return finish(hvd_gather_start(&tensor, root, 0, &request, &err), &request, &err) &&
           (job.rank != root || check_gathered(job.output, 0, own));
}

static bool scatter_from_root(void)
{
    struct hvd_tensor tensor = tensor_of("scatter", &job.bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    const int64_t from = share_begin(job.rank), end = share_begin(job.rank + 1);

    return finish(hvd_scatter_start(&tensor, 0, 0, &request, &err), &request, &err) &&
           is_from(0, job.output, from, end - from);
}

/* Every rank sends `kept` of `rows` rows to rank 0, and the others to the last rank. */
static bool exchange_rows(int64_t rows, int64_t kept)
{
    const int64_t shape[2] = {rows, ROW_BYTES};
    const int last = job.size - 1;
    struct hvd_tensor tensor = tensor_of("alltoall", shape, job.output);
    int32_t *splits = calloc((size_t)job.size, sizeof(*splits));
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    const int64_t mine = job.rank == 0      ? kept * ROW_BYTES
                         : job.rank == last ? (rows - kept) * ROW_BYTES
                                            : 0;
    bool is_right = splits != NULL;

    if (!is_right) {
        return false;
    }
    splits[0] = (int32_t)kept;
    splits[last] = (int32_t)(splits[last] + rows - kept);
    tensor.ndim = 2;
    tensor.output_bytes = (size_t)(mine * job.size > 0 ? mine * job.size : 1);
    finish(hvd_alltoall_start(&tensor, splits, job.size, 0, &request, &err), &request,
           &err);
    free(splits);
    for (int rank = 0; rank < job.size && is_right && is_real(); rank++) {
        is_right = is_from(rank, job.output + rank * mine,
                           job.rank == 0 ? 0 : kept * ROW_BYTES, mine);
    }
    return is_right;
}

/* Blocks of half of the bytes between all ranks, then one of all bytes to one rank. */
static bool exchange_all(void)
{
    const int64_t rows = 2 * job.bytes / ROW_BYTES / job.size;

    return exchange_rows(rows, rows / 2);
}

static bool exchange_one(void)
{
    const int64_t rows = job.bytes / ROW_BYTES / job.size;

    const bool is_right = exchange_rows(rows, 0);

    return exchange_rows(rows, rows) && is_right;
}

static bool pass_message(int from, int to)
{
    struct hvd_tensor tensor = tensor_of("message", &job.bytes, job.output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = 0;

    if (job.rank == from) {
        status = hvd_send_start(&tensor, to, 1, 0, &request, &err);
    } else if (job.rank == to) {
        status = hvd_recv_start(&tensor, from, 1, 0, &request, &err);
    } else {
        return true;
    }
    return finish(status, &request, &err) &&
           (job.rank != to || is_from(from, job.output, 0, job.bytes));
}

static bool pass_messages(void)
{
    const bool is_right = pass_message(0, job.size - 1);

    return pass_message(job.size - 1, 0) && is_right;
}

/* --- the list --- */

static const struct {
    const char *name;
    bool (*run)(void);
    bool is_for_all; /* needs memory for the result on all ranks */
} operations[] = {
    {"allreduce", sum_bytes, false},
    {"allreduce-in-place", sum_in_place, true},
    {"allreduce-grouped", sum_group, false},
    {"reduce", sum_at_root, false},
    {"reducescatter", scatter_sums, false},
    {"broadcast", broadcast_first, false},
    {"broadcast-from-last", broadcast_last, false},
    {"allgather", gather_even, false},
    {"allgather-uneven", gather_uneven, false},
    {"allgather-allocated", gather_allocated, true},
    {"gather", gather_at_root, false},
    {"scatter", scatter_from_root, false},
    {"alltoall", exchange_all, false},
    {"alltoall-to-one", exchange_one, false},
    {"messages", pass_messages, false},
};

static bool is_named(int argc, char **argv, const char *name)
{
    bool is_found = argc <= 3;

    for (int i = 3; i < argc; i++) {
        is_found = is_found || strcmp(argv[i], name) == 0;
    }
    return is_found;
}

/* Whether all ranks are right; collective. */
static bool agree(bool is_right)
{
    int32_t value = is_right ? 1 : 0;
    struct hvd_tensor tensor = {.name = "verdict",
                                .input = &value,
                                .output = &value,
                                .dtype = HVD_INT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    finish(hvd_allreduce_start(&tensor, 1, HVD_MIN, 1, 1, 0, &request, &err), &request,
           &err);
    return value == 1;
}

static int run_all(int argc, char **argv)
{
    int failed = 0, count = 0;

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        int64_t begin_ns = hvd_clock_ns();
        bool is_right;

        if (!is_named(argc, argv, operations[i].name) ||
            (operations[i].is_for_all && job.real >= 0)) {
            continue;
        }
        is_right = agree(operations[i].run());
        clear_output();
        count++;
        failed += is_right ? 0 : 1;
        if (job.rank == 0) {
            printf("%-20s %12lld bytes %7.1f s  %s\n", operations[i].name,
                   (long long)job.bytes, (double)(hvd_clock_ns() - begin_ns) / 1e9,
                   is_right ? "right" : "WRONG");
            fflush(stdout);
        }
    }
    if (job.rank == 0) {
        printf("large: %d of %d right\n", count - failed, count);
    }
    return failed > 0 || count == 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct hvd_error err = {0};
    int status;

    if (argc < 3 || strtoll(argv[1], NULL, 10) <= 0) {
        fprintf(stderr, "usage: large_ranks MIB REAL [OPERATION...], under hvdrun\n");
        return 2;
    }
    if (hvd_init(&err) != 0) {
        give_up(&err);
    }
    job.rank = hvd_rank();
    job.size = hvd_size();
    job.bytes = strtoll(argv[1], NULL, 10) * (1 << 20) + 7;
    job.real = (int)strtol(argv[2], NULL, 10);
    if (!make_buffers()) {
        fprintf(stderr, "rank %d: no memory for tensors of %lld bytes\n", job.rank,
                (long long)job.bytes);
        return 1;
    }
    clear_output();
    status = run_all(argc, argv);
    hvd_shutdown();
    return status;
}
