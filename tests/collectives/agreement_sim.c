/* SPDX-License-Identifier: Apache-2.0 */
/* A job of agreements in one process. */
#include "tests/collectives/agreement_sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/tree.h"

struct sim_message {
    struct sim_message *next;
    int from;
    size_t bytes;
    char data[];
};

struct sim_batch {
    struct sim_batch *next;
    struct hvd_batch *batch;
    int queue; /* lane of the global set, or a process set */
    int64_t number; /* of this queue on this rank */
    bool is_started;
};

enum {
    MAX_QUEUES = 64,
    MAX_HISTORY = 1 << 20
};

/* What the batches of a queue were, as the first rank that started them saw it. */
static struct history {
    char **text; /* [count] */
    int64_t count;
    int *starters; /* [count] ranks that have started it */
} histories[MAX_QUEUES];
static int64_t queue_numbers[MAX_QUEUES][1024];

void sim_fault(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->fault[0] == '\0') {
        va_start(args, format);
        vsnprintf(sim->fault, sizeof(sim->fault), format, args);
        va_end(args);
    }
}

static void append_message(struct sim_message **list, int from, const void *payload,
                           size_t bytes)
{
    struct sim_message *message = malloc(sizeof(*message) + bytes);

    message->next = NULL;
    message->from = from;
    message->bytes = bytes;
    memcpy(message->data, payload, bytes);
    while (*list != NULL) {
        list = &(*list)->next;
    }
    *list = message;
}

static int send_up(void *context, const void *payload, size_t bytes)
{
    struct sim_rank *rank = context;
    int parent = hvd_tree_parent(&rank->sim->layout, rank->rank);

    append_message(&rank->sim->ranks[parent].from_child, rank->rank, payload, bytes);
    return 0;
}

static int send_down(void *context, const void *payload, size_t bytes)
{
    struct sim_rank *rank = context;
    int children[1024];
    int count = hvd_tree_children(&rank->sim->layout, rank->rank, children);

    for (int i = 0; i < count; i++) {
        append_message(&rank->sim->ranks[children[i]].from_parent, rank->rank, payload,
                       bytes);
    }
    return 0;
}

static int queue_of(const struct hvd_batch *batch)
{
    return batch->header.set == HVD_SET_GLOBAL ? (int)batch->header.lane
                                               : HVD_LANES + batch->header.set;
}

static void run(void *context, struct hvd_batch *batch)
{
    struct sim_rank *rank = context;
    struct sim_batch *added = calloc(1, sizeof(*added));
    struct sim_batch **end = &rank->batches;

    added->batch = batch;
    added->queue = queue_of(batch);
    added->number = queue_numbers[added->queue][rank->rank]++;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = added;
}

static void pause_lanes(void *context, bool is_paused)
{
    struct sim_rank *rank = context;

    rank->is_paused = is_paused;
}

static void make_void(void *context, struct hvd_batch *batch)
{
    struct sim_rank *rank = context;

    for (struct sim_batch *at = rank->batches; at != NULL; at = at->next) {
        if (at->batch == batch) {
            return;
        }
    }
    sim_fault(rank->sim, "rank %d takes tensors back that are gone", rank->rank);
}

static void end_entry(void *context, struct hvd_entry *entry, int status,
                      const char *text)
{
    struct sim_rank *rank = context;

    rank->ended++;
    rank->failed += status != 0;
    hvd_entry_end(entry, status, text);
}

static int add_set(void *context, int set, const int *ranks, int count)
{
    (void)context;
    (void)set;
    (void)ranks;
    (void)count;
    return 0;
}

static void remove_set(void *context, int set)
{
    (void)context;
    (void)set;
}

static void give_up(void *context, const char *text)
{
    struct sim_rank *rank = context;

    (void)text;
    rank->gave_up = true;
}

static const struct hvd_agreement_ops ops = {
    .send_up = send_up,
    .send_down = send_down,
    .run = run,
    .pause = pause_lanes,
    .make_void = make_void,
    .end = end_entry,
    .add_set = add_set,
    .remove_set = remove_set,
    .give_up = give_up,
};

struct hvd_agreement_settings sim_settings(void)
{
    return (struct hvd_agreement_settings){
        .fusion = {.threshold = 128 << 20, .capacity = 1024, .cycle_ns = 1000000},
        .may_plan = true,
    };
}

void sim_init(struct sim *sim, const int *nodes,
              const struct hvd_agreement_settings *settings, unsigned seed)
{
    struct hvd_agreement_settings usual = sim_settings();
    const char *hosts[1024] = {NULL};
    static char names[1024][16];
    int size = 0;

    memset(queue_numbers, 0, sizeof(queue_numbers));
    for (int n = 0; nodes[n] > 0; n++) {
        snprintf(names[n], sizeof(names[n]), "n%d", n);
        for (int i = 0; i < nodes[n]; i++) {
            hosts[size++] = names[n];
        }
    }
    *sim = (struct sim){.seed = seed, .now_ns = 1000000};
    hvd_layout_init(&sim->layout, hosts, size, NULL);
    sim->ranks = calloc((size_t)size, sizeof(sim->ranks[0]));
    for (int i = 0; i < size; i++) {
        sim->ranks[i].sim = sim;
        sim->ranks[i].rank = i;
        hvd_agreement_create(&sim->layout, i, settings != NULL ? settings : &usual, &ops,
                             &sim->ranks[i], &sim->ranks[i].agreement, NULL);
    }
}

static void free_messages(struct sim_message *message)
{
    while (message != NULL) {
        struct sim_message *next = message->next;

        free(message);
        message = next;
    }
}

void sim_finish(struct sim *sim)
{
    for (int i = 0; i < sim->layout.size; i++) {
        struct sim_rank *rank = &sim->ranks[i];

        while (rank->batches != NULL) {
            struct sim_batch *next = rank->batches->next;

            hvd_batch_destroy(rank->batches->batch);
            free(rank->batches);
            rank->batches = next;
        }
        free_messages(rank->from_parent);
        free_messages(rank->from_child);
        hvd_agreement_destroy(rank->agreement);
    }
    for (int i = 0; i < MAX_QUEUES; i++) {
        for (int64_t j = 0; j < histories[i].count; j++) {
            free(histories[i].text[j]);
        }
        free(histories[i].text);
        free(histories[i].starters);
        histories[i] = (struct history){0};
    }
    free(sim->ranks);
    hvd_layout_finish(&sim->layout);
}

struct hvd_request *sim_submit_as(struct sim *sim, int rank,
                                  const struct hvd_proposal *proposal)
{
    struct hvd_request *request = hvd_request_create(1);
    struct hvd_entry *entry = &request->entries[0];

    entry->proposal = *proposal;
    entry->proposal.name = strdup(proposal->name);
    entry->proposal.note = proposal->note != NULL ? strdup(proposal->note) : NULL;
    entry->key = hvd_key_make(proposal->set, entry->proposal.name);
    if (hvd_agreement_submit(sim->ranks[rank].agreement, entry, sim->now_ns) != 0) {
        sim_fault(sim, "rank %d cannot submit %s", rank, proposal->name);
    }
    return request;
}

struct hvd_request *sim_submit(struct sim *sim, int rank, const char *name,
                               int64_t elements)
{
    const struct hvd_proposal proposal = {
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

    return sim_submit_as(sim, rank, &proposal);
}

bool sim_has_ended(const struct hvd_request *request)
{
    return atomic_load(&request->status) != HVD_INPROGRESS;
}

/* --- what can happen --- */

static unsigned draw(struct sim *sim, unsigned below)
{
    sim->seed = sim->seed * 1103515245u + 12345u;
    return (sim->seed >> 8) % below;
}

static void check_status(struct sim *sim, const struct sim_rank *rank, int status)
{
    if (status != 0) {
        sim_fault(sim, "rank %d: status %d", rank->rank, status);
    }
}

static int branch_of(const struct sim *sim, int rank, int child)
{
    int children[1024];
    int count = hvd_tree_children(&sim->layout, rank, children);

    for (int i = 0; i < count; i++) {
        if (children[i] == child) {
            return i + 1;
        }
    }
    return -1;
}

static bool take_message(struct sim *sim, struct sim_rank *rank, bool from_parent)
{
    struct sim_message **list = from_parent ? &rank->from_parent : &rank->from_child;
    struct sim_message *message = *list;
    int status;

    if (message == NULL) {
        return false;
    }
    *list = message->next;
    status = from_parent
                 ? hvd_agreement_from_above(rank->agreement, message->data,
                                            message->bytes, sim->now_ns)
                 : hvd_agreement_from_below(rank->agreement,
                                            branch_of(sim, rank->rank, message->from),
                                            message->data, message->bytes, sim->now_ns);
    check_status(sim, rank, status);
    free(message);
    return true;
}

static void describe(const struct hvd_batch *batch, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%s", hvd_kind_name(batch->header.kind));

    for (int64_t i = 0; i < batch->header.count && used < bytes; i++) {
        used += (size_t)snprintf(text + used, bytes - used, " %s:%ld",
                                 batch->entries[i]->proposal.name,
                                 (long)hvd_entry_count(batch->entries[i]));
    }
}

static void note_start(struct sim *sim, struct sim_batch *at)
{
    struct history *history = &histories[at->queue];
    static char text[1 << 16];

    describe(at->batch, text, sizeof(text));
    at->is_started = true;
    if (at->number == history->count) {
        history->text = realloc(history->text,
                                (size_t)(history->count + 1) * sizeof(history->text[0]));
        history->starters = realloc(history->starters, (size_t)(history->count + 1) *
                                                           sizeof(history->starters[0]));
        history->text[history->count] = strdup(text);
        history->starters[history->count++] = 0;
    } else if (strcmp(history->text[at->number], text) != 0) {
        sim_fault(sim, "queue %d batch %ld: %.80s, elsewhere %.80s", at->queue,
                  (long)at->number, text, history->text[at->number]);
    }
    history->starters[at->number]++;
}

static int needed_starters(const struct sim *sim, const struct hvd_batch *batch)
{
    const struct hvd_members *members = hvd_agreement_members(sim->ranks[0].agreement);
    const struct hvd_member_set *set = hvd_members_find(members, batch->header.set);

    return set != NULL ? set->count : 1;
}

/* Starts the first batch of each queue, ends one that all have started. */
static bool run_something(struct sim *sim, struct sim_rank *rank)
{
    bool busy[MAX_QUEUES] = {false};

    for (struct sim_batch **at = &rank->batches; *at != NULL; at = &(*at)->next) {
        struct sim_batch *batch = *at;

        if (busy[batch->queue] || (rank->is_paused && batch->queue < HVD_LANE_SPARE)) {
            continue;
        }
        busy[batch->queue] = true;
        if (!batch->is_started) {
            note_start(sim, batch);
            return true;
        }
        if (histories[batch->queue].starters[batch->number] >=
            needed_starters(sim, batch->batch)) {
            *at = batch->next;
            check_status(sim, rank, hvd_agreement_finish(rank->agreement, batch->batch));
            free(batch);
            return true;
        }
    }
    return false;
}

static bool progress(struct sim *sim, struct sim_rank *rank)
{
    bool moved = false;

    check_status(
        sim, rank,
        hvd_agreement_progress(rank->agreement, rank->is_waited, sim->now_ns, &moved));
    return moved;
}

static bool act(struct sim *sim, struct sim_rank *rank, unsigned what)
{
    switch (what) {
    case 0:
        return take_message(sim, rank, true);
    case 1:
        return take_message(sim, rank, false);
    case 2:
        return run_something(sim, rank);
    default:
        return progress(sim, rank);
    }
}

static bool anything(struct sim *sim)
{
    unsigned size = (unsigned)sim->layout.size;
    unsigned first = draw(sim, size), what = draw(sim, 4);

    for (unsigned i = 0; i < size; i++) {
        for (unsigned j = 0; j < 4; j++) {
            if (act(sim, &sim->ranks[(first + i) % size], (what + j) % 4)) {
                return true;
            }
        }
    }
    return false;
}

bool sim_step(struct sim *sim)
{
    int64_t next = -1;

    sim->moves++;
    sim->now_ns += 100;
    if (anything(sim)) {
        return true;
    }
    for (int i = 0; i < sim->layout.size; i++) {
        int64_t due = hvd_agreement_deadline(sim->ranks[i].agreement,
                                             sim->ranks[i].is_waited, sim->now_ns);

        if (due >= 0 && (next < 0 || due < next)) {
            next = due;
        }
    }
    if (next < 0) {
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
