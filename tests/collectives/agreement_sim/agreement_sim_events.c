/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the events that simulated agreements return: sends messages, adds and
 * removes process sets, and runs batches in teams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/agreement_sim/agreement_sim_check.h"
#include "tests/collectives/agreement_sim/agreement_sim_internal.h"

/* --- messages --- */

static void append(struct sim_rank *from, struct sim_link *link, const void *payload,
                   size_t bytes, bool is_farewell)
{
    struct sim_message *message = malloc(sizeof(*message) + bytes);

    if (bytes > from->sim->most_bytes) {
        from->sim->most_bytes = bytes;
    }
    message->next = NULL;
    message->is_farewell = is_farewell;
    message->bytes = bytes;
    if (bytes > 0) {
        memcpy(message->data, payload, bytes);
    }
    if (link->first == NULL) {
        link->first = message;
    } else {
        link->last->next = message;
    }
    link->last = message;
}

void sim_send_farewell(struct sim_rank *rank)
{
    for (int i = 0; i < rank->child_count; i++) {
        append(rank, &rank->children[i]->inbox[0], NULL, 0, true);
    }
}

struct sim_message *sim_take(struct sim_link *link)
{
    struct sim_message *message = link->first;

    if (message != NULL) {
        link->first = message->next;
    }
    return message;
}

static bool is_on_node(const struct sim_rank *rank, int other)
{
    const int *node = rank->sim->layout.node;

    return node[other] == node[rank->rank];
}

static void send_down(struct sim_rank *rank, const struct hvd_agreement_event *event)
{
    int child = event->down.child;

    for (int i = 0; i < rank->child_count; i++) {
        struct sim_rank *to = rank->children[i];

        if (child == HVD_AGREEMENT_NODE ? is_on_node(rank, to->rank) : i == child) {
            append(rank, &to->inbox[0], event->data, event->bytes, false);
        }
    }
}

/* --- teams --- */

int sim_add_team(struct sim *sim, int size)
{
    sim->teams =
        realloc(sim->teams, ((size_t)sim->team_count + 1) * sizeof(sim->teams[0]));
    sim->teams[sim->team_count] =
        (struct sim_team){.size = size,
                          .next = calloc((size_t)sim->layout.size, sizeof(int64_t)),
                          .knows = calloc((size_t)sim->layout.size, sizeof(bool))};
    return sim->team_count++;
}

/* Returns the oldest team with these members and this set number that the rank has not
 * added; the number of teams, if there is none. All ranks that add sets add them in the
 * same order. */
static int find_team(const struct sim_rank *rank, const struct hvd_set *members)
{
    int number = HVD_PRIORITIES;

    while (number < rank->sim->team_count) {
        const struct sim_team *team = &rank->sim->teams[number];

        if (team->set == members->id && !team->knows[rank->rank] &&
            team->size == members->count &&
            memcmp(team->ranks, members->ranks,
                   (size_t)team->size * sizeof(team->ranks[0])) == 0) {
            break;
        }
        number++;
    }
    return number;
}

static void add_set(struct sim_rank *rank, const struct hvd_set *members)
{
    size_t bytes = (size_t)members->count * sizeof(members->ranks[0]);
    int set = members->id, team = find_team(rank, members);

    if (set <= 0 || set >= SIM_MOST_SETS || rank->teams[set] != 0) {
        sim_fault(rank->sim, "rank %d adds set %d", rank->rank, set);
        return;
    }
    if (team == rank->sim->team_count) {
        sim_add_team(rank->sim, members->count);
        rank->sim->teams[team].set = set;
        rank->sim->teams[team].ranks = malloc(bytes);
        memcpy(rank->sim->teams[team].ranks, members->ranks, bytes);
    }
    rank->sim->teams[team].knows[rank->rank] = true;
    rank->teams[set] = team;
}

static void remove_set(struct sim_rank *rank, int set)
{
    sim_check_remove(rank, rank->teams[set]);
    if (rank->is_paused[set]) {
        sim_fault(rank->sim, "rank %d removes set %d, which stands still", rank->rank,
                  set);
    }
    rank->teams[set] = 0;
}

static void run(struct sim_rank *rank, struct hvd_batch *batch)
{
    struct sim_batch *added = calloc(1, sizeof(*added));
    struct sim_batch **end = &rank->batches;

    if (batch->header.set != HVD_SET_GLOBAL && batch->number != 0) {
        rank->sim->replayed_in_sets++;
        rank->sim->void_in_sets += batch->entries[0]->is_cancelled ? 1 : 0;
    }
    added->batch = batch;
    added->team = batch->header.set == HVD_SET_GLOBAL ? (int)batch->header.priority
                                                      : rank->teams[batch->header.set];
    added->number = rank->sim->teams[added->team].next[rank->rank]++;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = added;
}

static void pause_set(struct sim_rank *rank, int set, bool is_paused)
{
    if (set < 0 || set >= SIM_MOST_SETS || rank->is_paused[set] == is_paused) {
        sim_fault(rank->sim, "rank %d pauses set %d twice", rank->rank, set);
        return;
    }
    rank->is_paused[set] = is_paused;
}

static void cancel(struct sim_rank *rank, const struct hvd_batch *batch)
{
    for (struct sim_batch *at = rank->batches; at != NULL; at = at->next) {
        if (at->batch == batch && rank->is_paused[batch->header.set]) {
            return;
        }
    }
    sim_fault(rank->sim, "rank %d takes tensors back that are gone", rank->rank);
}

void sim_entry_ended(void *context, struct hvd_entry *entry, int status, const char *text)
{
    struct sim_rank *rank = context;

    rank->ended++;
    rank->failed += status != 0;
    rank->sim->last_end_ns = rank->sim->now_ns;
    sim_check_end(rank, entry, status, text);
    rank->joins += entry->descriptor.kind == HVD_KIND_JOIN && status == 0 ? 1 : 0;
    hvd_entry_end(entry, status, text);
}

static void give_up(struct sim_rank *rank, int silent, const char *text)
{
    rank->gave_up = true;
    rank->gave_up_for = silent;
    snprintf(rank->reason, sizeof(rank->reason), "%s", text);
}

static void show_stack(struct sim_rank *rank)
{
    char text[32];

    snprintf(text, sizeof(text), "in rank %d\n", rank->rank);
    if (!rank->is_mute && hvd_agreement_tell_stack(rank->agreement, text) != 0) {
        sim_fault(rank->sim, "rank %d cannot tell its stack", rank->rank);
    }
}

static void take_stack(struct sim_rank *rank, int late, const char *text)
{
    const size_t used = strlen(rank->sim->stacks);
    char expected[32];

    snprintf(expected, sizeof(expected), "in rank %d\n", late);
    if (rank->rank != 0 || strcmp(text, expected) != 0) {
        sim_fault(rank->sim, "rank %d gets for rank %d: %s", rank->rank, late, text);
    }
    snprintf(rank->sim->stacks + used, sizeof(rank->sim->stacks) - used, "%d ", late);
}

static void carry_out(struct sim_rank *rank, const struct hvd_agreement_event *event)
{
    switch (event->kind) {
    case HVD_AGREEMENT_SEND_UP:
        append(rank, &rank->parent->inbox[rank->branch], event->data, event->bytes,
               false);
        break;
    case HVD_AGREEMENT_SEND_DOWN:
        send_down(rank, event);
        break;
    case HVD_AGREEMENT_RUN:
        run(rank, event->batch);
        break;
    case HVD_AGREEMENT_PAUSE:
    case HVD_AGREEMENT_CONTINUE:
        pause_set(rank, event->set->id, event->kind == HVD_AGREEMENT_PAUSE);
        break;
    case HVD_AGREEMENT_CANCEL:
        cancel(rank, event->batch);
        break;
    case HVD_AGREEMENT_ADD_SET:
        add_set(rank, event->set);
        break;
    case HVD_AGREEMENT_REMOVE_SET:
        remove_set(rank, event->set->id);
        break;
    case HVD_AGREEMENT_GIVE_UP:
        give_up(rank, event->silent, event->data);
        break;
    case HVD_AGREEMENT_SHOW_STACK:
        show_stack(rank);
        break;
    case HVD_AGREEMENT_STACK:
        take_stack(rank, event->late, event->data);
        break;
    case HVD_AGREEMENT_ABORT_SET:
    case HVD_AGREEMENT_HEARD:
        break;
    }
}

void sim_conclude(struct sim_rank *rank, int status)
{
    const struct hvd_agreement_event *event;

    while ((event = hvd_agreement_next(rank->agreement, &status)) != NULL) {
        carry_out(rank, event);
    }
    if (status == HVD_ERR_PEER && rank->gave_up && rank->gave_up_for >= 0) {
        /* the rank has reported why it gives up, and ends its part of the job */
        rank->has_left = true;
    } else if (status != 0) {
        sim_fault(rank->sim, "rank %d: status %d", rank->rank, status);
    }
}

/* --- batches --- */

static struct sim_round *round_of(struct sim_team *team, int64_t number)
{
    if (number == team->capacity) {
        team->capacity = 2 * team->capacity + 16;
        team->rounds =
            realloc(team->rounds, (size_t)team->capacity * sizeof(team->rounds[0]));
    }
    if (number == team->count) {
        team->rounds[team->count++] = (struct sim_round){0};
    }
    return &team->rounds[number];
}

static bool has_root(const struct sim_rank *rank, const struct hvd_batch *batch)
{
    return batch->header.kind == HVD_KIND_BROADCAST &&
           batch->entries[0]->descriptor.root == rank->rank;
}

static void start(struct sim_rank *rank, struct sim_batch *at)
{
    struct sim_round *round = round_of(&rank->sim->teams[at->team], at->number);

    at->is_started = true;
    round->starters++;
    round->has_root |= has_root(rank, at->batch);
    sim_check_start(rank, at->team, at->number, at->batch);
}

/* Whether the batch may end on this rank: a broadcast may if its root has started it,
 * other batches if all ranks have started them. */
static bool may_end(const struct sim *sim, const struct sim_batch *at)
{
    const struct sim_team *team = &sim->teams[at->team];
    const struct sim_round *round = &team->rounds[at->number];

    return at->batch->header.kind == HVD_KIND_BROADCAST ? round->has_root
                                                        : round->starters == team->size;
}

static void finish(struct sim_rank *rank, struct sim_batch **link)
{
    struct sim_batch *at = *link;

    sim_check_finish(rank, at->team, at->number, at->batch);
    *link = at->next;
    rank->is_asleep = false;
    sim_conclude(rank, hvd_agreement_finish(rank->agreement, at->batch));
    free(at);
}

static bool is_paused(const struct sim_rank *rank, const struct sim_batch *at)
{
    return at->team != HVD_PRIORITY_SPARE && rank->is_paused[at->batch->header.set];
}

bool sim_run_something(struct sim_rank *rank)
{
    struct sim_batch **link = &rank->batches;

    for (; *link != NULL && !rank->sim->holds_batches; link = &(*link)->next) {
        struct sim_batch *at = *link;
        bool is_first = true;

        for (struct sim_batch *other = rank->batches; other != at; other = other->next) {
            is_first &= other->team != at->team;
        }
        if (!is_first || is_paused(rank, at)) {
            continue;
        }
        if (!at->is_started) {
            start(rank, at);
            return true;
        }
        if (may_end(rank->sim, at)) {
            finish(rank, link);
            return true;
        }
    }
    return false;
}
