/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs that a user could write. */
#include "tests/collectives/agreement/agreement_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/set/rank_list.h"

static const struct ending well = {.text = ""};

/* --- the shape of the job --- */

static void draw_nodes(struct job *job)
{
    bool is_wide = job_draw(job, 12) == 0; /* nodes with one rank: a deep tree */
    int most = is_wide ? 40 : 1 + (int)job_draw(job, 12);
    int count = 0;

    while (job->size < most) {
        int ranks =
            is_wide ? 1 + (int)(job_draw(job, 8) == 0) : 1 + (int)job_draw(job, 4);

        job->nodes[count++] = ranks;
        job->size += ranks;
    }
}

static void draw_settings(struct job *job)
{
    static const int capacities[] = {1024, 1024, 1024, 1024, 1024, 0, 1, 2, 3, 5};
    static const int64_t thresholds[] = {128 << 20, 128 << 20, 128 << 20, 0, 200, 2000};
    static const int64_t cycles[] = {1000000, 1000000, 0, 5000000};
    struct hvd_agreement_settings *settings = &job->settings;

    *settings = sim_settings();
    settings->fusion.capacity = capacities[job_draw(job, 10)];
    settings->fusion.threshold = thresholds[job_draw(job, 6)];
    settings->fusion.cycle_ns = cycles[job_draw(job, 4)];
    settings->fusion.groups_alone = job_draw(job, 4) == 0;
    settings->may_replay = job_draw(job, 8) != 0;
    settings->stall_warning_ns = job_draw(job, 4) == 0 ? 500000 : 0;
    job->slow_rank = job_draw(job, 2) == 0 ? (int)job_draw(job, (unsigned)job->size) : -1;
}

static void draw_tensors(struct job *job, struct job_set *set, int count)
{
    for (int i = 0; i < count; i++) {
        job_add_tensor(job, set);
    }
}

static void begin(struct job *job, unsigned seed)
{
    struct job_set *global = &job->sets[0];

    *job = (struct job){.random = hvd_hash_number(seed + 1)};
    draw_nodes(job);
    draw_settings(job);
    global->is_live = true;
    global->count = job->size;
    for (int i = 0; i < job->size; i++) {
        global->ranks[i] = i;
    }
    draw_tensors(job, global, 2 + (int)job_draw(job, 7));
    job->has_joins = job_draw(job, 2) == 0;
    job->has_steady_sets = job_draw(job, 2) == 0;
}

/* --- surprises --- */

/* Makes requests of several tensors, from tensors of the same kind that follow one
 * another. */
static void regroup(struct job *job, struct job_set *set)
{
    for (int i = 0; i < set->tensor_count; i++) {
        struct job_tensor *tensor = &set->tensors[i];
        int left = set->tensor_count - 1 - i;
        int more = left > 0 ? (int)job_draw(job, (unsigned)left + 1) : 0;

        tensor->with_next = 0;
        while (tensor->with_next < more && job_draw(job, 3) != 0 &&
               set->tensors[i + tensor->with_next + 1].descriptor.kind ==
                   tensor->descriptor.kind) {
            tensor->with_next++;
        }
        i += tensor->with_next;
    }
}

static void on_all_ranks(struct job *job, const struct hvd_descriptor *descriptor,
                         const struct ending *ending, bool is_waited)
{
    for (int rank = 0; rank < job->size; rank++) {
        program_propose(&job->programs[rank], descriptor, ending);
        if (is_waited) {
            program_wait(&job->programs[rank]);
        }
    }
}

static void write_ranks(const struct job_set *set, char *text, size_t bytes)
{
    size_t used = 0;

    for (int i = 0; i < set->count; i++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", i > 0 ? "," : "",
                                 set->ranks[i]);
    }
}

/* Returns the number that a new set gets: the lowest free one. */
static int free_id(const struct job *job)
{
    for (int id = 1;; id++) {
        bool is_free = true;

        for (int i = 1; i < JOB_MOST_SETS; i++) {
            is_free &= !(job->sets[i].is_live && job->sets[i].id == id);
        }
        if (is_free) {
            return id;
        }
    }
}

static bool exists(const struct job *job, const struct job_set *set)
{
    for (int i = 0; i < JOB_MOST_SETS; i++) {
        if (job->sets[i].is_live && !job->sets[i].is_created &&
            job->sets[i].count == set->count &&
            memcmp(job->sets[i].ranks, set->ranks,
                   (size_t)set->count * sizeof(set->ranks[0])) == 0) {
            return true;
        }
    }
    return false;
}

static void wait_for_all(struct job *job)
{
    for (int rank = 0; rank < job->size; rank++) {
        program_wait(&job->programs[rank]);
    }
}

static void meet(struct job *job)
{
    static const struct hvd_descriptor barrier = {.kind = HVD_KIND_BARRIER,
                                                  .name = "meet"};

    for (int rank = 0; rank < job->size; rank++) {
        program_propose(&job->programs[rank], &barrier, &well);
        program_wait_for(&job->programs[rank], barrier.name);
    }
}

/* Creates a set while no rank changes another one, so that its number is predictable. */
static void create_set(struct job *job, struct job_set *set)
{
    const struct ending numbered = {.text = "", .has_value = true, .value = set->id};
    char name[32];
    char *list = hvd_rank_list_write(set->ranks, set->count);
    const struct hvd_descriptor create = {
        .kind = HVD_KIND_SET_CREATE, .name = name, .note = list};

    snprintf(name, sizeof(name), "hvd.create.%d", job->number++);
    meet(job);
    for (int i = 0; i < set->count; i++) {
        program_propose(&job->programs[set->ranks[i]], &create, &numbered);
        program_wait_for(&job->programs[set->ranks[i]], name);
    }
    meet(job);
    set->is_live = true;
    set->is_created = true;
    draw_tensors(job, set, 1 + (int)job_draw(job, 3));
    free(list);
}

static void add_set(struct job *job, struct job_set *set)
{
    char note[4 * JOB_MOST_RANKS], name[32];
    struct hvd_descriptor descriptor = {
        .kind = HVD_KIND_SET_ADD, .name = name, .note = note};
    struct ending ending = {.text = "", .has_value = true};

    *set = (struct job_set){.id = free_id(job)};
    for (int rank = 0; rank < job->size; rank++) {
        if (job_draw(job, 2) == 0 || (rank == job->size - 1 && set->count == 0)) {
            set->ranks[set->count++] = rank;
        }
    }
    if (job->must_wait) {
        wait_for_all(job);
        job->must_wait = false;
    }
    if (job_draw(job, 2) == 0) {
        create_set(job, set);
        return;
    }
    snprintf(name, sizeof(name), "hvd.set.%d", job->number++);
    write_ranks(set, note, sizeof(note));
    ending.value = set->id;
    if (exists(job, set)) {
        ending = (struct ending){.text = "with the same ranks already exists"};
        on_all_ranks(job, &descriptor, &ending, false);
        return;
    }
    on_all_ranks(job, &descriptor, &ending, true);
    set->is_live = true;
    draw_tensors(job, set, 1 + (int)job_draw(job, 3));
}

static void remove_created(struct job *job, const struct job_set *set)
{
    const struct hvd_descriptor descriptor = {.kind = HVD_KIND_SET_REMOVE,
                                              .name = "hvd.set.0",
                                              .set = set->id,
                                              .root = set->id};

    for (int i = 0; i < set->count; i++) {
        program_propose(&job->programs[set->ranks[i]], &descriptor, &well);
    }
}

static void remove_set(struct job *job, struct job_set *set)
{
    char name[32];
    struct hvd_descriptor descriptor = {
        .kind = HVD_KIND_SET_REMOVE, .name = name, .root = set->id};

    snprintf(name, sizeof(name), "hvd.set.%d", job->number++);
    if (set->is_created) {
        remove_created(job, set);
    } else {
        on_all_ranks(job, &descriptor, &well, job_draw(job, 2) == 0);
    }
    job->must_wait = true;
    set->is_live = false;
    if (job->has_steady_sets && job_draw(job, 2) == 0) {
        add_set(job, set);
    }
}

/* Waits for the tensors that are not sums: they would be refused once a rank has
 * joined. */
static void wait_for_others_than_sums(struct job *job)
{
    const struct job_set *global = &job->sets[0];

    for (int i = 0; i < global->tensor_count; i++) {
        for (int rank = 0; rank < job->size && !job_is_sum(&global->tensors[i]); rank++) {
            program_wait_for(&job->programs[rank], global->tensors[i].name);
        }
    }
}

/* A rank that has joined submits to the global process set nevertheless. */
static void submit_joined(struct job *job, int rank)
{
    const struct job_set *global = &job->sets[0];
    const struct job_tensor *tensor =
        &global->tensors[job_draw(job, (unsigned)global->tensor_count)];
    struct program *program = &job->programs[rank];
    struct hvd_descriptor late = tensor->descriptor;
    char name[32];

    late.name = name;
    snprintf(name, sizeof(name), "late%d", job->number++);
    switch (job_draw(job, 4)) {
    case 0:
        late.kind = HVD_KIND_BARRIER;
        break;
    case 1:
        late =
            (struct hvd_descriptor){.kind = HVD_KIND_SET_ADD, .name = name, .note = "0"};
        break;
    case 2:
        late.kind = HVD_KIND_JOIN;
        break;
    default: /* a tensor that the others may have in flight, or in a replay */
        late.name = tensor->name;
        program_wait_for(program, tensor->name);
        break;
    }
    program_submit_joined(program, &late);
}

/* All ranks submit the same tensors for some windows, then join one after the other. */
static void write_epoch(struct job *job)
{
    int windows[JOB_MOST_RANKS], most = 0;

    wait_for_others_than_sums(job);
    for (int rank = 0; rank < job->size; rank++) {
        windows[rank] = (int)job_draw(job, 4);
        most = windows[rank] > most ? windows[rank] : most;
    }
    job->in_epoch = true;
    for (int i = 0; i <= most; i++) {
        bool in[JOB_MOST_RANKS];

        for (int rank = 0; rank < job->size; rank++) {
            in[rank] = i < windows[rank];
            if (i == windows[rank]) {
                program_start_join(&job->programs[rank]);
            }
            if (i >= windows[rank] && job_draw(job, 4) == 0) {
                submit_joined(job, rank);
            }
        }
        job_write_window(job, in);
    }
    job->in_epoch = false;
    wait_for_all(job);
}

static void surprise(struct job *job)
{
    struct job_set *set = &job->sets[1 + job_draw(job, JOB_MOST_SETS - 1)];
    struct job_set *any = set->is_live && job_draw(job, 2) == 0 ? set : &job->sets[0];

    switch (job_draw(job, job->has_steady_sets ? 10 : 6)) {
    case 0:
        job_reshape(job, &any->tensors[job_draw(job, (unsigned)any->tensor_count)]);
        break;
    case 1:
        regroup(job, any);
        break;
    case 2:
        if (any->tensor_count < JOB_MOST_TENSORS) {
            job_add_tensor(job, any);
        }
        break;
    case 3:
    case 6:
    case 7:
    case 8:
    case 9:
        if (set->is_live) {
            remove_set(job, set);
        } else {
            add_set(job, set);
        }
        break;
    case 4:
        if (job->has_joins) {
            write_epoch(job);
        }
        break;
    default:
        program_tune(&job->programs[0], (int64_t)job_draw(job, 3) * 1000);
    }
}

/* --- the whole job --- */

static void write_job(struct job *job)
{
    bool in[JOB_MOST_RANKS];
    int windows = 10 + (int)job_draw(job, 60);
    int leaving = job_draw(job, 3) == 0 ? (int)job_draw(job, (unsigned)windows) : -1;

    memset(in, 1, sizeof(in));
    for (int i = 1; i < JOB_MOST_SETS && job->has_steady_sets; i++) {
        add_set(job, &job->sets[i]);
    }
    while (job->windows < windows) {
        job_write_window(job, in);
        if (job_draw(job, 12) == 0) {
            surprise(job);
        }
        if (leaving >= 0 && job->windows > leaving) {
            program_leave(&job->programs[job_draw(job, (unsigned)job->size)]);
            leaving = -1;
        }
    }
    wait_for_all(job);
}

bool job_try(unsigned seed, struct job_counts *counts, char *fault, size_t bytes)
{
    struct job *job = malloc(sizeof(*job));
    struct sim sim;
    bool passed;

    begin(job, seed);
    write_job(job);
    sim_init(&sim, job->nodes, &job->settings, seed);
    sim.slow_rank = job->slow_rank;
    passed = programs_run(&sim, job->programs);
    snprintf(fault, bytes, "%s", sim.fault);
    counts->replayed_in_sets += sim.replayed_in_sets;
    counts->void_in_sets += sim.void_in_sets;
    sim_finish(&sim);
    programs_finish(job->programs, job->size);
    free(job);
    return passed;
}
