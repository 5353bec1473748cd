/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-written sum is right with every plan, in any order of sizes and plans, on one
 * node and on two. */
#include "contrib/bench/hvd_bench/limit.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

enum {
    MOST = 700000, /* elements */
    TURNS = 60,
    MOST_RANKS = 8,
    BEGUN = 2, /* exchanges that are begun and not finished */
    PART = 1 << 18 /* elements of the largest chunk */
};

/* Numbers that a rank has sent to its counterpart, by the number of the exchange. */
struct box {
    _Atomic uint64_t sent, taken;
    float data[BEGUN + 1][PART];
};

/* An exchange that is begun. */
struct begun {
    const float *part;
    float *out, *copy;
    int64_t count;
};

/* This rank's end of the exchange between two nodes, which are processes here. Like UCX,
 * it keeps the last message until it is called again. */
struct wire {
    struct box *mine, *theirs;
    struct begun begun[BEGUN];
    uint64_t first, next;
};

static void progress_exchange(void *self)
{
    struct wire *wire = self;

    atomic_store(&wire->mine->sent, wire->next);
}

static void begin_exchange(void *self, const float *part, float *out, float *copy,
                           int64_t count)
{
    struct wire *wire = self;
    uint64_t number = wire->next;

    progress_exchange(wire);
    while (number > atomic_load(&wire->mine->taken) + BEGUN) {
        sched_yield();
    }
    memcpy(wire->mine->data[number % (BEGUN + 1)], part, (size_t)count * sizeof(*part));
    wire->begun[number % BEGUN] = (struct begun){part, out, copy, count};
    wire->next++;
}

static void finish_exchange(void *self)
{
    struct wire *wire = self;
    uint64_t number = wire->first++;
    const struct begun *begun = &wire->begun[number % BEGUN];
    const float *other = wire->theirs->data[number % (BEGUN + 1)];

    while (atomic_load(&wire->theirs->sent) <= number) {
        progress_exchange(wire);
        sched_yield();
    }
    for (int64_t i = 0; i < begun->count; i++) {
        begun->out[i] = begun->copy[i] = begun->part[i] + other[i];
    }
    atomic_store(&wire->theirs->taken, number + 1);
}

static float value(int rank, int64_t i, int turn)
{
    return (float)((i * 7 + turn * 3 + rank * 5) % 1001);
}

static bool is_sum(const float *out, int64_t count, int ranks, int turn)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;

        for (int rank = 0; rank < ranks; rank++) {
            sum += value(rank, i, turn);
        }
        if (out[i] != sum) {
            return false;
        }
    }
    return true;
}

/* Chooses a size near the limits of a line, a part or a chunk. */
static int64_t choose_count(unsigned *seed)
{
    static const int64_t edges[] = {1,     14,    1024,   2048,  16384,
                                    32768, 65536, 262144, 600000};
    int64_t edge = edges[(size_t)rand_r(seed) % (sizeof(edges) / sizeof(edges[0]))];
    int64_t count = edge + rand_r(seed) % 33 - 16;

    return count < 1 ? 1 : count;
}

struct job {
    int nodes;
    int local_size;
    char *memory; /* of the first node, then of the second */
    struct box *boxes; /* of each rank */
};

/* Runs one rank. All ranks make the same choices, because they have the same seed.
 * Returns an exit status. */
static int run_rank(const struct job *job, int rank, unsigned seed)
{
    int ranks = job->nodes * job->local_size, node = rank / job->local_size;
    struct wire wire = {.mine = &job->boxes[rank],
                        .theirs = &job->boxes[(rank + job->local_size) % ranks]};
    const struct bench_limit_exchange exchange = {&wire, begin_exchange, finish_exchange,
                                                  progress_exchange, progress_exchange};
    float *in = malloc(MOST * sizeof(*in)), *out = malloc(MOST * sizeof(*out));
    struct bench_limit limit;
    bool good = in != NULL && out != NULL;

    bench_limit_init(&limit,
                     job->memory + (size_t)node * bench_limit_memory_bytes(
                                                      job->local_size, job->nodes > 1),
                     rank % job->local_size, job->local_size,
                     job->nodes > 1 ? &exchange : NULL);
    for (int turn = 0; good && turn < TURNS; turn++) {
        struct bench_limit_plan plans[BENCH_LIMIT_PLANS];
        int64_t count = choose_count(&seed);
        int number = bench_limit_plans(&limit, (size_t)count * sizeof(*in), plans);
        const struct bench_limit_plan *plan = &plans[rand_r(&seed) % number];
        bool in_place = rand_r(&seed) % 2 != 0;

        for (int64_t i = 0; i < count; i++) {
            in[i] = value(rank, i, turn);
        }
        bench_limit_sum(&limit, plan, in, in_place ? in : out, count);
        good = is_sum(in_place ? in : out, count, ranks, turn);
    }
    exchange.flush(exchange.self);
    free(in);
    free(out);
    return good ? 0 : 1;
}

static bool sums(int nodes, int local_size, unsigned seed)
{
    size_t memory_bytes = (size_t)nodes * bench_limit_memory_bytes(local_size, nodes > 1);
    size_t bytes = memory_bytes + MOST_RANKS * sizeof(struct box);
    char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct job job = {nodes, local_size, memory, (struct box *)(memory + memory_bytes)};
    bool good = memory != MAP_FAILED;
    int status;

    for (int rank = 0; good && rank < nodes * local_size; rank++) {
        pid_t child = fork();

        if (child == 0) {
            alarm(50); /* a wrong sum may wait for ever */
            _exit(run_rank(&job, rank, seed));
        }
        good = child > 0;
    }
    while (wait(&status) > 0) {
        good &= status == 0;
    }
    munmap(memory, bytes);
    return good;
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)getpid());

    for (int ranks = 1; ranks <= 4; ranks++) {
        tap_ok(sums(1, ranks, seed), "%d rank%s: %d random sums are right", ranks,
               ranks == 1 ? "" : "s", TURNS);
    }
    for (int ranks = 2; ranks <= 3; ranks++) {
        tap_ok(sums(2, ranks, seed), "2 nodes of %d ranks: %d random sums are right",
               ranks, TURNS);
    }
    return tap_done();
}
