/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-written sum is right with every plan, in any order of sizes and plans. */
#include "contrib/bench/hvd_bench/limit.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

enum {
    MOST = 700000, /* elements */
    TURNS = 60
};

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

/* Runs one rank. All ranks make the same choices, because they have the same seed.
 * Returns an exit status. */
static int run_rank(char *memory, int rank, int ranks, unsigned seed)
{
    float *in = malloc(MOST * sizeof(*in)), *out = malloc(MOST * sizeof(*out));
    struct bench_limit limit;
    bool good = in != NULL && out != NULL;

    bench_limit_init(&limit, memory, rank, ranks);
    for (int turn = 0; good && turn < TURNS; turn++) {
        struct bench_limit_plan plans[BENCH_LIMIT_PLANS];
        int64_t count = choose_count(&seed);
        int number = bench_limit_plans((size_t)count * sizeof(*in), plans);
        const struct bench_limit_plan *plan = &plans[rand_r(&seed) % number];
        bool in_place = rand_r(&seed) % 2 != 0;

        for (int64_t i = 0; i < count; i++) {
            in[i] = value(rank, i, turn);
        }
        bench_limit_sum(&limit, plan, in, in_place ? in : out, count);
        good = is_sum(in_place ? in : out, count, ranks, turn);
    }
    free(in);
    free(out);
    return good ? 0 : 1;
}

static bool sums(int ranks, unsigned seed)
{
    size_t bytes = bench_limit_memory_bytes(ranks);
    char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool good = memory != MAP_FAILED;
    int status;

    for (int rank = 0; good && rank < ranks; rank++) {
        pid_t child = fork();

        if (child == 0) {
            alarm(50); /* a wrong sum may wait for ever */
            _exit(run_rank(memory, rank, ranks, seed));
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
        tap_ok(sums(ranks, seed), "%d rank%s: %d random sums are right", ranks,
               ranks == 1 ? "" : "s", TURNS);
    }
    return tap_done();
}
