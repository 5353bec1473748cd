/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of random jobs: what the ranks submit, in which order, and what they wait
 * for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/agreement/agreement_jobs.h"

/* Tensors of one process set that one call submits. */
struct item {
    const struct job_set *set;
    int first;
    int count;
    struct ending ending;
    int odd_rank; /* the rank that describes the first tensor differently; -1: none */
    struct hvd_descriptor odd;
};

struct window {
    struct item items[JOB_MOST_SETS * JOB_MOST_TENSORS + 8];
    int count;
    struct job_set once; /* tensors that are used in this window only */
    const bool *in; /* [rank] takes part in the windows of the global set */
};

unsigned job_draw(struct job *job, unsigned below)
{
    job->random = job->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(job->random >> 33) % below;
}

/* --- tensors --- */

void job_reshape(struct job *job, struct job_tensor *tensor)
{
    struct hvd_descriptor *descriptor = &tensor->descriptor;
    bool is_large = job_draw(job, 8) == 0;

    descriptor->ndim = 1 + (int)job_draw(job, 3);
    for (int i = 0; i < descriptor->ndim; i++) {
        descriptor->shape[i] = 1 + (int64_t)job_draw(job, 5);
    }
    descriptor->shape[0] = is_large ? 3 << 20 : 1 + (int64_t)job_draw(job, 30);
}

static enum hvd_kind draw_kind(struct job *job, const struct job_set *set)
{
    static const enum hvd_kind kinds[] = {
        HVD_KIND_ALLREDUCE, HVD_KIND_ALLREDUCE,    HVD_KIND_ALLREDUCE, HVD_KIND_ALLREDUCE,
        HVD_KIND_ALLREDUCE, HVD_KIND_ADASUM,       HVD_KIND_ALLGATHER, HVD_KIND_BROADCAST,
        HVD_KIND_ALLTOALL,  HVD_KIND_REDUCESCATTER};

    if (set->id != HVD_SET_GLOBAL && job->has_steady_sets && job_draw(job, 16) != 0) {
        return job_draw(job, 6) == 0 ? HVD_KIND_ADASUM : HVD_KIND_ALLREDUCE;
    }
    return kinds[job_draw(job, sizeof(kinds) / sizeof(kinds[0]))];
}

void job_add_tensor(struct job *job, struct job_set *set)
{
    struct job_tensor *tensor = &set->tensors[set->tensor_count++];
    struct hvd_descriptor *descriptor = &tensor->descriptor;

    *tensor = (struct job_tensor){0};
    snprintf(tensor->name, sizeof(tensor->name), "t%d", job->number++);
    *descriptor = sim_allreduce(tensor->name, 1);
    descriptor->kind = draw_kind(job, set);
    descriptor->set = set->id;
    descriptor->dtype = job_draw(job, 3) == 0 ? HVD_FLOAT64 : HVD_FLOAT32;
    if (descriptor->kind == HVD_KIND_BROADCAST) {
        descriptor->root = set->ranks[job_draw(job, (unsigned)set->count)];
    }
    if (descriptor->kind == HVD_KIND_ALLREDUCE && job_draw(job, 12) == 0) {
        descriptor->op = HVD_MAX;
    }
    if (descriptor->kind == HVD_KIND_ALLREDUCE && job_draw(job, 3) == 0) {
        descriptor->wire = job_draw(job, 2) == 0 ? HVD_FLOAT16 : HVD_BFLOAT16;
    }
    job_reshape(job, tensor);
}

bool job_is_sum(const struct job_tensor *tensor)
{
    const struct hvd_descriptor *descriptor = &tensor->descriptor;

    return (descriptor->kind == HVD_KIND_ALLREDUCE && descriptor->op == HVD_SUM) ||
           descriptor->kind == HVD_KIND_ADASUM;
}

/* --- differences of one rank --- */

static const char *change_data(struct hvd_descriptor *odd)
{
    switch (odd->kind) {
    case HVD_KIND_ALLGATHER:
    case HVD_KIND_ALLTOALL:
        odd->ndim++;
        odd->shape[odd->ndim - 1] = 7;
        return "One rank sent a tensor of rank";
    default:
        odd->shape[0] += 1;
        return "tensor shapes: One rank sent a tensor of shape";
    }
}

static const char *change_one(struct job *job, struct hvd_descriptor *odd)
{
    switch (job_draw(job, 7)) {
    case 0:
        odd->dtype = HVD_INT8;
        return "Mismatched data types: One rank had type";
    case 1:
        odd->kind =
            odd->kind == HVD_KIND_BROADCAST ? HVD_KIND_ALLGATHER : HVD_KIND_BROADCAST;
        return "Mismatched operations: One rank did an";
    case 2:
        if (odd->kind == HVD_KIND_BROADCAST) {
            odd->root = 1000;
            return "Mismatched BROADCAST root ranks";
        }
        break;
    case 3:
        if (odd->kind == HVD_KIND_ALLREDUCE) {
            odd->op = HVD_MIN;
            return "Mismatched reduction operation";
        }
        break;
    case 4:
        if (odd->kind == HVD_KIND_ALLREDUCE || odd->kind == HVD_KIND_REDUCESCATTER) {
            odd->prescale = 0.5;
            return "Mismatched prescale and/or postscale factors";
        }
        break;
    case 5:
        if (odd->kind == HVD_KIND_ALLREDUCE) {
            odd->wire = odd->wire == HVD_FLOAT16 ? 0 : HVD_FLOAT16;
            return "Mismatched wire types";
        }
        break;
    default:
        odd->device = HVD_DESCRIPTOR_GPU;
        return "CPU/GPU device selection";
    }
    return change_data(odd);
}

static void let_one_differ(struct job *job, struct item *item)
{
    const struct job_set *set = item->set;

    if (set->count < 2) {
        return;
    }
    item->odd_rank = set->ranks[job_draw(job, (unsigned)set->count)];
    item->odd = set->tensors[item->first].descriptor;
    item->ending.text = change_one(job, &item->odd);
    if (job->in_epoch && set->id == HVD_SET_GLOBAL) {
        /* the rank that differs, or all others, may have joined */
        item->ending.text = NULL;
    }
}

/* --- the items of a window --- */

static void add_item(struct job *job, struct window *window, const struct job_set *set,
                     int first, int count)
{
    struct item *item = &window->items[window->count++];

    *item = (struct item){.set = set, .first = first, .count = count, .odd_rank = -1};
    item->ending.text = "";
    for (int i = first; i < first + count; i++) {
        if (job->in_epoch && set->id == HVD_SET_GLOBAL && !job_is_sum(&set->tensors[i])) {
            item->ending.text = NULL; /* refused, if a rank has joined */
        }
    }
    if (job_draw(job, 60) == 0) {
        let_one_differ(job, item);
    }
}

static void add_set(struct job *job, struct window *window, const struct job_set *set)
{
    bool is_short = job_draw(job, 10) == 0;

    for (int i = 0; i < set->tensor_count; i++) {
        int count = 1 + set->tensors[i].with_next;

        if (!is_short || job_draw(job, 2) == 0) {
            add_item(job, window, set, i, count);
        }
        i += count - 1;
    }
}

static void add_once(struct job *job, struct window *window)
{
    const struct job_set *set =
        &job->sets[job->has_steady_sets ? job_draw(job, JOB_MOST_SETS) : 0];

    window->once = set->is_live ? *set : job->sets[0];
    window->once.tensor_count = 0;
    if (job_draw(job, 5) == 0) {
        job_add_tensor(job, &window->once);
        add_item(job, window, &window->once, 0, 1);
    }
    if (job_draw(job, 12) == 0) {
        struct job_tensor *barrier = &window->once.tensors[window->once.tensor_count];

        snprintf(barrier->name, sizeof(barrier->name), "hvd.barrier.%d", job->number++);
        barrier->descriptor = (struct hvd_descriptor){.set = window->once.id,
                                                      .kind = HVD_KIND_BARRIER,
                                                      .dtype = HVD_UINT8,
                                                      .device = HVD_DEVICE_CPU,
                                                      .name = barrier->name};
        barrier->with_next = 0;
        add_item(job, window, &window->once, window->once.tensor_count++, 1);
        window->items[window->count - 1].odd_rank = -1;
        window->items[window->count - 1].ending.text = "";
    }
}

/* --- one rank's part of a window --- */

static void shuffle(struct job *job, int *order, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)job_draw(job, (unsigned)i + 1), other = order[j];

        order[j] = order[i];
        order[i] = other;
    }
}

/* Draws the details that may differ between ranks and between calls. */
static void vary(struct job *job, struct hvd_descriptor *descriptor)
{
    if (descriptor->kind == HVD_KIND_ALLGATHER && descriptor->ndim > 0) {
        descriptor->shape[0] = (int64_t)job_draw(job, 9);
    }
    if (descriptor->kind == HVD_KIND_ALLTOALL && descriptor->ndim > 0) {
        descriptor->shape[0] = (int64_t)job_draw(job, 9);
        descriptor->max_block = (int64_t)job_draw(job, 9);
    }
}

static void submit_item(struct job *job, struct program *program, int rank,
                        const struct item *item, bool is_cut)
{
    struct hvd_descriptor tensors[JOB_MOST_TENSORS];
    const struct hvd_descriptor *group[JOB_MOST_TENSORS];

    for (int i = 0; i < item->count; i++) {
        tensors[i] = rank == item->odd_rank && i == 0
                         ? item->odd
                         : item->set->tensors[item->first + i].descriptor;
        tensors[i].name = item->set->tensors[item->first + i].name;
        vary(job, &tensors[i]);
        group[i] = &tensors[i];
        program_wait_for(program, tensors[i].name); /* if it is still in flight */
    }
    if (!is_cut) {
        program_propose_group(program, group, item->count, &item->ending);
        return;
    }
    for (int i = 0; i < item->count; i++) {
        struct ending ending = item->ending;

        ending.text = i == 0 || ending.text == NULL ? ending.text : "";
        program_propose(program, group[i], &ending);
    }
}

static bool is_member(const struct job_set *set, int rank)
{
    for (int i = 0; i < set->count; i++) {
        if (set->ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

enum order {
    AS_LISTED,
    TURNED_AT_ODD_RANKS,
    AT_RANDOM
};

static void write_rank(struct job *job, const struct window *window, int rank,
                       enum order mode, bool is_waiter)
{
    struct program *program = &job->programs[rank];
    int order[sizeof(window->items) / sizeof(window->items[0])];
    bool is_cut = job_draw(job, 20) == 0;

    for (int i = 0; i < window->count; i++) {
        order[i] =
            mode == TURNED_AT_ODD_RANKS && rank % 2 == 1 ? window->count - 1 - i : i;
    }
    if (mode == AT_RANDOM) {
        shuffle(job, order, window->count);
    }
    for (int i = 0; i < window->count; i++) {
        const struct item *item = &window->items[order[i]];

        if (!is_member(item->set, rank) ||
            (item->set->id == HVD_SET_GLOBAL && !window->in[rank])) {
            continue;
        }
        submit_item(job, program, rank, item, is_cut);
        if (is_waiter && job_draw(job, 3) == 0) {
            const struct item *earlier =
                &window->items[order[job_draw(job, (unsigned)i + 1)]];

            program_wait_for(program, earlier->set->tensors[earlier->first].name);
        }
    }
}

void job_write_window(struct job *job, const bool *in)
{
    static const enum order modes[] = {AS_LISTED, AS_LISTED,           AS_LISTED,
                                       AS_LISTED, TURNED_AT_ODD_RANKS, AT_RANDOM};
    enum order mode = modes[job_draw(job, 6)];
    int waiter = (int)job_draw(job, 4 * (unsigned)job->size);
    bool wait_at_end = job_draw(job, 3) != 0;
    struct window *window = calloc(1, sizeof(*window));

    for (int i = 0; i < JOB_MOST_SETS; i++) {
        if (job->sets[i].is_live && (i == 0 || !job->in_epoch || job->has_steady_sets)) {
            add_set(job, window, &job->sets[i]);
        }
    }
    add_once(job, window);
    window->in = in;
    for (int rank = 0; rank < job->size; rank++) {
        write_rank(job, window, rank, mode, rank == waiter);
        if (in[rank]) {
            if (wait_at_end) {
                program_wait(&job->programs[rank]);
            } else if (window->once.tensor_count > 0) {
                program_wait_for(&job->programs[rank], window->once.tensors[0].name);
            }
        }
    }
    free(window);
    job->windows++;
}
