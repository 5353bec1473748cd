/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete events of an allreduce: work that ends, messages that leave and come, signals that
 * are seen. A rank does one thing at a time, messages that came in first, as the engine does. */
#include "contrib/bench/simulate/world.h"

#include <stdlib.h>

enum {
    WORK_ENDS, /* who: a node; value: its version */
    MESSAGE_LEFT, /* who: a player */
    MESSAGE_BEGINS, /* to come in. who: a player; value: the sending player, bytes */
    MESSAGE_COMES, /* likewise: all of it is there */
    SIGNAL_SEEN, /* who: a player */
};

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

        player->node = world->layout->node[i];
        player->local_rank = world->layout->local_rank[i];
        status = hvd_schedule_create(&query, &player->schedule, err);
    }
    return status;
}

/* Copies run at the rate of pcie while memory lasts, and no more than there are cores. */
static double most_working(const struct simulate_machine *machine)
{
    double most = machine->memory / machine->pcie;

    return most < machine->cores ? most : machine->cores;
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
        status =
            simulate_node_init(&world->nodes[node], hvd_layout_local_size(layout, node),
                               most_working(world->machine));
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

/* --- the network --- */

static struct simulate_card *card_of(const struct simulate_world *world,
                                     const struct simulate_player *player)
{
    int cards = world->machine->cards;

    return &world->cards[player->node * cards + player->local_rank % cards];
}

/* The player that stands for a rank. */
static int player_of(const struct simulate_world *world, int rank)
{
    return world->is_mirrored ? world->layout->local_rank[rank] : rank;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* A message takes both cards for its bytes; its head needs the latency from one to the other. */
static void send_message(struct simulate_world *world, int from, int to, double bytes,
                         double now)
{
    const struct simulate_machine *machine = world->machine;
    struct simulate_card *card = card_of(world, &world->players[from]);
    double start = later(now, card->out);
    struct simulate_event begins = {.time = start + machine->latency,
                                    .kind = MESSAGE_BEGINS,
                                    .who = to,
                                    .value = (uint64_t)from << 32 | (uint64_t)bytes};

    card->out = start + bytes / machine->link;
    world->players[from].sends++;
    simulate_events_put(
        &world->events,
        (struct simulate_event){.time = card->out, .kind = MESSAGE_LEFT, .who = from});
    simulate_events_put(&world->events, begins);
}

static double bytes_of(const struct simulate_event *event)
{
    return (double)(event->value & 0xffffffff);
}

static void receive_message(struct simulate_world *world,
                            const struct simulate_event *begins)
{
    struct simulate_card *card = card_of(world, &world->players[begins->who]);
    struct simulate_event comes = *begins;

    card->in = later(begins->time, card->in) + bytes_of(begins) / world->machine->link;
    comes.kind = MESSAGE_COMES;
    comes.time = card->in;
    simulate_events_put(&world->events, comes);
}

/* --- what a rank does --- */

static void plan_end(struct simulate_world *world, int node)
{
    double when = 0;

    if (simulate_node_next(&world->nodes[node], &when) >= 0) {
        simulate_events_put(&world->events,
                            (struct simulate_event){.time = when,
                                                    .kind = WORK_ENDS,
                                                    .who = node,
                                                    .value = world->nodes[node].version});
    }
}

static double message_work(const struct simulate_machine *machine, double bytes)
{
    return machine->message + (machine->netcopy > 0 ? bytes / machine->netcopy : 0);
}

/* Sources of a sum are read from shared memory, but one from the input if it is not there. */
static double local_sum_work(const struct simulate_world *world,
                             const struct simulate_player *player,
                             const struct hvd_step *step)
{
    const struct simulate_machine *machine = world->machine;
    double bytes = (double)step->count * sizeof(float);
    int sources = hvd_layout_local_size(world->layout, player->node);

    if (step->kind == HVD_STEP_REDUCE_OUT) {
        return bytes / machine->out + bytes * (sources - 1) / machine->sum;
    }
    return step->is_put ? bytes * sources / machine->sum
                        : bytes / machine->pcie + bytes * (sources - 1) / machine->sum;
}

static double step_work(const struct simulate_world *world,
                        const struct simulate_player *player, const struct hvd_step *step)
{
    const struct simulate_machine *machine = world->machine;

    switch (step->kind) {
    case HVD_STEP_PUT:
        return machine->step + (double)step->bytes / machine->pcie;
    case HVD_STEP_GET:
        return machine->step + (double)step->bytes / machine->out;
    case HVD_STEP_REDUCE_LOCAL:
    case HVD_STEP_REDUCE_OUT:
        return machine->step + local_sum_work(world, player, step);
    case HVD_STEP_REDUCE_NODES:
        return machine->step +
               (double)step->count * sizeof(float) * step->sources / machine->sum;
    case HVD_STEP_RECV_REDUCE: /* in truth when it comes */
        return machine->step + (double)step->bytes / machine->sum +
               (step->to_output ? (double)step->bytes / machine->out : 0);
    case HVD_STEP_SEND:
        return machine->step + message_work(machine, (double)step->bytes);
    default:
        return machine->step;
    }
}

static bool is_met(const struct simulate_world *world,
                   const struct simulate_player *player, const struct hvd_step *step)
{
    int local_size = hvd_layout_local_size(world->layout, player->node);

    if (step->kind == HVD_STEP_WAIT_SEND) {
        return player->sent >= step->value;
    }
    if (step->kind == HVD_STEP_WAIT_RECV) {
        return player->received >= step->value;
    }
    for (int i = 0; i < local_size; i++) {
        int rank = hvd_layout_rank(world->layout, player->node, i);

        if ((step->peer == -1 || step->peer == i) &&
            world->players[rank].seen < step->value) {
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
        simulate_events_put(&world->events,
                            (struct simulate_event){.time = now + world->machine->sync,
                                                    .kind = SIGNAL_SEEN,
                                                    .who = index});
    } else if (step->kind == HVD_STEP_SEND) {
        send_message(world, index, player_of(world, step->peer), (double)step->bytes,
                     now);
    } else if (step->kind == HVD_STEP_RECV || step->kind == HVD_STEP_RECV_REDUCE) {
        simulate_player_post(player, player_of(world, step->peer));
    }
}

/* Lets a waiting rank go on as far as it gets without taking time. */
static void go_on(struct simulate_world *world, int index, double now)
{
    struct simulate_player *player = &world->players[index];
    double work;

    if (player->doing != SIMULATE_WAITING) {
        return;
    }
    while (!player->has_ended && !simulate_player_has_arrivals(player) &&
           is_wait(&player->steps[player->step]) &&
           is_met(world, player, &player->steps[player->step])) {
        player->has_ended = !simulate_player_advance(player);
        player->end = now;
    }
    if (simulate_player_has_arrivals(player)) {
        player->doing = SIMULATE_HANDLING;
        work =
            message_work(world->machine, player->arrivals[player->arrival_first].bytes);
    } else if (!player->has_ended && !is_wait(&player->steps[player->step])) {
        player->doing = SIMULATE_STEPPING;
        work = step_work(world, player, &player->steps[player->step]);
    } else {
        return;
    }
    simulate_node_start(&world->nodes[player->node], player->local_rank, work, now);
    plan_end(world, player->node);
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
        player->has_ended = !simulate_player_advance(player);
        player->end = event->time;
    }
    plan_end(world, event->who);
    go_on(world, index, event->time);
}

/* A signal may be what any rank of the node waits for. */
static void see_signal(struct simulate_world *world, const struct simulate_event *event)
{
    int node = world->players[event->who].node;

    world->players[event->who].seen++;
    for (int i = 0; i < hvd_layout_local_size(world->layout, node); i++) {
        go_on(world, hvd_layout_rank(world->layout, node, i), event->time);
    }
}

static void happen(struct simulate_world *world, const struct simulate_event *event)
{
    struct simulate_player *player = &world->players[event->who];

    switch (event->kind) {
    case WORK_ENDS:
        end_work(world, event);
        break;
    case MESSAGE_LEFT:
        player->sent++;
        go_on(world, event->who, event->time);
        break;
    case MESSAGE_BEGINS:
        receive_message(world, event);
        break;
    case MESSAGE_COMES:
        simulate_player_arrive(player, (int)(event->value >> 32), bytes_of(event));
        go_on(world, event->who, event->time);
        break;
    case SIGNAL_SEEN:
        see_signal(world, event);
        break;
    }
}

int simulate_world_run(struct simulate_world *world, double *seconds)
{
    struct simulate_event event;

    *seconds = 0;
    for (int i = 0; i < world->player_count; i++) {
        world->players[i].step = -1;
        world->players[i].has_ended = !simulate_player_advance(&world->players[i]);
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
        *seconds = later(*seconds, world->players[i].end);
    }
    return 0;
}
