/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete events of an allreduce: work that ends, messages that leave and come, signals that
 * are seen. A rank does one thing at a time; as in the engine, an incoming message goes before a
 * step. */
#include "contrib/bench/simulate/world.h"

#include <math.h>
#include <stdlib.h>

#include "contrib/bench/simulate/work.h"

enum happening {
    WORK_ENDS, /* who: a node; value: its version */
    MESSAGE_LEFT, /* who: the sending player */
    MESSAGE_BEGINS, /* to come in. who: a player; value: the sending player, bytes */
    MESSAGE_COMES, /* likewise: all of it is there */
    SIGNAL_SEEN, /* who: the player that gave it */
};

/* --- life ------------------------------------------------------------------------------ */

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

        query.geometry.has_single_copy = false; /* most batches have several tensors */
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
    for (int node = 0; node < world->node_count; node++) {
        world->nodes[node].first = hvd_layout_rank(layout, node, 0);
        world->nodes[node].ranks = hvd_layout_local_size(layout, node);
    }
    return create_schedules(world, count, err);
}

void simulate_world_finish(struct simulate_world *world)
{
    for (int i = 0; world->players != NULL && i < world->player_count; i++) {
        struct simulate_player *player = &world->players[i];

        hvd_schedule_destroy(player->schedule);
        free(player->receives);
        free(player->early);
        free(player->arrivals);
    }
    free(world->players);
    free(world->nodes);
    free(world->cards);
    simulate_events_finish(&world->events);
}

/* --- memory ---------------------------------------------------------------------------- */

/* Copies run at the rate of pcie while memory lasts. */
static double speed_of(const struct simulate_world *world,
                       const struct simulate_node *node)
{
    double most = world->machine->memory / world->machine->pcie;

    return node->working > most ? most / node->working : 1;
}

static void pass_time(struct simulate_world *world, struct simulate_node *node,
                      double now)
{
    double done = (now - node->now) * speed_of(world, node);

    for (int i = node->first; i < node->first + node->ranks; i++) {
        struct simulate_player *player = &world->players[i];

        if (player->is_working) {
            player->left = fmax(player->left - done, 0);
        }
    }
    node->now = now;
}

/* Returns the working player of a node that ends first, and when; -1 if none works. */
static int find_first_end(const struct simulate_world *world,
                          const struct simulate_node *node, double *when)
{
    int first = -1;

    for (int i = node->first; i < node->first + node->ranks; i++) {
        if (world->players[i].is_working &&
            (first < 0 || world->players[i].left < world->players[first].left)) {
            first = i;
        }
    }
    if (first >= 0) {
        *when = node->now + world->players[first].left / speed_of(world, node);
    }
    return first;
}

static void plan_end(struct simulate_world *world, struct simulate_node *node)
{
    struct simulate_event end = {.kind = WORK_ENDS, .who = (int)(node - world->nodes)};

    end.value = ++node->version;
    if (find_first_end(world, node, &end.time) >= 0) {
        simulate_events_put(&world->events, end);
    }
}

static void start_work(struct simulate_world *world, struct simulate_player *player,
                       double seconds, double now)
{
    struct simulate_node *node = &world->nodes[player->node];

    pass_time(world, node, now);
    player->is_working = true;
    player->left = seconds;
    node->working++;
    plan_end(world, node);
}

/* --- network --------------------------------------------------------------------------- */

/* The player that stands for a rank. */
static int player_of(const struct simulate_world *world, int rank)
{
    return world->is_mirrored ? world->layout->local_rank[rank] : rank;
}

static struct simulate_card *card_of(const struct simulate_world *world,
                                     const struct simulate_player *player)
{
    int cards = world->machine->cards;

    return &world->cards[player->node * cards + player->local_rank % cards];
}

static double bytes_of(const struct simulate_event *message)
{
    return (double)(message->value & 0xffffffff);
}

/* A message takes both cards for its bytes; its head needs the latency from one to the other. */
static void send_message(struct simulate_world *world, int from, int to, double bytes,
                         double now)
{
    const struct simulate_machine *machine = world->machine;
    struct simulate_card *card = card_of(world, &world->players[from]);
    double start = fmax(now, card->out);
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

static void begin_message(struct simulate_world *world,
                          const struct simulate_event *begins)
{
    struct simulate_card *card = card_of(world, &world->players[begins->who]);
    struct simulate_event comes = *begins;

    card->in = fmax(begins->time, card->in) + bytes_of(begins) / world->machine->link;
    comes.kind = MESSAGE_COMES;
    comes.time = card->in;
    simulate_events_put(&world->events, comes);
}

static void add_arrival(struct simulate_player *player,
                        const struct simulate_event *message)
{
    if (player->arrival_first == player->arrival_count) {
        player->arrival_first = player->arrival_count = 0;
    }
    if (player->arrival_count == player->arrival_capacity) {
        player->arrivals = simulate_grow(player->arrivals, &player->arrival_capacity,
                                         sizeof(player->arrivals[0]));
    }
    player->arrivals[player->arrival_count++] =
        (struct simulate_arrival){(int)(message->value >> 32), bytes_of(message)};
}

/* The oldest receive that waits for a message of this sender; NULL: none does. */
static struct simulate_receive *find_receive(const struct simulate_player *player,
                                             int from)
{
    for (size_t i = player->received; i < player->receive_count; i++) {
        if (!player->receives[i].is_done && player->receives[i].from == from) {
            return &player->receives[i];
        }
    }
    return NULL;
}

static void finish_receive(struct simulate_player *player,
                           struct simulate_receive *receive)
{
    receive->is_done = true;
    while (player->received < player->receive_count &&
           player->receives[player->received].is_done) {
        player->received++;
    }
}

/* The place in `early` of a message of this sender, or early_count. */
static size_t find_early(const struct simulate_player *player, int from)
{
    size_t i = 0;

    while (i < player->early_count && player->early[i] != from) {
        i++;
    }
    return i;
}

static void post_receive(struct simulate_player *player, int from, double work)
{
    size_t early = find_early(player, from);

    if (player->receive_count == player->receive_capacity) {
        player->receives = simulate_grow(player->receives, &player->receive_capacity,
                                         sizeof(player->receives[0]));
    }
    player->receives[player->receive_count++] =
        (struct simulate_receive){.from = from, .work = work};
    if (early < player->early_count) {
        player->early[early] = player->early[--player->early_count];
        finish_receive(player, &player->receives[player->receive_count - 1]);
    }
}

/* Gives the oldest arrival to its receive, or keeps it until that is posted. */
static void handle_arrival(struct simulate_player *player)
{
    int from = player->arrivals[player->arrival_first++].from;
    struct simulate_receive *receive = find_receive(player, from);

    if (receive != NULL) {
        finish_receive(player, receive);
        return;
    }
    if (player->early_count == player->early_capacity) {
        player->early = simulate_grow(player->early, &player->early_capacity,
                                      sizeof(player->early[0]));
    }
    player->early[player->early_count++] = from;
}

/* --- steps ----------------------------------------------------------------------------- */

static bool has_arrivals(const struct simulate_player *player)
{
    return player->arrival_first < player->arrival_count;
}

static bool is_wait(const struct hvd_step *step)
{
    return step->kind == HVD_STEP_WAIT || step->kind == HVD_STEP_WAIT_SEND ||
           step->kind == HVD_STEP_WAIT_RECV;
}

static bool is_met(const struct simulate_world *world,
                   const struct simulate_player *player, const struct hvd_step *step)
{
    const struct simulate_node *node = &world->nodes[player->node];

    if (step->kind == HVD_STEP_WAIT_SEND) {
        return player->sent >= step->value;
    }
    if (step->kind == HVD_STEP_WAIT_RECV) {
        return player->received >= step->value;
    }
    for (int i = 0; i < node->ranks; i++) {
        const struct simulate_player *other = &world->players[node->first + i];
        uint64_t seen = other == player ? other->signals : other->seen;

        if ((step->peer == -1 || step->peer == i) && seen < step->value) {
            return false;
        }
    }
    return true;
}

/* Goes to the next step, or ends. */
static void advance(struct simulate_player *player, double now)
{
    player->step++;
    while (player->step >= player->step_count) {
        if (player->tick == hvd_schedule_facts(player->schedule)->ticks) {
            player->has_ended = true;
            player->end = now;
            return;
        }
        player->step = 0;
        player->step_count =
            hvd_schedule_tick(player->schedule, player->tick++, &player->steps);
    }
}

/* The effect of a step on others, once its work is done. */
static void take_effect(struct simulate_world *world, int index,
                        const struct hvd_step *step, double now)
{
    struct simulate_player *player = &world->players[index];

    if (step->kind == HVD_STEP_SIGNAL) {
        player->signals++;
        simulate_events_put(&world->events,
                            (struct simulate_event){.time = now + world->machine->sync,
                                                    .kind = SIGNAL_SEEN,
                                                    .who = index});
    } else if (step->kind == HVD_STEP_SEND) {
        send_message(world, index, player_of(world, step->peer), (double)step->bytes,
                     now);
    } else if (step->kind == HVD_STEP_RECV || step->kind == HVD_STEP_RECV_REDUCE) {
        post_receive(player, player_of(world, step->peer),
                     simulate_receive_work(world->machine, step));
    }
}

/* Seconds of a step. A receive whose message is there already adds it up at once. */
static double step_work(const struct simulate_world *world,
                        const struct simulate_player *player)
{
    const struct hvd_step *step = &player->steps[player->step];
    double work =
        simulate_step_work(world->machine, world->nodes[player->node].ranks, step);

    if (step->kind == HVD_STEP_RECV_REDUCE &&
        find_early(player, player_of(world, step->peer)) < player->early_count) {
        work += simulate_receive_work(world->machine, step);
    }
    return work;
}

static double arrival_work(const struct simulate_world *world,
                           const struct simulate_player *player)
{
    const struct simulate_arrival *arrival = &player->arrivals[player->arrival_first];
    const struct simulate_receive *receive = find_receive(player, arrival->from);

    return simulate_message_work(world->machine, arrival->bytes) +
           (receive != NULL ? receive->work : 0);
}

/* Starts the next work of an idle rank, if it has some. */
static void go_on(struct simulate_world *world, struct simulate_player *player,
                  double now)
{
    if (player->is_working) {
        return;
    }
    while (!player->has_ended && !has_arrivals(player) &&
           is_wait(&player->steps[player->step]) &&
           is_met(world, player, &player->steps[player->step])) {
        advance(player, now);
    }
    player->is_handling = has_arrivals(player);
    if (player->is_handling) {
        start_work(world, player, arrival_work(world, player), now);
    } else if (!player->has_ended && !is_wait(&player->steps[player->step])) {
        start_work(world, player, step_work(world, player), now);
    }
}

/* --- events ---------------------------------------------------------------------------- */

static void end_work(struct simulate_world *world, const struct simulate_event *event)
{
    struct simulate_node *node = &world->nodes[event->who];
    struct simulate_player *player;
    double when;
    int index;

    if (node->version != event->value) {
        return; /* another rank has started or ended since */
    }
    index = find_first_end(world, node, &when);
    player = &world->players[index];
    pass_time(world, node, event->time);
    player->is_working = false;
    node->working--;
    if (player->is_handling) {
        handle_arrival(player);
    } else {
        take_effect(world, index, &player->steps[player->step], event->time);
        advance(player, event->time);
    }
    plan_end(world, node);
    go_on(world, player, event->time);
}

/* A signal may be the one that any rank of the node waits for. */
static void see_signal(struct simulate_world *world, const struct simulate_event *event)
{
    const struct simulate_node *node = &world->nodes[world->players[event->who].node];

    world->players[event->who].seen++;
    for (int i = 0; i < node->ranks; i++) {
        go_on(world, &world->players[node->first + i], event->time);
    }
}

static void happen(struct simulate_world *world, const struct simulate_event *event)
{
    struct simulate_player *player = &world->players[event->who];

    switch ((enum happening)event->kind) {
    case WORK_ENDS:
        end_work(world, event);
        break;
    case MESSAGE_LEFT:
        player->sent++;
        go_on(world, player, event->time);
        break;
    case MESSAGE_BEGINS:
        begin_message(world, event);
        break;
    case MESSAGE_COMES:
        add_arrival(player, event);
        go_on(world, player, event->time);
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
        advance(&world->players[i], 0);
    }
    for (int i = 0; i < world->player_count; i++) {
        go_on(world, &world->players[i], 0);
    }
    while (simulate_events_take(&world->events, &event)) {
        happen(world, &event);
    }
    for (int i = 0; i < world->player_count; i++) {
        if (!world->players[i].has_ended) {
            return HVD_ERR_PEER;
        }
        *seconds = fmax(*seconds, world->players[i].end);
    }
    return 0;
}
