/* SPDX-License-Identifier: Apache-2.0 */
/* A job of agreements in one process: its life, and what can happen. */
#include "tests/collectives/agreement_sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/tree.h"
#include "tests/collectives/agreement_sim_check.h"
#include "tests/collectives/agreement_sim_internal.h"

void sim_fault(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->fault[0] == '\0') {
        va_start(args, format);
        vsnprintf(sim->fault, sizeof(sim->fault), format, args);
        va_end(args);
    }
}

void sim_check_status(struct sim_rank *rank, int status)
{
    if (status != 0) {
        sim_fault(rank->sim, "rank %d: status %d", rank->rank, status);
    }
}

struct hvd_agreement_settings sim_settings(void)
{
    return (struct hvd_agreement_settings){
        .fusion = {.threshold = 128 << 20, .capacity = 1024, .cycle_ns = 1000000},
        .may_plan = true,
    };
}

/* --- life --- */

static void lay_out(struct sim *sim, const int *nodes)
{
    const char **hosts = NULL;
    char(*names)[16] = NULL;
    int size = 0, count = 0;

    while (nodes[count] > 0) {
        size += nodes[count++];
    }
    hosts = calloc((size_t)size, sizeof(hosts[0]));
    names = calloc((size_t)count, sizeof(names[0]));
    size = 0;
    for (int n = 0; n < count; n++) {
        snprintf(names[n], sizeof(names[n]), "n%d", n);
        for (int i = 0; i < nodes[n]; i++) {
            hosts[size++] = names[n];
        }
    }
    hvd_layout_init(&sim->layout, hosts, size, NULL);
    free(hosts);
    free(names);
}

static void connect_children(struct sim *sim, struct sim_rank *rank)
{
    int count = hvd_tree_children(&sim->layout, rank->rank, NULL);
    int *children = calloc((size_t)count + 1, sizeof(children[0]));

    hvd_tree_children(&sim->layout, rank->rank, children);
    rank->children = calloc((size_t)count + 1, sizeof(rank->children[0]));
    rank->inbox = calloc((size_t)count + 1, sizeof(rank->inbox[0]));
    rank->child_count = count;
    for (int i = 0; i < count; i++) {
        rank->children[i] = &sim->ranks[children[i]];
        rank->children[i]->parent = rank;
        rank->children[i]->branch = i + 1;
    }
    free(children);
}

void sim_init_unchecked(struct sim *sim, const int *nodes,
                        const struct hvd_agreement_settings *settings)
{
    struct hvd_agreement_settings usual = sim_settings();

    *sim = (struct sim){.now_ns = 1000000, .slow_rank = -1};
    lay_out(sim, nodes);
    sim->ranks = calloc((size_t)sim->layout.size, sizeof(sim->ranks[0]));
    for (int i = 0; i < HVD_LANES; i++) {
        sim_add_team(sim, sim->layout.size);
    }
    for (int i = 0; i < sim->layout.size; i++) {
        struct sim_rank *rank = &sim->ranks[i];

        rank->sim = sim;
        rank->rank = i;
        connect_children(sim, rank);
        if (hvd_agreement_create(&sim->layout, i, settings != NULL ? settings : &usual,
                                 &sim_ops, rank, &rank->agreement, NULL) != 0) {
            sim_fault(sim, "rank %d cannot begin", i);
        }
    }
}

void sim_init(struct sim *sim, const int *nodes,
              const struct hvd_agreement_settings *settings, unsigned seed)
{
    sim_init_unchecked(sim, nodes, settings);
    sim->check = sim_check_create(sim);
    sim->random = hvd_hash_number(seed + 1);
}

static void finish_rank(struct sim_rank *rank)
{
    struct sim_message *message;

    while (rank->batches != NULL) {
        struct sim_batch *next = rank->batches->next;

        hvd_batch_destroy(rank->batches->batch);
        free(rank->batches);
        rank->batches = next;
    }
    for (int i = 0; i <= rank->child_count; i++) {
        while ((message = sim_take(&rank->inbox[i])) != NULL) {
            free(message);
        }
    }
    hvd_agreement_destroy(rank->agreement);
    free(rank->children);
    free(rank->inbox);
}

void sim_finish(struct sim *sim)
{
    for (int i = 0; i < sim->layout.size; i++) {
        finish_rank(&sim->ranks[i]);
    }
    for (int i = 0; i < sim->team_count; i++) {
        for (int64_t j = 0; j < sim->teams[i].count; j++) {
            sim_check_forget(&sim->teams[i].rounds[j]);
        }
        free(sim->teams[i].rounds);
        free(sim->teams[i].next);
    }
    sim_check_destroy(sim->check);
    free(sim->teams);
    free(sim->ranks);
    hvd_layout_finish(&sim->layout);
}

/* --- tensors --- */

struct hvd_proposal sim_allreduce(const char *name, int64_t elements)
{
    return (struct hvd_proposal){
        .kind = HVD_KIND_ALLREDUCE,
        .dtype = HVD_FLOAT32,
        .op = HVD_SUM,
        .device = HVD_DEVICE_CPU,
        .prescale = 1.0,
        .postscale = 1.0,
        .ndim = 1,
        .shape = {elements},
        .name = name,
    };
}

static void form_group(struct hvd_request *request)
{
    uint64_t group = (uint64_t)request->count;

    for (int i = 0; i < request->count; i++) {
        group = hvd_hash_number(group ^ request->entries[i].key.hash);
    }
    for (int i = 0; i < request->count; i++) {
        request->entries[i].proposal.group = group;
        request->entries[i].proposal.group_size = request->count;
    }
}

struct hvd_request *sim_submit(struct sim *sim, int number,
                               const struct hvd_proposal *const *tensors, int count)
{
    struct hvd_request *request = hvd_request_create(count);
    struct sim_rank *rank = &sim->ranks[number];

    rank->is_asleep = false;
    for (int i = 0; i < count; i++) {
        struct hvd_entry *entry = &request->entries[i];

        entry->proposal = *tensors[i];
        entry->proposal.name = strdup(tensors[i]->name);
        entry->proposal.note = tensors[i]->note != NULL ? strdup(tensors[i]->note) : NULL;
        entry->key = hvd_key_make(tensors[i]->set, entry->proposal.name);
    }
    if (count > 1) {
        form_group(request);
    }
    for (int i = 0; i < count; i++) {
        if (rank->has_left) { /* refused before it gets to the agreement */
            hvd_entry_end(&request->entries[i], HVD_ERR_SHUTDOWN, "too late");
            continue;
        }
        sim_check_submit(rank, &request->entries[i]);
        if (hvd_agreement_submit(rank->agreement, &request->entries[i], sim->now_ns) !=
            0) {
            sim_fault(sim, "rank %d cannot submit %s", number, tensors[i]->name);
        }
    }
    return request;
}

void sim_wait(struct sim *sim, int number, bool is_waited)
{
    struct sim_rank *rank = &sim->ranks[number];

    rank->is_asleep &= rank->is_waited == is_waited;
    rank->is_waited = is_waited;
}

bool sim_has_ended(const struct hvd_request *request)
{
    return atomic_load(&request->status) != HVD_INPROGRESS;
}

/* --- what can happen --- */

unsigned sim_draw(struct sim *sim, unsigned below)
{
    sim->random = sim->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(sim->random >> 33) % below;
}

static void leave(struct sim_rank *rank)
{
    sim_send_down(rank, NULL, 0, true);
    rank->has_left = true;
    hvd_agreement_drop(rank->agreement, false, HVD_ERR_SHUTDOWN, "shut down");
}

void sim_leave(struct sim *sim)
{
    sim->is_leaving = true;
    sim->ranks[0].is_asleep = false;
}

static void deliver(struct sim_rank *rank, int link, const struct sim_message *message)
{
    int64_t now_ns = rank->sim->now_ns;

    rank->is_asleep = false;
    rank->chain = message->chain > rank->chain ? message->chain : rank->chain;
    if (rank->has_left) {
        return;
    }
    if (message->is_farewell) {
        leave(rank);
        return;
    }
    sim_check_status(
        rank, link == 0 ? hvd_agreement_from_above(rank->agreement, message->data,
                                                   message->bytes, now_ns)
                        : hvd_agreement_from_below(rank->agreement, link, message->data,
                                                   message->bytes, now_ns));
}

static bool take_message(struct sim_rank *rank, unsigned first)
{
    unsigned links = 1 + (unsigned)rank->child_count;

    for (unsigned i = 0; i < links; i++) {
        int link = (int)((first + i) % links);
        struct sim_message *message = sim_take(&rank->inbox[link]);

        if (message != NULL) {
            deliver(rank, link, message);
            free(message);
            return true;
        }
    }
    return false;
}

static bool is_to_progress(const struct sim_rank *rank)
{
    return !rank->has_left && (!rank->is_asleep || (rank->wake_ns >= 0 &&
                                                    rank->sim->now_ns >= rank->wake_ns));
}

static bool progress(struct sim_rank *rank)
{
    bool moved = false;
    int status = 0;

    if (!is_to_progress(rank)) {
        return false;
    }
    sim_check_status(rank, hvd_agreement_progress(rank->agreement, rank->is_waited,
                                                  rank->sim->now_ns, &moved));
    if (rank->sim->is_leaving && rank->parent == NULL &&
        hvd_agreement_settle(rank->agreement, &status)) {
        leave(rank);
        moved = true;
    }
    sim_check_status(rank, status);
    rank->is_asleep = !moved;
    rank->wake_ns =
        hvd_agreement_deadline(rank->agreement, rank->is_waited, rank->sim->now_ns);
    return moved;
}

static bool act(struct sim_rank *rank, unsigned what)
{
    switch (what) {
    case 0:
        return take_message(rank, sim_draw(rank->sim, 1 + (unsigned)rank->child_count));
    case 1:
        return sim_run_something(rank);
    default:
        return progress(rank);
    }
}

static bool act_at_random(struct sim_rank *rank)
{
    unsigned what = sim_draw(rank->sim, 3);

    return act(rank, what) || act(rank, (what + 1) % 3) || act(rank, (what + 2) % 3);
}

static bool anything(struct sim *sim)
{
    unsigned size = (unsigned)sim->layout.size, first = sim_draw(sim, size);
    bool has_slow = sim->slow_rank >= 0 && sim->slow_rank < sim->layout.size;
    bool spares_slow = has_slow && sim_draw(sim, 24) != 0;

    for (unsigned i = 0; i < size; i++) {
        int rank = (int)((first + i) % size);

        if (!(spares_slow && rank == sim->slow_rank) &&
            act_at_random(&sim->ranks[rank])) {
            return true;
        }
    }
    return spares_slow && act_at_random(&sim->ranks[sim->slow_rank]);
}

/* Time passes in small steps, now and then in a large one. */
static void pass_time(struct sim *sim)
{
    sim->now_ns += sim_draw(sim, 100) == 0 ? sim_draw(sim, 2000000) : 100;
}

static int64_t next_deadline(const struct sim *sim)
{
    int64_t next = -1;

    for (int i = 0; i < sim->layout.size; i++) {
        const struct sim_rank *rank = &sim->ranks[i];
        int64_t due = rank->has_left ? -1 : rank->wake_ns;

        if (due >= 0 && (next < 0 || due < next)) {
            next = due;
        }
    }
    return next;
}

bool sim_step(struct sim *sim, int64_t patience_ns)
{
    int64_t next;

    sim->moves++;
    pass_time(sim);
    if (anything(sim)) {
        return true;
    }
    next = next_deadline(sim);
    if (next < 0 || next - sim->now_ns > patience_ns) {
        return false;
    }
    sim->now_ns = next > sim->now_ns ? next + 1 : sim->now_ns + 1000;
    return true;
}

void sim_settle(struct sim *sim)
{
    while (sim->fault[0] == '\0') {
        sim->now_ns += 100;
        if (!anything(sim)) {
            return;
        }
    }
}

static bool take_turn(struct sim_rank *rank)
{
    bool moved = false;

    while (rank->sim->fault[0] == '\0' &&
           (take_message(rank, 0) || sim_run_something(rank) || progress(rank))) {
        moved = true;
    }
    return moved;
}

void sim_settle_in_turn(struct sim *sim)
{
    bool moved = true;

    while (moved && sim->fault[0] == '\0') {
        moved = false;
        sim->now_ns += 100;
        for (int i = 0; i < sim->layout.size; i++) {
            moved |= take_turn(&sim->ranks[i]);
        }
    }
}
