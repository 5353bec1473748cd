/* SPDX-License-Identifier: Apache-2.0 */
/* Allgather, alltoall and reducescatter into the caller's memory: correct bytes, no write
 * beside them, no allocation as large as the tensor, and no more copying than for memory
 * that the library allocates. Runs as each rank of a job. Also runs on GPUs
 * (gpu/on_gpu.h), without the checks of allocations and copies. */
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include "collectives/hvd.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/report.h"
#include "tests/collectives/test_case.h"

enum {
    /* bytes; all allocations of the library but those for results are smaller */
    LARGE = 64 << 10,
    PIECE = 1024, /* bytes; shorter copies are not counted as copies of tensors */
    GUARD = 64, /* bytes after an output, which must not change */
    COUNTED_ROWS = 50000,
};

static int rank, size;

#ifndef ON_GPU_H

/* --- allocations and copies of the library, counted by wrappers --- */

static _Atomic int64_t largest, copied;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
void *__real_memcpy(void *to, const void *from, size_t bytes);
void __real_hvd_copy_stream(void *to, const void *from, size_t bytes);
ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long pieces,
                                const struct iovec *there, unsigned long others,
                                unsigned long flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *here,
                                 unsigned long pieces, const struct iovec *there,
                                 unsigned long others, unsigned long flags);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void __wrap_hvd_copy_stream(void *to, const void *from, size_t bytes);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long pieces,
                                const struct iovec *there, unsigned long others,
                                unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here,
                                 unsigned long pieces, const struct iovec *there,
                                 unsigned long others, unsigned long flags);

static void note_taken(size_t bytes)
{
    int64_t before = atomic_load(&largest);

    while ((int64_t)bytes > before &&
           !atomic_compare_exchange_weak(&largest, &before, (int64_t)bytes)) {
    }
}

static void note_copied(ssize_t bytes)
{
    if (bytes >= PIECE) {
        atomic_fetch_add(&copied, bytes);
    }
}

void *__wrap_malloc(size_t bytes)
{
    note_taken(bytes);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    note_taken(count * bytes);
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    note_taken(bytes);
    return __real_realloc(old, bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    note_taken(bytes);
    return __real_posix_memalign(out, alignment, bytes);
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    note_copied((ssize_t)bytes);
    return __real_memcpy(to, from, bytes);
}

void __wrap_hvd_copy_stream(void *to, const void *from, size_t bytes)
{
    note_copied((ssize_t)bytes);
    __real_hvd_copy_stream(to, from, bytes);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long pieces,
                                const struct iovec *there, unsigned long others,
                                unsigned long flags)
{
    ssize_t got = __real_process_vm_readv(pid, here, pieces, there, others, flags);

    note_copied(got);
    return got;
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here,
                                 unsigned long pieces, const struct iovec *there,
                                 unsigned long others, unsigned long flags)
{
    ssize_t put = __real_process_vm_writev(pid, here, pieces, there, others, flags);

    note_copied(put);
    return put;
}

#endif

/* --- correct bytes --- */

/* Returns how many elements rank r contributes to an allgather. */
static int64_t rows_of(const struct test_case *c, int r)
{
    return c->count == 0 ? 0 : value_random(c->seed, r, -7) % (uint32_t)c->count;
}

static int64_t rows_before(const struct test_case *c, int end)
{
    int64_t rows = 0;

    for (int r = 0; r < end; r++) {
        rows += rows_of(c, r);
    }
    return rows;
}

/* Whether output holds `count` elements of rank `from`, from its element `first` on. */
static bool holds(const struct test_case *c, const char *output, int from, int64_t first,
                  int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (value_load(c->dtype, output, i) !=
            value_of(c->seed, from, first + i, c->dtype, HVD_SUM)) {
            return false;
        }
    }
    return true;
}

static bool is_guarded(const char *output, size_t bytes)
{
    for (int i = 0; i < GUARD; i++) {
        if (output[bytes + (size_t)i] != 0x5a) {
            return false;
        }
    }
    return true;
}

static char *guarded(size_t bytes)
{
    char *output = malloc(bytes + GUARD);

    memset(output, 0x5a, bytes + GUARD);
    return output;
}

/* Runs an allgather. in_place: the input of this rank is its part of the output; other
 * ranks may choose otherwise. */
static bool gathers(const struct test_case *c, bool in_place)
{
    size_t element = hvd_dtype_bytes(c->dtype);
    int64_t mine = rows_of(c, rank), all = rows_before(c, size);
    size_t bytes = (size_t)all * element;
    char *output = guarded(bytes), *input = case_input(c, rank, mine);
    char *part = output + (size_t)rows_before(c, rank) * element;
    struct hvd_tensor tensor = call_tensor(c->name, c->dtype, &mine, 1, input, output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t rows = -1;
    void *taken;
    bool good;

    if (in_place) {
        memcpy(part, input, (size_t)mine * element);
    }
    tensor.input = in_place ? part : input;
    tensor.output_bytes = bytes;
    call_finish(hvd_allgather_start(&tensor, 1, 0, &request, &err), &request, &err);
    good = hvd_request_rows(request, 0, &rows) == 0 && rows == all &&
           is_guarded(output, bytes) &&
           (bytes == 0 || hvd_request_take(request, 0, &taken, &rows) == HVD_ERR_STATE);
    for (int r = 0; r < size; r++) {
        good = good && holds(c, output + (size_t)rows_before(c, r) * element, r, 0,
                             rows_of(c, r));
    }
    hvd_request_free(request);
    free(input);
    free(output);
    return good;
}

static int32_t split_of(const struct test_case *c, int from, int to)
{
    uint32_t most = (uint32_t)c->count + 1;

    return (int32_t)(value_random(c->seed, from, -100 - to) % most);
}

/* Returns the number of rows that `from` sends to ranks before `to`. */
static int64_t split_begin(const struct test_case *c, int from, int to)
{
    int64_t first = 0;

    for (int r = 0; r < to; r++) {
        first += split_of(c, from, r);
    }
    return first;
}

static bool came(const struct test_case *c, const char *output)
{
    bool good = true;
    int64_t at = 0;

    for (int from = 0; from < size; from++) {
        int64_t count = split_of(c, from, rank);

        good = good && holds(c, output + (size_t)at * hvd_dtype_bytes(c->dtype), from,
                             split_begin(c, from, rank), count);
        at += count;
    }
    return good;
}

static bool exchanges(const struct test_case *c)
{
    int32_t splits[64];
    int64_t sent = split_begin(c, rank, size), rows = -1, all = 0;
    char *input = case_input(c, rank, sent), *output;
    struct hvd_tensor tensor = call_tensor(c->name, c->dtype, &sent, 1, input, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    size_t bytes;
    bool good;

    for (int r = 0; r < size; r++) {
        splits[r] = split_of(c, rank, r);
        all += split_of(c, r, rank);
    }
    bytes = (size_t)all * hvd_dtype_bytes(c->dtype);
    output = guarded(bytes);
    tensor.output = output;
    tensor.output_bytes = bytes;
    call_finish(hvd_alltoall_start(&tensor, splits, size, 0, &request, &err), &request,
                &err);
    good = hvd_request_rows(request, 0, &rows) == 0 && rows == all &&
           is_guarded(output, bytes) && came(c, output);
    hvd_request_free(request);
    free(input);
    free(output);
    return good;
}

static void test_values(uint32_t seed)
{
    static const int64_t counts[] = {0, 3, 700, 70000};
    bool good[3] = {true, true, true};

    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        for (int i = 0; i < 4; i++) {
            struct test_case c = {.seed = value_random(seed, -1, dtype * 4 + i),
                                  .dtype = (enum hvd_dtype)dtype,
                                  .count = counts[i]};

            snprintf(c.name, sizeof(c.name), "v.%d.%d", dtype, i);
            good[0] = gathers(&c, false) && good[0];
            good[1] = gathers(&c, rank % 2 == 0) && good[1];
            good[2] = exchanges(&c) && good[2];
        }
    }
    report(good[0], "an allgather writes to the caller's memory");
    report(
        good[1],
        "an allgather writes to the caller's memory while other ranks gather in place");
    report(good[2], "an alltoall writes to the caller's memory");
}

/* --- too little room --- */

/* Waits for the collective. Returns whether the last rank, whose room is one byte too
 * small, gets an error, and the other ranks do not. */
static bool says_so(int started, struct hvd_request *request, struct hvd_error *err,
                    const char *operation)
{
    bool is_short = rank == size - 1, good = started == 0;
    int status = started == 0 ? hvd_wait(request, err) : started;
    char text[200];
    int64_t rows;
    void *data;

    snprintf(
        text, sizeof(text),
        "%s 'short': the result has %d rows, which are %d bytes, but output_bytes is "
        "%d: give more room",
        operation, size, 8 * size, 8 * size - 1);
    good = good && status == (is_short ? HVD_ERR_ARG : 0);
    if (is_short) {
        good = good && strncmp(err->text, text, strlen(text)) == 0 &&
               hvd_request_take(request, 0, &data, &rows) == HVD_ERR_STATE;
    }
    hvd_request_free(request);
    return good;
}

static void test_little_room(void)
{
    int64_t one = 1, each = size, *input = calloc((size_t)size, 8);
    char *output = guarded((size_t)size * 8);
    struct hvd_tensor tensor = call_tensor("short", HVD_INT64, &one, 1, input, output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started;
    bool is_whole;

    tensor.output_bytes = (size_t)size * 8 - (rank == size - 1 ? 1 : 0);
    started = hvd_allgather_start(&tensor, 1, 0, &request, &err);
    report(says_so(started, request, &err, "allgather"),
           "an allgather fails on a rank with too little room, and there alone");
    tensor.shape = &each;
    request = NULL;
    started = hvd_alltoall_start(&tensor, NULL, 0, 0, &request, &err);
    is_whole = says_so(started, request, &err, "alltoall");
    report(is_whole, "an alltoall fails on a rank with too little room, and there alone");
    report(rank != size - 1 || output[0] == 0x5a,
           "nothing is written to the memory that is too small");
    free(input);
    free(output);
}

/* --- room that may be too little --- */

/* Compares the taken rows with one row of each rank. */
static bool takes_all(struct hvd_request *request)
{
    void *data = NULL;
    int64_t rows = -1;
    bool good = hvd_request_take(request, 0, &data, &rows) == 0 && rows == size;

    for (int64_t r = 0; good && r < size; r++) {
        good = ((const int64_t *)data)[r] == 100 + r;
    }
    hvd_free(data);
    return good;
}

/* The last rank has room for one row less, the other ranks for one more. */
static void test_optional_room(void)
{
    bool is_short = rank == size - 1, is_taken, is_placed = true;
    int64_t one = 1, input = 100 + rank, rows = -1;
    size_t bytes = (size_t)(is_short ? size - 1 : size + 1) * 8;
    char *output = guarded(bytes);
    struct hvd_tensor tensor = call_tensor("maybe", HVD_INT64, &one, 1, &input, output);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    tensor.output_bytes = bytes | HVD_OUTPUT_IF_FITS;
    call_finish(hvd_allgather_start(&tensor, 1, 0, &request, &err), &request, &err);
    is_taken = takes_all(request);
    for (int64_t r = 0; !is_short && r < size; r++) {
        is_placed &= ((const int64_t *)output)[r] == 100 + r;
    }
    report(hvd_request_rows(request, 0, &rows) == 0 && rows == size && is_placed &&
               is_taken == is_short,
           "a result that does not fit is allocated if the caller allows it");
    hvd_request_free(request);
    free(output);
}

#ifndef ON_GPU_H

/* --- costs --- */

struct cost {
    int64_t largest; /* bytes of the largest allocation */
    int64_t copied;
};

typedef int start(const struct hvd_tensor *tensor, struct hvd_request **request,
                  struct hvd_error *err);

static int start_allgather(const struct hvd_tensor *tensor, struct hvd_request **request,
                           struct hvd_error *err)
{
    return hvd_allgather_start(tensor, 1, 0, request, err);
}

static int start_alltoall(const struct hvd_tensor *tensor, struct hvd_request **request,
                          struct hvd_error *err)
{
    return hvd_alltoall_start(tensor, NULL, 0, 0, request, err);
}

static int start_reducescatter(const struct hvd_tensor *tensor,
                               struct hvd_request **request, struct hvd_error *err)
{
    return hvd_reducescatter_start(tensor, 1, HVD_SUM, 1, 1, 0, request, err);
}

/* Measures the second of two calls: the first may map memory and open connections. */
static struct cost cost_of(start *begin, const struct hvd_tensor *tensor)
{
    struct cost cost = {0};

    for (int i = 0; i < 2; i++) {
        struct hvd_request *request = NULL;
        struct hvd_error err = {0};

        call_barrier();
        atomic_store(&largest, 0);
        atomic_store(&copied, 0);
        call_finish(begin(tensor, &request, &err), &request, &err);
        cost.largest = atomic_load(&largest);
        cost.copied = atomic_load(&copied);
        hvd_request_free(request);
    }
    return cost;
}

/* Copies are compared on one node only: the network copies messages once more if they
 * arrive before their receive is posted. */
static bool is_on_one_node(void)
{
    return hvd_local_size() == size;
}

/* Checks the costs of a collective into the caller's memory. most: bytes that may be
 * copied. is_allocated: compares them with those of the same collective into memory that
 * the library allocates. */
static void test_cost(const char *word, start *begin, struct hvd_tensor tensor,
                      int64_t most, bool is_allocated)
{
    struct cost given = cost_of(begin, &tensor), own = given;
    char what[160];

    snprintf(what, sizeof(what),
             "%s into the caller's memory allocates nothing of that size", word);
    report(given.largest < LARGE, "%s", what);
    if (is_allocated) {
        tensor.output_bytes = 0;
        own = cost_of(begin, &tensor);
        report(own.largest >= LARGE, "memory that the library allocates is counted");
    }
    if (is_on_one_node()) {
        snprintf(what, sizeof(what),
                 "%s copies %lld bytes, at most %lld, as many as "
                 "without the caller's memory",
                 word, (long long)given.copied, (long long)most);
        report(given.copied == own.copied && given.copied <= most, "%s", what);
    }
}

static void test_costs(void)
{
    int64_t rows = COUNTED_ROWS, all = rows * size;
    size_t bytes = (size_t)rows * 8;
    char *small = calloc(bytes, 1), *other = calloc(bytes * (size_t)size, 1);
    char *whole = calloc(bytes * (size_t)size, 1);
    struct hvd_tensor gather = call_tensor("cost", HVD_INT64, &rows, 1, small, whole);
    struct hvd_tensor exchange = call_tensor("cost", HVD_INT64, &all, 1, other, whole);
    struct hvd_tensor scatter = call_tensor("cost", HVD_INT64, &all, 1, other, small);

    gather.output_bytes = exchange.output_bytes = bytes * (size_t)size;
    test_cost("an allgather", start_allgather, gather, (int64_t)bytes * (size + 1), true);
    test_cost("an alltoall", start_alltoall, exchange, (int64_t)bytes * 2 * size, true);
    test_cost("a reducescatter", start_reducescatter, scatter,
              (int64_t)bytes * (size + 1), false);
    free(small);
    free(other);
    free(whole);
}

#endif

int main(void)
{
    rank = report_init();
    size = hvd_size();
    test_values(call_seed());
    test_little_room();
    test_optional_room();
#ifndef ON_GPU_H
    test_costs();
#endif
    hvd_shutdown();
    return report_done();
}
