/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the page of an imagined job to standard output: page_sample FRAME RANKS STEPS
 * STALL_MS.
 *
 * All ranks are in this process, and report straight to rank 0. A step takes 100 ms. Rank
 * RANKS / 3 is late by 30 ms in most steps, because of its section "data"; the others
 * vary by a millisecond. In the middle of the job, that rank is late by STALL_MS once,
 * unless it is 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_page.h"
#include "collectives/trace/straggler_waits.h"

enum {
    RANKS_OF_NODE = 8,
    BATCHES_OF_STEP = 2,
};

struct sample {
    int ranks;
    int steps;
    int64_t stall_ns;
};

static unsigned random_state = 1;

static unsigned draw(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static char *read_file(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");

    if (file == NULL || getdelim(&text, &room, '\0', file) <= 0) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

/* Returns when a step begins. */
static int64_t beginning_of(const struct sample *sample, int step)
{
    return 100000000 * (int64_t)step + (step > sample->steps / 2 ? sample->stall_ns : 0);
}

static bool is_stalled(const struct sample *sample, int step)
{
    return sample->stall_ns > 0 && step == sample->steps / 2;
}

static void note_batch(struct hvd_straggler_waits *waits, const struct sample *sample,
                       int step, int i, int64_t late_ns)
{
    static const char *const names[BATCHES_OF_STEP] = {"head.weight", "layers.0.weight"};
    const int64_t stall_ns = is_stalled(sample, step) ? sample->stall_ns : 0;
    const int64_t began_ns =
        beginning_of(sample, step) + (i == 0 ? 0 : 50000000 + stall_ns);
    const int64_t last_ns = began_ns + (i == 0 ? stall_ns : 0);
    const struct hvd_straggler_batch batch = {
        .kind = HVD_KIND_ALLREDUCE,
        .tensors = 1 + 3 * i,
        .bytes = i == 0 ? 1 << 20 : 64 << 20,
        .name = names[i],
        .submitted_ns = began_ns + 5000000 + late_ns,
        .started_ns = last_ns + 35000000,
        .ended_ns = last_ns + (i == 0 ? 36000000 : 47000000),
        .steps = step,
    };

    hvd_straggler_waits_note(waits, &batch);
}

/* Notes all steps of one rank, and merges its messages into those of rank 0. */
static void run_rank(struct hvd_straggler_waits *first, const struct sample *sample,
                     int rank)
{
    struct hvd_straggler_sections sections;
    struct hvd_straggler_waits *waits = first;
    const void *payload;
    size_t bytes;

    if (rank > 0) {
        hvd_straggler_waits_create(rank, sample->ranks, 0, &waits, NULL);
        hvd_straggler_waits_keep(waits, 0, NULL);
    }
    hvd_straggler_sections_init(&sections);
    hvd_straggler_waits_watch(waits, &sections);
    for (int step = 0; step < sample->steps; step++) {
        const bool is_last = rank == sample->ranks / 3;
        const bool is_late = is_last && (is_stalled(sample, step) || draw(10) > 0);
        const int64_t late_ns = is_stalled(sample, step) ? sample->stall_ns : 30000000;
        const int64_t began_ns = beginning_of(sample, step);

        hvd_straggler_sections_begin(&sections, "data", began_ns);
        hvd_straggler_sections_end(&sections,
                                   began_ns + 2000000 + (is_late ? late_ns : 0));
        for (int i = 0; i < BATCHES_OF_STEP; i++) {
            note_batch(waits, sample, step, i,
                       is_late && i == 0 ? late_ns : (int64_t)draw(1000000));
        }
    }
    hvd_straggler_waits_close(waits);
    while (rank > 0 && hvd_straggler_waits_take(waits, &payload, &bytes)) {
        if (hvd_straggler_waits_merge(first, payload, bytes) != 0) {
            fprintf(stderr, "a message of rank %d is refused\n", rank);
            exit(1);
        }
    }
    if (rank > 0) {
        hvd_straggler_waits_destroy(waits);
    } else {
        hvd_straggler_waits_watch(waits, NULL);
    }
    hvd_straggler_sections_finish(&sections);
}

/* Binds a rank to four CPUs, a GPU and a network card of its own. */
static void bind_rank(int rank, struct hvd_straggler_binding *binding)
{
    const int local = rank % RANKS_OF_NODE;

    snprintf(binding->cpus, sizeof(binding->cpus), "%d-%d", 4 * local, 4 * local + 3);
    snprintf(binding->gpu, sizeof(binding->gpu), "%d", local);
    snprintf(binding->nic, sizeof(binding->nic), "mlx5_%d:1", local);
}

int main(int count, char **arguments)
{
    const struct sample sample = {
        .ranks = count == 5 ? atoi(arguments[2]) : 0,
        .steps = count == 5 ? atoi(arguments[3]) : 0,
        .stall_ns = count == 5 ? 1000000 * (int64_t)atoi(arguments[4]) : 0,
    };
    const int ranks = sample.ranks;
    struct hvd_straggler_binding *bindings;
    struct hvd_straggler_job job = {.elapsed_us =
                                        beginning_of(&sample, sample.steps) / 1000};
    struct hvd_straggler_waits *first;
    char **hosts, *frame;
    int status;

    if (ranks < 1 || sample.steps < 1) {
        fputs("usage: page_sample FRAME RANKS STEPS STALL_MS\n", stderr);
        return 2;
    }
    hosts = calloc((size_t)ranks, sizeof(hosts[0]));
    bindings = calloc((size_t)ranks, sizeof(bindings[0]));
    if (hosts == NULL || bindings == NULL) {
        exit(1);
    }
    for (int i = 0; i < ranks; i++) {
        char name[32];

        snprintf(name, sizeof(name), "node%d", i / RANKS_OF_NODE + 1);
        hosts[i] = strdup(name);
        bind_rank(i, &bindings[i]);
    }
    job.bindings = bindings;
    job.hosts = (const char *const *)hosts;
    hvd_straggler_waits_create(0, ranks, ranks - 1, &first, NULL);
    hvd_straggler_waits_keep(first, 0, NULL);
    for (int rank = 0; rank < ranks; rank++) {
        run_rank(first, &sample, rank);
    }
    frame = read_file(arguments[1]);
    status =
        hvd_straggler_page_print(frame, hvd_straggler_waits_sums(first), &job, stdout);
    free(frame);
    hvd_straggler_waits_destroy(first);
    for (int i = 0; i < ranks; i++) {
        free(hosts[i]);
    }
    free(hosts);
    free(bindings);
    return status != 0;
}
