/* SPDX-License-Identifier: Apache-2.0 */
/* Runs batches of several process sets, packed and not packed, of many sizes. All batches
 * of a step are in flight together; sets are added and removed between steps. Runs as
 * each rank of a job of 2 or more on the stand-in. Rank 0 prints TAP; other ranks exit
 * with 1 if something is wrong. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    STEPS = 12,
    ITEMS = 12, /* per step; each is a batch */
    PARTS = 3, /* tensors of a packed batch */
    SETS = 3, /* all ranks; all but the last; all but the first */
    MOST_RANKS = 8,
    MOST = 40000, /* the most elements of a part */
    LIMIT_MS = 60000,
};

enum kind {
    PACKED,
    ALONE,
    GATHERED,
    SENT,
    KINDS
};

struct item {
    enum kind kind;
    int set; /* index in sets */
    int count; /* elements of a part */
    float *memory[PARTS]; /* on the device */
    struct hvd_request *request; /* NULL: this rank is not a member */
};

static int rank, size;
static void *stream;
static uint32_t random_state;
static int sets[SETS];
static struct item items[ITEMS];
static float values[MOST], got[MOST * MOST_RANKS];

/* Returns the same random number on all ranks. */
static int random_below(int limit)
{
    return (int)call_random(&random_state) % limit;
}

static int first_of(int set)
{
    return set == 2 ? 1 : 0;
}

static int end_of(int set)
{
    return set == 1 ? size - 1 : size;
}

static bool is_member(int set)
{
    return rank >= first_of(set) && rank < end_of(set);
}

static float value_of(int of, int step, int item, int part, int i)
{
    return (float)((of + 1) * (item + 1) + 7 * part + step + i % 11);
}

static void add_set(int at)
{
    int ranks[MOST_RANKS], count = 0;

    for (int i = first_of(at); i < end_of(at); i++) {
        ranks[count++] = i;
    }
    sets[at] = call_set_add(ranks, count);
}

/* --- a step --- */

static int start_item(const struct item *item, const struct hvd_tensor *tensors,
                      struct hvd_request **request, struct hvd_error *err)
{
    int set = sets[item->set];

    switch (item->kind) {
    case PACKED:
        return hvd_allreduce_start(tensors, PARTS, HVD_SUM, 1, 1, set, request, err);
    case ALONE:
        return hvd_allreduce_start(tensors, 1, HVD_SUM, 1, 1, set, request, err);
    case GATHERED:
        return hvd_allgather_start(tensors, 1, set, request, err);
    default:
        return hvd_broadcast_start(tensors, end_of(item->set) - 1, set, request, err);
    }
}

static void start(struct item *item, int step, int number)
{
    int parts = item->kind == PACKED ? PARTS : 1;
    struct hvd_tensor tensors[PARTS];
    const int64_t shape[] = {item->count};
    struct hvd_error err = {0};
    char names[PARTS][32];

    for (int part = 0; part < parts; part++) {
        for (int i = 0; i < item->count; i++) {
            values[i] = value_of(rank, step, number, part, i);
        }
        gpu_copy(item->memory[part], values, (size_t)item->count * sizeof(float), stream);
        gpu_finish(stream);
        snprintf(names[part], sizeof(names[part]), "item %d part %d", number, part);
        tensors[part] = gpu_tensor(names[part], HVD_FLOAT32, shape, 1, item->memory[part],
                                   item->memory[part], stream);
        tensors[part].output = item->kind == GATHERED ? NULL : tensors[part].output;
    }
    if (start_item(item, tensors, &item->request, &err) != 0) {
        fprintf(stderr, "# rank %d, item %d: %s\n", rank, number, err.text);
        exit(1);
    }
}

static float right_value(const struct item *item, int step, int number, int part, int i)
{
    float sum = 0;

    if (item->kind == GATHERED) {
        return value_of(first_of(item->set) + i / item->count, step, number, part,
                        i % item->count);
    }
    if (item->kind == SENT) {
        return value_of(end_of(item->set) - 1, step, number, part, i);
    }
    for (int r = first_of(item->set); r < end_of(item->set); r++) {
        sum += value_of(r, step, number, part, i);
    }
    return sum;
}

static bool is_right(const struct item *item, int step, int number, int part)
{
    int ranks = end_of(item->set) - first_of(item->set);
    int count = item->kind == GATHERED ? item->count * ranks : item->count;

    for (int i = 0; i < count; i++) {
        float right = right_value(item, step, number, part, i);

        if (got[i] != right) {
            fprintf(stderr,
                    "# rank %d, step %d, item %d, part %d: element %d is %g, not %g\n",
                    rank, step, number, part, i, (double)got[i], (double)right);
            return false;
        }
    }
    return true;
}

static bool fetch(struct item *item, int step, int number)
{
    int ranks = end_of(item->set) - first_of(item->set);
    size_t bytes = (size_t)item->count * sizeof(float);
    struct hvd_error err = {0};
    float *gathered = item->memory[1];
    bool good = hvd_wait_on(item->request, stream, -1, &err) == 0;

    if (item->kind == GATHERED) {
        good = good && hvd_request_copy(item->request, 0, gathered, stream, &err) == 0;
        gpu_copy(got, gathered, bytes * (size_t)ranks, stream);
        gpu_finish(stream);
        good = good && is_right(item, step, number, 0);
    }
    for (int part = 0; item->kind != GATHERED && good && part < PARTS; part++) {
        if (part == 0 || item->kind == PACKED) {
            gpu_copy(got, item->memory[part], bytes, stream);
            gpu_finish(stream);
            good = is_right(item, step, number, part);
        }
    }
    if (!good) {
        fprintf(stderr, "# rank %d, step %d, item %d: %s\n", rank, step, number,
                err.text);
    }
    hvd_request_free(item->request);
    item->request = NULL;
    return good;
}

static bool run_step(int step)
{
    bool good = true;

    for (int i = 0; i < ITEMS; i++) {
        items[i].kind = (enum kind)random_below(KINDS);
        items[i].set = random_below(SETS);
        items[i].count = 1 + random_below(i % 3 == 0 ? MOST : 500);
        if (is_member(items[i].set)) {
            start(&items[i], step, i);
        }
    }
    for (int i = ITEMS - 1; i >= 0; i--) {
        if (items[i].request != NULL) {
            good &= fetch(&items[i], step, i);
        }
    }
    return good;
}

static bool run_steps(void)
{
    bool good = true;

    for (int step = 0; step < STEPS; step++) {
        good &= run_step(step);
        if (step % 4 == 3) {
            call_set_remove(sets[1]);
            add_set(1);
        }
    }
    return good;
}

/* --- the other promises --- */

static int live_comms(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return live.comms;
}

static bool comms_become(int wanted)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (int ms = 0; live_comms() != wanted && ms < LIMIT_MS; ms++) {
        nanosleep(&moment, NULL);
    }
    if (live_comms() != wanted) {
        fprintf(stderr, "# rank %d: %d communicators, not %d\n", rank, live_comms(),
                wanted);
    }
    return live_comms() == wanted;
}

int main(void)
{
    if (!gpu_open()) {
        return 1;
    }
    setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1", 1);
    setenv("HOROVOD_DISABLE_GROUP_FUSION", "1", 1);
    setenv("HOROVOD_FUSION_THRESHOLD", "1000000", 1);
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    for (int i = 0; i < ITEMS * PARTS; i++) {
        items[i / PARTS].memory[i % PARTS] =
            gpu_memory((size_t)MOST * MOST_RANKS * sizeof(float));
    }
    random_state = call_seed();
    add_set(1);
    add_set(2);
    report(run_steps(), "batches of several sets, packed and not, are right");
    call_set_remove(sets[1]);
    call_set_remove(sets[2]);
    report(comms_become(1), "the communicators of removed sets are gone");
    hvd_shutdown();
    report_alone(comms_become(0), "no communicator is left after shutdown");
    return report_done();
}
