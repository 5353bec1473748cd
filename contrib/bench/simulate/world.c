/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete events of an allreduce: work that ends, messages that leave and come,
 * signals that are seen. A rank does one thing at a time, messages that came in first, as
 * the engine does. */
#include "contrib/bench/simulate/world.h"

#include <math.h>
#include <stdlib.h>

#include "contrib/bench/simulate/network.h"
#include "contrib/bench/simulate/work.h"

/* --- life --- */

static int create_schedules(struct simulate_world *world, int64_t count,
                            struct hvd_error *err)
{
    int status = 0;

    for (int i = 0; i < world->player_count && status == 0; i++) {
        struct simulate_player *player = &world->players[i];
        struct hvd_schedule_query query = {
            .collective = HVD_COLL_ALLREDUCE,
            .layout = world->layout,
            .rank = i,
            .geometry = hvd_usual_geometry,
            .count = count,
            .element_bytes = sizeof(float),
            .partial_bytes = sizeof(float),
        };

        query.geometry.has_single_copy = false; /* most gradients come as lists */

        player->node = world->layout->node[i];
        player->local_rank = world->layout->local_rank[i];
        status = hvd_schedule_create(&query, &player->schedule, err);
    }
    return status;
}

int simulate_world_init(struct simulate_world *world, int64_t count,
                        struct hvd_error *err)
{
    const struct hvd_layout *layout = world->layout;
    int status = 0;

    world->node_count = world->is_mirrored ? 1 : layout->nodes;
    world->player_count =
        world->is_mirrored ? hvd_layout_local_size(layout, 0) : layout->size;
    world->players = calloc((size_t)world->player_count, sizeof(world->players[0]));
    world->nodes = calloc((size_t)world->node_count, sizeof(world->nodes[0]));
    world->cards = calloc((size_t)world->node_count * (size_t)world->machine->cards,
                          sizeof(world->cards[0]));
    if (world->players == NULL || world->nodes == NULL || world->cards == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", layout->size);
    }
    for (int node = 0; node < world->node_count && status == 0; node++) {
        status = simulate_node_init(&world->nodes[node], world->machine,
                                    hvd_layout_local_size(layout, node));
    }
    return status != 0 ? status : create_schedules(world, count, err);
}

void simulate_world_finish(struct simulate_world *world)
{
    for (int i = 0; world->players != NULL && i < world->player_count; i++) {
        simulate_player_finish(&world->players[i]);
    }
    for (int i = 0; world->nodes != NULL && i < world->node_count; i++) {
        simulate_node_finish(&world->nodes[i]);
    }
    free(world->players);
    free(world->nodes);
    free(world->cards);
    simulate_events_finish(&world->events);
}

/* --- what a rank does --- */

/* The player that stands for a rank. */
static int player_of(const struct simulate_world *world, int rank)
{
    return world->is_mirrored ? world->layout->local_rank[rank] : rank;
}

static void plan_end(struct simulate_world *world, int node)
{
    double when = 0;

    if (simulate_node_next(&world->nodes[node], &when) >= 0) {
        simulate_events_put(&world->events,
                            (struct simulate_event){.time = when,
                                                    .kind = SIMULATE_WORK_ENDS,
                                                    .who = node,
                                                    .value = world->nodes[node].version});
    }
}

static bool is_met(const struct simulate_world *world,
                   const struct simulate_player *player, const struct hvd_step *step)
{
    int local_size = hvd_layout_local_size(world->layout, player->node);

    if (step->kind == HVD_STEP_WAIT_SEND) {
        return player->sent >= player->base.sends + step->value;
    }
    if (step->kind == HVD_STEP_WAIT_RECV) {
        return player->received >= player->base.receives + step->value;
    }
    for (int i = 0; i < local_size; i++) {
        int rank = hvd_layout_rank(world->layout, player->node, i);
        const struct simulate_player *other = &world->players[rank];
        uint64_t seen = other == player ? other->signals : other->seen;

        if ((step->peer == -1 || step->peer == i) &&
            seen < player->base.signals + step->value) {
            return false;
        }
    }
    return true;
}

static bool is_wait(const struct hvd_step *step)
{
    return step->kind == HVD_STEP_WAIT || step->kind == HVD_STEP_WAIT_SEND ||
           step->kind == HVD_STEP_WAIT_RECV;
}

/* What a step does to others, once its work is done. */
static void take_effect(struct simulate_world *world, int index,
                        const struct hvd_step *step, double now)
{
    struct simulate_player *player = &world->players[index];

    if (step->kind == HVD_STEP_SIGNAL) {
        player->signals++;
        simulate_events_put(&world->events,
                            (struct simulate_event){.time = now + world->machine->sync,
                                                    .kind = SIMULATE_SIGNAL_SEEN,
                                                    .who = index});
    } else if (step->kind == HVD_STEP_SEND) {
        simulate_send(world, index, player_of(world, step->peer), (double)step->bytes,
                      now);
    } else if (step->kind == HVD_STEP_RECV || step->kind == HVD_STEP_RECV_REDUCE) {
        simulate_player_post(player, player_of(world, step->peer),
                             simulate_receive_work(world->machine, step));
    }
}

static double step_work(const struct simulate_world *world,
                        const struct simulate_player *player)
{
    const struct hvd_step *step = &player->steps[player->step];
    const struct simulate_node *node = &world->nodes[player->node];
    struct simulate_seat seat = {
        .local_rank = player->local_rank,
        .local_size = node->ranks,
        .cores = node->core_count,
        .is_read_by_all =
            hvd_schedule_facts(player->schedule)->turns > 0, /* it is one_shot */
    };
    bool is_early = step->kind == HVD_STEP_RECV_REDUCE &&
                    simulate_player_has_early(player, player_of(world, step->peer));

    return simulate_step_work(world->machine, seat, step) +
           (is_early ? simulate_receive_work(world->machine, step) : 0);
}

static double handling_work(const struct simulate_world *world,
                            const struct simulate_player *player)
{
    const struct simulate_arrival *arrival = &player->arrivals[player->arrival_first];

    return simulate_message_work(world->machine, arrival->bytes) +
           simulate_player_awaited_work(player, arrival->from);
}

/* Whether a rank would do something if it had a core. */
static bool can_go_on(const struct simulate_world *world,
                      const struct simulate_player *player)
{
    const struct hvd_step *step;

    if (player->doing != SIMULATE_WAITING) {
        return false;
    }
    if (simulate_player_has_arrivals(player) || player->has_ended) {
        return simulate_player_has_arrivals(player);
    }
    step = &player->steps[player->step];
    return !is_wait(step) || is_met(world, player, step);
}

static void advance(struct simulate_player *player, double now)
{
    player->has_ended = !simulate_player_advance(player);
    player->end = now;
}

/* As far as it gets without taking time. */
static void pass_waits(struct simulate_world *world, struct simulate_player *player,
                       double now)
{
    while (!player->has_ended && !simulate_player_has_arrivals(player) &&
           is_wait(&player->steps[player->step]) &&
           is_met(world, player, &player->steps[player->step])) {
        advance(player, now);
    }
}

/* A rank that can goes on if it is its turn; else it will be. False: it would not. */
static bool go_on(struct simulate_world *world, int index, double now)
{
    struct simulate_player *player = &world->players[index];
    struct simulate_node *node = &world->nodes[player->node];
    struct simulate_event turn = {.kind = SIMULATE_TURN_COMES, .who = index};
    double work;

    if (!can_go_on(world, player)) {
        return false;
    }
    turn.time = simulate_node_turn(node, player->local_rank, now);
    turn.value = simulate_node_core(node, player->local_rank)->version;
    if (turn.time > now) {
        if (turn.time < INFINITY) {
            simulate_events_put(&world->events, turn);
        }
        return true;
    }
    simulate_node_take(node, player->local_rank, now);
    pass_waits(world, player, now);
    if (simulate_player_has_arrivals(player)) {
        player->doing = SIMULATE_HANDLING;
        work = handling_work(world, player);
    } else if (!player->has_ended && !is_wait(&player->steps[player->step])) {
        player->doing = SIMULATE_STEPPING;
        work = step_work(world, player);
    } else {
        return false;
    }
    simulate_node_start(node, player->local_rank, work, now);
    plan_end(world, player->node);
    return true;
}

/* Lets a rank of the node go on, and while it cannot the others of its core. */
static void share_core(struct simulate_world *world, int index, double now)
{
    const struct simulate_player *player = &world->players[index];
    const struct simulate_node *node = &world->nodes[player->node];

    if (go_on(world, index, now)) {
        return;
    }
    for (int i = player->local_rank % node->core_count; i < node->ranks;
         i += node->core_count) {
        if (i != player->local_rank) {
            go_on(world, hvd_layout_rank(world->layout, player->node, i), now);
        }
    }
}

static void end_work(struct simulate_world *world, const struct simulate_event *event)
{
    struct simulate_node *node = &world->nodes[event->who];
    double when;
    int local_rank, index;
    struct simulate_player *player;

    if (node->version != event->value) {
        return; /* somebody has started or ended since */
    }
    local_rank = simulate_node_next(node, &when);
    index = hvd_layout_rank(world->layout, event->who, local_rank);
    player = &world->players[index];
    simulate_node_end(node, local_rank, event->time);
    if (player->doing == SIMULATE_HANDLING) {
        simulate_player_handle(player, simulate_player_take(player).from);
        player->doing = SIMULATE_WAITING;
    } else {
        player->doing = SIMULATE_WAITING;
        take_effect(world, index, &player->steps[player->step], event->time);
        advance(player, event->time);
    }
    plan_end(world, event->who);
    share_core(world, index, event->time);
}

static void take_turn(struct simulate_world *world, const struct simulate_event *event)
{
    const struct simulate_player *player = &world->players[event->who];
    const struct simulate_core *core =
        simulate_node_core(&world->nodes[player->node], player->local_rank);

    if (core->version == event->value) {
        share_core(world, event->who, event->time);
    }
}

/* A signal may be what any rank of the node waits for. */
static void see_signal(struct simulate_world *world, const struct simulate_event *event)
{
    int node = world->players[event->who].node;

    world->players[event->who].seen++;
    for (int i = 0; i < hvd_layout_local_size(world->layout, node); i++) {
        share_core(world, hvd_layout_rank(world->layout, node, i), event->time);
    }
}

static void happen(struct simulate_world *world, const struct simulate_event *event)
{
    struct simulate_player *player = &world->players[event->who];

    switch (event->kind) {
    case SIMULATE_WORK_ENDS:
        end_work(world, event);
        break;
    case SIMULATE_MESSAGE_LEFT:
        player->sent++;
        share_core(world, event->who, event->time);
        break;
    case SIMULATE_MESSAGE_BEGINS:
        simulate_receive(world, event);
        break;
    case SIMULATE_MESSAGE_COMES:
        simulate_player_arrive(player, (int)(event->value >> 32),
                               simulate_bytes_of(event));
        share_core(world, event->who, event->time);
        break;
    case SIMULATE_SIGNAL_SEEN:
        see_signal(world, event);
        break;
    case SIMULATE_TURN_COMES:
        take_turn(world, event);
        break;
    }
}

int simulate_world_run(struct simulate_world *world, double *seconds)
{
    struct simulate_event event;

    *seconds = 0;
    for (int i = 0; i < world->player_count; i++) {
        world->players[i].step = -1;
        world->players[i].calls = world->machine->calls;
        advance(&world->players[i], 0);
    }
    for (int i = 0; i < world->player_count; i++) {
        go_on(world, i, 0);
    }
    while (simulate_events_take(&world->events, &event)) {
        happen(world, &event);
    }
    for (int i = 0; i < world->player_count; i++) {
        if (!world->players[i].has_ended) {
            return HVD_ERR_PEER;
        }
        *seconds = fmax(*seconds, world->players[i].end / world->machine->calls);
    }
    return 0;
}
