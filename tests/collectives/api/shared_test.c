/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in memory of hvd_shared_alloc; runs as each rank of a job. Rank 0 prints TAP, a
 * rank that finds something wrong ends with 1 besides. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/rank_values.h"
#include "tests/collectives/report.h"

enum {
    TENSORS = 9,
    LARGE = 3000001, /* elements */
    MOST_BYTES = 40 << 20,
    PIECES = 40, /* more than are kept mapped of a rank */
    STEPS = 30,
};

static const int64_t counts[TENSORS] = {5000, 0, 1, 70001, 7, 1 << 20, 300, 4096, 65537};
static const char *const names[TENSORS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};

static int rank, size;
static uint32_t seed;

static char *shared(size_t bytes)
{
    struct hvd_error err = {0};
    void *memory = NULL;

    if (hvd_shared_alloc(bytes, &memory, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return memory;
}

static void reduce(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                   double prescale, double postscale, int set)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(
        hvd_allreduce_start(tensors, count, op, prescale, postscale, set, &request, &err),
        &request, &err);
    hvd_request_free(request);
}

/* Pieces of shared memory, of any rank, that this one maps. */
static int count_mapped(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        count += strstr(line, "memfd:hvd-shared") != NULL ? 1 : 0;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return count;
}

static int count_open(void)
{
    int count = 0;

    for (int i = 0; i < 4096; i++) {
        char path[64], name[256];
        ssize_t bytes;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
        bytes = readlink(path, name, sizeof(name) - 1);
        name[bytes > 0 ? bytes : 0] = '\0';
        count += strstr(name, "memfd:hvd-shared") != NULL ? 1 : 0;
    }
    return count;
}

/* --- every type and operation, against other memory --- */

static void fill(enum hvd_dtype dtype, enum hvd_op op, int tensor, void *data)
{
    for (int64_t i = 0; i < counts[tensor]; i++) {
        value_store(dtype, data, i,
                    value_of(seed + (uint32_t)tensor, rank, i, dtype, op));
    }
}

/* One behind the other, 1 byte apart from where vectors begin but for the element's
 * alignment. */
static size_t lay_out(enum hvd_dtype dtype, char *memory, struct hvd_tensor *tensors)
{
    size_t element = hvd_dtype_bytes(dtype), at = element;

    for (int i = 0; i < TENSORS; i++) {
        tensors[i] =
            call_tensor(names[i], dtype, &counts[i], 1, memory + at, memory + at);
        at += (size_t)(counts[i] + 1) * element;
    }
    return at;
}

static bool is_the_same(enum hvd_dtype dtype, enum hvd_op op, double prescale, char *mine,
                        char *other)
{
    struct hvd_tensor here[TENSORS], there[TENSORS];
    size_t bytes = lay_out(dtype, mine, here);

    lay_out(dtype, other, there);
    memset(mine, 0x5a, bytes);
    memset(other, 0x5a, bytes);
    for (int i = 0; i < TENSORS; i++) {
        fill(dtype, op, i, here[i].output);
        fill(dtype, op, i, there[i].output);
    }
    reduce(here, TENSORS, op, prescale, 1, HVD_SET_GLOBAL);
    reduce(there, TENSORS, op, prescale, 1, HVD_SET_GLOBAL);
    return memcmp(mine, other, bytes) == 0;
}

static void test_types(void)
{
    char *mine = shared(MOST_BYTES), *other = malloc(MOST_BYTES);
    bool is_good = true;

    for (int op = HVD_AVERAGE; op < HVD_OP_COUNT; op++) {
        for (int dtype = 0; dtype < HVD_DTYPE_COUNT && op != HVD_ADASUM; dtype++) {
            bool is_integer = !value_is_float((enum hvd_dtype)dtype);

            if (hvd_dtype_bytes((enum hvd_dtype)dtype) == 0 ||
                (is_integer ? op == HVD_AVERAGE : op >= HVD_BAND)) {
                continue;
            }
            if (!is_the_same((enum hvd_dtype)dtype, (enum hvd_op)op, 1, mine, other)) {
                fprintf(stderr, "# rank %d: %s, op %d\n", rank,
                        hvd_dtype_name((enum hvd_dtype)dtype), op);
                is_good = false;
            }
        }
    }
    report(is_good, "every type and operation comes to what other memory does");
    report(is_the_same(HVD_FLOAT32, HVD_AVERAGE, 0.5, mine, other),
           "also with a factor before it");
    free(other);
    hvd_shared_free(mine);
}

/* --- who takes part --- */

static float value(int of_rank, int64_t i)
{
    return (float)((of_rank * 7 + i) % 11) - 4;
}

static float sum(int first, int end, int64_t i)
{
    float all = 0;

    for (int r = first; r < end; r++) {
        all += value(r, i);
    }
    return all;
}

/* The sum of ranks first to end, this one among them. */
static bool sums_up(float *data, int64_t count, const char *name, int first, int end,
                    int set)
{
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, &count, 1, data, data);
    bool is_good = true;

    for (int64_t i = 0; i < count; i++) {
        data[i] = value(rank, i);
    }
    reduce(&tensor, 1, HVD_SUM, 1, 1, set);
    for (int64_t i = 0; i < count; i++) {
        is_good = is_good && data[i] == sum(first, end, i);
    }
    return is_good;
}

/* Whether a process may read the one that has started it, as ranks read each other. */
static bool may_reach(void)
{
    char byte = 1, read = 0;
    int code = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct iovec near = {&read, 1}, far = {&byte, 1};

        _exit(process_vm_readv(getppid(), &near, 1, &far, 1, 0) == 1 ? 0 : 1);
    }
    waitpid(pid, &code, 0);
    return code == 0;
}

static void test_mapped(void)
{
    float *data = (float *)shared(LARGE * sizeof(float));
    int before = count_mapped(), others;
    bool is_good = sums_up(data, LARGE, "large", 0, size, HVD_SET_GLOBAL);

    others = count_mapped() - before;
    report(is_good, "a large tensor is added up");
    if (hvd_local_size() < size) {
        report(others == 0, "between nodes nobody maps it");
    } else if (others == 0 && getenv("HVD_SINGLE_COPY") != NULL) {
        report(true, "ranks that are not to reach each other map nothing");
    } else if (others == 0 && !may_reach()) {
        if (rank == 0) {
            tap_skip("each rank of the node maps that of all others",
                     "this machine does not let ranks reach each other");
        }
        call_barrier();
    } else {
        report(others == size - 1, "each rank of the node maps that of all others");
    }
    hvd_shared_free(data);
}

/* Some ranks have it elsewhere, each time others; then all of them again. */
static void test_mixed(void)
{
    float *here = (float *)shared(LARGE * sizeof(float));
    float *elsewhere = malloc(LARGE * sizeof(float));
    bool is_good = true;

    for (int step = 0; step < STEPS; step++) {
        bool is_odd = step % 5 != 4 && (rank + step) % 2 == 0;

        is_good =
            sums_up(is_odd ? elsewhere : here, 70001, "mixed", 0, size, HVD_SET_GLOBAL) &&
            is_good;
    }
    report(is_good, "ranks that have a tensor elsewhere take part");
    hvd_shared_free(here);
    free(elsewhere);
}

/* What repeats is replayed; then one rank has another tensor elsewhere in the midst of it.
 */
static void test_steps(void)
{
    float *here = (float *)shared(4 * 100001 * sizeof(float));
    float *elsewhere = malloc(100001 * sizeof(float));
    static const char *const parts[] = {"p", "q", "r", "s"};
    bool is_good = true;

    for (int step = 0; step < 3 * STEPS; step++) {
        for (int i = 0; i < 4; i++) {
            bool is_odd = step == 2 * STEPS && i == 2 && rank == 0;

            is_good = sums_up(is_odd ? elsewhere : here + (ptrdiff_t)i * 100001,
                              100001 - 25000 * i, parts[i], 0, size, HVD_SET_GLOBAL) &&
                      is_good;
        }
    }
    report(is_good,
           "steps repeat, also where a rank leaves shared memory for one of them");
    hvd_shared_free(here);
    free(elsewhere);
}

static void test_pieces(void)
{
    float *pieces[PIECES];
    bool is_good = true;
    int open;

    for (int i = 0; i < PIECES; i++) {
        pieces[i] = (float *)shared(20000 * sizeof(float));
    }
    for (int i = 0; i < 2 * PIECES; i++) {
        is_good = sums_up(pieces[i % PIECES], 20000, "piece", 0, size, HVD_SET_GLOBAL) &&
                  is_good;
    }
    open = count_open();
    for (int i = 0; i < PIECES; i++) {
        hvd_shared_free(pieces[i]);
    }
    report(is_good, "many pieces are used in turn");
    report(open - count_open() == PIECES, "what is freed is closed");
}

static int add_set(int first, int end)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int ranks[64], set;

    for (int r = first; r < end; r++) {
        ranks[r - first] = r;
    }
    call_finish(hvd_set_add_start(ranks, end - first, &request, &err), &request, &err);
    set = hvd_request_set(request);
    hvd_request_free(request);
    return set;
}

static void test_sets(void)
{
    int half = size / 2, sets[2] = {add_set(0, half), add_set(half, size)};
    int first = rank < half ? 0 : half, end = rank < half ? half : size;
    float *data = (float *)shared(LARGE * sizeof(float));

    report(sums_up(data, LARGE, "set", first, end, sets[first == 0 ? 0 : 1]),
           "process sets side by side");
    hvd_shared_free(data);
}

/* Rank r has 3 steps more than rank r + 1. */
static void test_join(void)
{
    float *data = (float *)shared(70001 * sizeof(float));
    const int mine = 3 * (size - rank);
    bool is_good = true;

    for (int step = 0; step < mine; step++) {
        is_good =
            sums_up(data, 70001, "last", 0, size - step / 3, HVD_SET_GLOBAL) && is_good;
    }
    call_join();
    report(is_good, "a rank that has joined takes part with zeros");
    hvd_shared_free(data);
}

/* The memory is the process's: it outlives the job, and serves in the next. */
static void test_next_job(void)
{
    float *data = (float *)shared(LARGE * sizeof(float));
    bool is_good = sums_up(data, LARGE, "first", 0, size, HVD_SET_GLOBAL);

    hvd_shutdown();
    is_good = is_good && data[LARGE - 1] == sum(0, size, LARGE - 1);
    call_init();
    report(is_good && sums_up(data, LARGE, "second", 0, size, HVD_SET_GLOBAL),
           "memory outlives the job");
    hvd_shared_free(data);
}

int main(void)
{
    rank = report_init();
    size = hvd_size();
    seed = rank == 0 ? tap_seed((unsigned)time(NULL)) : 0;
    test_types();
    test_mapped();
    test_mixed();
    test_steps();
    test_pieces();
    test_sets();
    test_join();
    test_next_job();
    hvd_shutdown();
    return report_done();
}
