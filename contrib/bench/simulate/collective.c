/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the events of an allreduce: work ends, messages leave and arrive, signals are
 * seen. A rank does one thing at a time; as in run/run.c, an incoming message has
 * precedence over a step. */
#include "contrib/bench/simulate/collective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectives/schedule/schedule.h"

/* The most bytes that are simulated. mirrored_bytes, 64 chunks: if one node stands for
 * all. If all nodes are simulated: whole_work divided by their number, but at least
 * least_bytes. */
static const double mirrored_bytes = 16 << 20, whole_work = 64e6, least_bytes = 2 << 20;

enum happening {
    WORK_ENDS, /* who: a node */
    MESSAGE_LEFT, /* who: the sender */
    MESSAGE_BEGINS, /* the message reaches the receiver's card. who: the receiver */
    MESSAGE_COMES, /* the message has arrived completely. who: the receiver */
    SIGNAL_SEEN, /* who: the player that gave the signal */
};

struct event {
    double time; /* seconds */
    uint64_t order; /* order of planning, for events at the same time */
    enum happening kind;
    int who;
    /* the node's version when this event was planned; if it has changed since, the event
     * is ignored */
    uint64_t version;
    int from; /* the sender of a message */
    double bytes;
};

/* A message that has arrived, or a receive that waits for a message. */
struct item {
    int from;
    double amount; /* bytes of a message; seconds in which a receive adds up */
    bool is_done;
};

struct list {
    struct item *items; /* [count]; the items before `first` are done */
    size_t first, count, capacity;
};

/* A rank, or a rank that stands for its counterparts on all nodes. */
struct player {
    struct hvd_schedule *schedule;
    int node, local_rank;
    int64_t tick;
    const struct hvd_step *steps; /* steps of the tick */
    int step, step_count;
    bool is_working;
    bool is_handling; /* it works on an arrival, not on a step */
    bool has_ended;
    double left; /* seconds of work left, with the memory for this rank alone */
    double end;
    uint64_t signals;
    uint64_t seen; /* signals that the other ranks of the node have seen */
    uint64_t sends;
    uint64_t sent; /* sends that have left the card */
    uint64_t received; /* receives that are done, without gaps from the first on */
    /* the n-th message from a rank is for the n-th receive from this rank */
    struct list receives;
    struct list arrivals; /* arrivals that have not been handled yet */
    struct list early; /* arrivals that were handled before their receive was posted */
};

/* Memory is shared fairly: a rank alone works at full speed, and all ranks of a node
 * together work no faster than its memory. */
struct node {
    int first, ranks; /* players */
    int working;
    double now;
    uint64_t version; /* changes with each start and end of work */
};

/* When a card is free again, in each direction: it carries one message after the
 * other. */
struct card {
    double out, in;
};

struct world {
    const struct simulate_machine *machine;
    const struct hvd_layout *layout;
    bool is_mirrored; /* the first node is simulated and stands for the others */
    int node_count, player_count; /* simulated nodes and players */
    struct player *players;
    struct node *nodes;
    struct card *cards; /* [node_count * machine->cards] */
    struct event *events; /* a binary heap; the soonest event is first */
    size_t event_count, event_capacity;
    uint64_t order;
};

/* Makes room for one more element. */
static void *grow(void *array, size_t count, size_t *capacity, size_t bytes_each)
{
    if (count < *capacity) {
        return array;
    }
    *capacity = 2 * *capacity + 16;
    array = realloc(array, *capacity * bytes_each);
    if (array == NULL) {
        fprintf(stderr, "hvd-bench: --simulate: no memory for a machine of this size\n");
        exit(1);
    }
    return array;
}

/* --- events --- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void plan_event(struct world *world, struct event event)
{
    size_t at = world->event_count;

    world->events = grow(world->events, at, &world->event_capacity, sizeof(event));
    event.order = world->order++;
    world->event_count++;
    while (at > 0 && is_before(&event, &world->events[(at - 1) / 2])) {
        world->events[at] = world->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    world->events[at] = event;
}

/* Takes the soonest event. Returns false if there is none. */
static bool take_event(struct world *world, struct event *event)
{
    struct event *heap = world->events, last;
    size_t at = 0, child;

    if (world->event_count == 0) {
        return false;
    }
    *event = heap[0];
    last = heap[--world->event_count];
    while ((child = 2 * at + 1) < world->event_count) {
        child +=
            child + 1 < world->event_count && is_before(&heap[child + 1], &heap[child]);
        if (!is_before(&heap[child], &last)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return true;
}

/* --- lists --- */

static struct item *add_item(struct list *list, int from, double amount)
{
    if (list->first == list->count) {
        list->first = list->count = 0;
    }
    list->items = grow(list->items, list->count, &list->capacity, sizeof(list->items[0]));
    list->items[list->count] = (struct item){.from = from, .amount = amount};
    return &list->items[list->count++];
}

/* Returns the oldest item of this sender, or NULL. */
static struct item *find_item(const struct list *list, int from)
{
    for (size_t i = list->first; i < list->count; i++) {
        if (!list->items[i].is_done && list->items[i].from == from) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* Marks an item as done. Returns how many more items are done now without a gap before
 * them. */
static uint64_t end_item(struct list *list, struct item *item)
{
    size_t first = list->first;

    item->is_done = true;
    while (list->first < list->count && list->items[list->first].is_done) {
        list->first++;
    }
    return list->first - first;
}

/* --- work --- */

/* Returns the seconds that a rank needs to send or to receive a message. The network
 * sends long messages in parts. */
static double message_work(const struct simulate_machine *machine, double bytes)
{
    return ceil(bytes / HVD_SCHEDULE_MESSAGE_BYTES) * machine->message;
}

/* Returns the seconds of a sum within a node. Its sources are read from shared memory,
 * except the rank's own source if that is still in its input. */
static double local_sum_work(const struct simulate_machine *machine, int sources,
                             const struct hvd_step *step)
{
    double bytes = (double)step->count * sizeof(float);

    return step->kind == HVD_STEP_REDUCE_LOCAL && step->reduce_local.sources.is_put
               ? bytes * sources / machine->sum
               : bytes / machine->pcie + bytes * (sources - 1) / machine->sum;
}

/* Returns the seconds that a RECV_REDUCE step takes to add its message. */
static double receive_work(const struct simulate_machine *machine,
                           const struct hvd_step *step)
{
    double bytes = (double)step->bytes;

    return bytes / machine->sum +
           (step->recv_reduce.to_output ? bytes / machine->pcie : 0);
}

/* Returns the seconds of a step while no other rank uses the memory of the node, which
 * has `ranks` ranks. */
static double step_work(const struct simulate_machine *machine, int ranks,
                        const struct hvd_step *step)
{
    switch (step->kind) {
    case HVD_STEP_PUT:
    case HVD_STEP_GET:
        return machine->step + (double)step->bytes / machine->pcie;
    case HVD_STEP_REDUCE_LOCAL:
    case HVD_STEP_REDUCE_OUT:
        return machine->step + local_sum_work(machine, ranks, step);
    case HVD_STEP_REDUCE_NODES:
        return machine->step + (double)step->count * sizeof(float) *
                                   step->reduce_nodes.sources.count / machine->sum;
    case HVD_STEP_SEND:
        return machine->step + message_work(machine, (double)step->bytes);
    default:
        return machine->step;
    }
}

/* --- memory --- */

/* Returns the speed of each working rank of a node. Copies run at the rate of PCIe, as
 * far as memory allows. */
static double speed_of(const struct world *world, const struct node *node)
{
    double most = world->machine->memory / world->machine->pcie;

    return node->working > most ? most / node->working : 1;
}

static void pass_time(struct world *world, struct node *node, double now)
{
    double done = (now - node->now) * speed_of(world, node);

    for (int i = node->first; i < node->first + node->ranks; i++) {
        struct player *player = &world->players[i];

        if (player->is_working) {
            player->left = fmax(player->left - done, 0);
        }
    }
    node->now = now;
}

/* Returns the working player of a node that ends first; -1 if none works. */
static int find_first_end(const struct world *world, const struct node *node)
{
    int first = -1;

    for (int i = node->first; i < node->first + node->ranks; i++) {
        if (world->players[i].is_working &&
            (first < 0 || world->players[i].left < world->players[first].left)) {
            first = i;
        }
    }
    return first;
}

static void plan_end(struct world *world, struct node *node)
{
    int first = find_first_end(world, node);

    node->version++;
    if (first >= 0) {
        plan_event(world, (struct event){.time = node->now + world->players[first].left /
                                                                 speed_of(world, node),
                                         .kind = WORK_ENDS,
                                         .who = (int)(node - world->nodes),
                                         .version = node->version});
    }
}

static void start_work(struct world *world, struct player *player, double seconds,
                       double now)
{
    struct node *node = &world->nodes[player->node];

    pass_time(world, node, now);
    player->is_working = true;
    player->left = seconds;
    node->working++;
    plan_end(world, node);
}

/* --- network --- */

/* Returns the player that stands for a rank. */
static int player_of(const struct world *world, int rank)
{
    return world->is_mirrored ? world->layout->local_rank[rank] : rank;
}

static struct card *card_of(const struct world *world, int player)
{
    int cards = world->machine->cards;

    return &world->cards[world->players[player].node * cards +
                         world->players[player].local_rank % cards];
}

/* Sends a message: it occupies both cards for its bytes, and its first byte takes the
 * latency from one card to the other. */
static void send_message(struct world *world, int from, int to, double bytes, double now)
{
    struct card *card = card_of(world, from);
    double start = fmax(now, card->out);

    card->out = start + bytes / world->machine->link;
    world->players[from].sends++;
    plan_event(world,
               (struct event){.time = card->out, .kind = MESSAGE_LEFT, .who = from});
    plan_event(world, (struct event){.time = start + world->machine->latency,
                                     .kind = MESSAGE_BEGINS,
                                     .who = to,
                                     .from = from,
                                     .bytes = bytes});
}

static void begin_message(struct world *world, const struct event *begins)
{
    struct card *card = card_of(world, begins->who);
    struct event comes = *begins;

    card->in = fmax(begins->time, card->in) + begins->bytes / world->machine->link;
    comes.kind = MESSAGE_COMES;
    comes.time = card->in;
    plan_event(world, comes);
}

static void post_receive(struct player *player, int from, double work)
{
    struct item *receive = add_item(&player->receives, from, work);
    struct item *early = find_item(&player->early, from);

    if (early != NULL) {
        end_item(&player->early, early);
        player->received += end_item(&player->receives, receive);
    }
}

/* Gives the oldest arrival to its receive, or keeps the arrival until the receive is
 * posted. */
static void handle_arrival(struct player *player)
{
    int from = player->arrivals.items[player->arrivals.first++].from;
    struct item *receive = find_item(&player->receives, from);

    if (receive != NULL) {
        player->received += end_item(&player->receives, receive);
    } else {
        add_item(&player->early, from, 0);
    }
}

/* --- steps --- */

static bool has_arrivals(const struct player *player)
{
    return player->arrivals.first < player->arrivals.count;
}

static bool is_wait(const struct hvd_step *step)
{
    return step->kind == HVD_STEP_WAIT || step->kind == HVD_STEP_WAIT_SEND ||
           step->kind == HVD_STEP_WAIT_RECV;
}

static bool is_met(const struct world *world, const struct player *player,
                   const struct hvd_step *step)
{
    const struct node *node = &world->nodes[player->node];

    if (step->kind == HVD_STEP_WAIT_SEND) {
        return player->sent >= step->messages;
    }
    if (step->kind == HVD_STEP_WAIT_RECV) {
        return player->received >= step->messages;
    }
    for (int i = 0; i < node->ranks; i++) {
        const struct player *other = &world->players[node->first + i];
        uint64_t seen = other == player ? other->signals : other->seen;

        if ((step->wait.local_rank == -1 || step->wait.local_rank == i) &&
            seen < step->wait.value) {
            return false;
        }
    }
    return true;
}

/* Goes on to the next step, or ends. */
static void advance(struct player *player, double now)
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

/* Applies the effect of a finished step on other ranks. */
static void take_effect(struct world *world, int index, const struct hvd_step *step,
                        double now)
{
    struct player *player = &world->players[index];

    if (step->kind == HVD_STEP_SIGNAL) {
        player->signals++;
        plan_event(world, (struct event){.time = now + world->machine->sync,
                                         .kind = SIGNAL_SEEN,
                                         .who = index});
    } else if (step->kind == HVD_STEP_SEND) {
        send_message(world, index, player_of(world, step->send.peer), (double)step->bytes,
                     now);
    } else if (step->kind == HVD_STEP_RECV) {
        post_receive(player, player_of(world, step->recv.peer), 0);
    } else if (step->kind == HVD_STEP_RECV_REDUCE) {
        post_receive(player, player_of(world, step->recv_reduce.peer),
                     receive_work(world->machine, step));
    }
}

/* Returns the seconds of the player's next work: the oldest arrival, or its step. A
 * receive adds up when both the receive and its message are there. */
static double next_work(const struct world *world, const struct player *player)
{
    const struct simulate_machine *machine = world->machine;
    const struct hvd_step *step = &player->steps[player->step];

    if (player->is_handling) {
        const struct item *arrival = &player->arrivals.items[player->arrivals.first];
        const struct item *receive = find_item(&player->receives, arrival->from);

        return message_work(machine, arrival->amount) +
               (receive != NULL ? receive->amount : 0);
    }
    return step_work(machine, world->nodes[player->node].ranks, step) +
           (step->kind == HVD_STEP_RECV_REDUCE &&
                    find_item(&player->early, player_of(world, step->recv_reduce.peer)) !=
                        NULL
                ? receive_work(machine, step)
                : 0);
}

/* Starts the next work of an idle rank, if there is any. */
static void go_on(struct world *world, struct player *player, double now)
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
    if (player->is_handling ||
        (!player->has_ended && !is_wait(&player->steps[player->step]))) {
        start_work(world, player, next_work(world, player), now);
    }
}

static void end_work(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->who];
    struct player *player;
    int index;

    if (node->version != event->version) {
        return; /* another rank has started or ended work since */
    }
    index = find_first_end(world, node);
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

/* Handles a signal, for which any rank of the node may wait. */
static void see_signal(struct world *world, const struct event *event)
{
    const struct node *node = &world->nodes[world->players[event->who].node];

    world->players[event->who].seen++;
    for (int i = 0; i < node->ranks; i++) {
        go_on(world, &world->players[node->first + i], event->time);
    }
}

static void let_happen(struct world *world, const struct event *event)
{
    struct player *player = &world->players[event->who];

    switch (event->kind) {
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
        add_item(&player->arrivals, event->from, event->bytes);
        go_on(world, player, event->time);
        break;
    case SIGNAL_SEEN:
        see_signal(world, event);
        break;
    }
}

/* --- world --- */

static int create_player(struct world *world, int rank, int64_t count,
                         struct hvd_error *err)
{
    struct player *player = &world->players[rank];
    struct hvd_schedule_query query = {
        .collective = HVD_COLL_ALLREDUCE,
        .layout = world->layout,
        .rank = rank,
        .geometry = hvd_usual_geometry,
        .count = count,
        .element_bytes = sizeof(float),
        .partial_bytes = sizeof(float),
    };

    /* most batches have several tensors, so no single copy */
    query.geometry.has_single_copy = false;
    player->node = world->layout->node[rank];
    player->local_rank = world->layout->local_rank[rank];
    player->step = -1;
    return hvd_schedule_create(&query, &player->schedule, err);
}

static int create_world(struct world *world, int64_t count, struct hvd_error *err)
{
    const struct hvd_layout *layout = world->layout;
    size_t nodes, players;
    int status = 0;

    world->node_count = world->is_mirrored ? 1 : layout->nodes;
    world->player_count =
        world->is_mirrored ? hvd_layout_local_size(layout, 0) : layout->size;
    nodes = (size_t)world->node_count;
    players = (size_t)world->player_count;
    world->players = calloc(players, sizeof(world->players[0]));
    world->nodes = calloc(nodes, sizeof(world->nodes[0]));
    world->cards = calloc(nodes * (size_t)world->machine->cards, sizeof(world->cards[0]));
    if (world->players == NULL || world->nodes == NULL || world->cards == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", layout->size);
    }
    for (int node = 0; node < world->node_count; node++) {
        world->nodes[node].first = hvd_layout_rank(layout, node, 0);
        world->nodes[node].ranks = hvd_layout_local_size(layout, node);
    }
    for (int rank = 0; rank < world->player_count && status == 0; rank++) {
        status = create_player(world, rank, count, err);
    }
    return status;
}

static void finish_world(struct world *world)
{
    for (int i = 0; world->players != NULL && i < world->player_count; i++) {
        struct player *player = &world->players[i];

        hvd_schedule_destroy(player->schedule);
        free(player->receives.items);
        free(player->early.items);
        free(player->arrivals.items);
    }
    free(world->players);
    free(world->nodes);
    free(world->cards);
    free(world->events);
}

/* Runs all ranks to their end. Returns HVD_ERR_PEER if some wait forever. */
static int run_world(struct world *world, struct simulate_result *result)
{
    struct event event;

    *result = (struct simulate_result){.is_mirrored = world->is_mirrored};
    for (int i = 0; i < world->player_count; i++) {
        advance(&world->players[i], 0);
    }
    for (int i = 0; i < world->player_count; i++) {
        go_on(world, &world->players[i], 0);
    }
    while (take_event(world, &event)) {
        let_happen(world, &event);
    }
    for (int i = 0; i < world->player_count; i++) {
        const struct player *player = &world->players[i];

        if (!player->has_ended) {
            return HVD_ERR_PEER;
        }
        result->seconds = fmax(result->seconds, player->end);
        result->messages = (int64_t)fmax((double)result->messages, (double)player->sends);
    }
    snprintf(result->algorithm, sizeof(result->algorithm), "%s",
             hvd_schedule_facts(world->players[0].schedule)->name);
    return 0;
}

/* --- allreduce --- */

/* Creates a layout with the same number of ranks on each node, node by node. */
static int create_layout(const struct simulate_machine *machine,
                         struct hvd_layout *layout, struct hvd_error *err)
{
    size_t size = (size_t)machine->nodes * (size_t)machine->gpus;
    const char **hosts = calloc(size, sizeof(hosts[0]));
    char(*names)[24] = calloc((size_t)machine->nodes, sizeof(names[0]));
    int status = hosts != NULL && names != NULL
                     ? 0
                     : hvd_fail(err, HVD_ERR_NOMEM, "no memory for %zu ranks", size);

    for (size_t rank = 0; rank < size && status == 0; rank++) {
        size_t node = rank / (size_t)machine->gpus;

        snprintf(names[node], sizeof(names[node]), "n%zu", node);
        hosts[rank] = names[node];
    }
    if (status == 0) {
        status = hvd_layout_init(layout, hosts, (int)size, err);
    }
    free(hosts);
    free(names);
    return status;
}

static int run_bytes(struct world world, double bytes, struct simulate_result *result,
                     struct hvd_error *err)
{
    int status = create_world(&world, (int64_t)(bytes / sizeof(float) + 0.5), err);

    if (status == 0) {
        status = run_world(&world, result);
    }
    finish_world(&world);
    return status;
}

/* Simulates `bytes` if they are at most `most`. Otherwise it simulates `most` bytes and
 * extrapolates: each further byte takes as long as a byte of their second half. */
static int run_part(const struct world *world, double bytes, double most,
                    struct simulate_result *result, struct hvd_error *err)
{
    struct simulate_result half;
    int status;

    if (bytes <= most) {
        return run_bytes(*world, bytes, result, err);
    }
    status = run_bytes(*world, most / 2, &half, err);
    if (status == 0) {
        status = run_bytes(*world, most, result, err);
    }
    if (status == 0) {
        result->seconds +=
            (bytes - most) * ((result->seconds - half.seconds) / (most / 2));
        result->messages = (int64_t)((double)result->messages * bytes / most);
        result->is_extrapolated = true;
    }
    return status;
}

int simulate_allreduce(const struct simulate_machine *machine, double bytes,
                       bool is_whole, struct simulate_result *result,
                       struct hvd_error *err)
{
    struct hvd_layout layout = {0};
    struct world world = {.machine = machine, .layout = &layout};
    int status = create_layout(machine, &layout, err);

    world.is_mirrored = !is_whole && machine->nodes > 1;
    if (status == 0 && world.is_mirrored) {
        status = run_part(&world, bytes, mirrored_bytes, result, err);
    }
    /* simulates all nodes, if that was asked for or the nodes do not all do the same */
    if (!world.is_mirrored || status == HVD_ERR_PEER) {
        world.is_mirrored = false;
        status =
            status == 0 || status == HVD_ERR_PEER
                ? run_part(&world, bytes, fmax(whole_work / machine->nodes, least_bytes),
                           result, err)
                : status;
    }
    if (status == HVD_ERR_PEER) {
        hvd_fail(err, status, "the schedules of %d ranks wait for each other",
                 layout.size);
    }
    hvd_layout_finish(&layout);
    return status;
}
