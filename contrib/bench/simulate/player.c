/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's queues: receives that wait for messages, and messages that wait for receives. */
#include "contrib/bench/simulate/player.h"

#include <stdlib.h>

#include "contrib/bench/simulate/events.h"

void simulate_player_finish(struct simulate_player *player)
{
    hvd_schedule_destroy(player->schedule);
    free(player->receives);
    free(player->senders);
    free(player->arrivals);
}

/* --- who sends --- */

static struct simulate_sender *slot_of(const struct simulate_player *player, int rank)
{
    size_t mask = player->sender_capacity - 1;
    size_t at = (size_t)rank * 2654435761u & mask;

    while (player->senders[at].rank != -1 && player->senders[at].rank != rank) {
        at = (at + 1) & mask;
    }
    return &player->senders[at];
}

static void rehash(struct simulate_player *player)
{
    struct simulate_sender *old = player->senders;
    size_t old_capacity = player->sender_capacity;
    size_t capacity = old_capacity == 0 ? 16 : 2 * old_capacity;

    player->senders = malloc(capacity * sizeof(player->senders[0]));
    if (player->senders == NULL) {
        simulate_no_memory();
    }
    player->sender_capacity = capacity;
    for (size_t i = 0; i < capacity; i++) {
        player->senders[i].rank = -1;
    }
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].rank != -1) {
            *slot_of(player, old[i].rank) = old[i];
        }
    }
    free(old);
}

/* NULL before its first message and receive. */
static const struct simulate_sender *find_sender(const struct simulate_player *player,
                                                 int rank)
{
    const struct simulate_sender *sender =
        player->sender_capacity > 0 ? slot_of(player, rank) : NULL;

    return sender != NULL && sender->rank == rank ? sender : NULL;
}

static struct simulate_sender *sender_of(struct simulate_player *player, int rank)
{
    struct simulate_sender *sender;

    if (2 * player->sender_count >= player->sender_capacity) {
        rehash(player);
    }
    sender = slot_of(player, rank);
    if (sender->rank == -1) {
        *sender = (struct simulate_sender){.rank = rank, .first = -1, .last = -1};
        player->sender_count++;
    }
    return sender;
}

/* --- messages --- */

static void finish_receive(struct simulate_player *player, size_t index)
{
    player->receives[index].is_done = true;
    while (player->received < player->receive_count &&
           player->receives[player->received].is_done) {
        player->received++;
    }
}

void simulate_player_post(struct simulate_player *player, int from, double work)
{
    struct simulate_sender *sender = sender_of(player, from);
    size_t index = player->receive_count;

    if (index == player->receive_capacity) {
        player->receives = simulate_grow(player->receives, &player->receive_capacity,
                                         sizeof(player->receives[0]));
    }
    player->receives[index] = (struct simulate_receive){.next = -1, .work = work};
    player->receive_count++;
    if (sender->early > 0) {
        sender->early--;
        finish_receive(player, index);
    } else if (sender->first < 0) {
        sender->first = sender->last = (int)index;
    } else {
        player->receives[sender->last].next = (int)index;
        sender->last = (int)index;
    }
}

void simulate_player_handle(struct simulate_player *player, int from)
{
    struct simulate_sender *sender = sender_of(player, from);

    if (sender->first < 0) {
        sender->early++;
    } else {
        int index = sender->first;

        sender->first = player->receives[index].next;
        finish_receive(player, (size_t)index);
    }
}

bool simulate_player_has_early(const struct simulate_player *player, int from)
{
    const struct simulate_sender *sender = find_sender(player, from);

    return sender != NULL && sender->early > 0;
}

double simulate_player_awaited_work(const struct simulate_player *player, int from)
{
    const struct simulate_sender *sender = find_sender(player, from);

    return sender != NULL && sender->first >= 0 ? player->receives[sender->first].work
                                                : 0;
}

void simulate_player_arrive(struct simulate_player *player, int from, double bytes)
{
    if (player->arrival_first == player->arrival_count) {
        player->arrival_first = player->arrival_count = 0;
    }
    if (player->arrival_count == player->arrival_capacity) {
        player->arrivals = simulate_grow(player->arrivals, &player->arrival_capacity,
                                         sizeof(player->arrivals[0]));
    }
    player->arrivals[player->arrival_count++] = (struct simulate_arrival){from, bytes};
}

bool simulate_player_has_arrivals(const struct simulate_player *player)
{
    return player->arrival_first < player->arrival_count;
}

struct simulate_arrival simulate_player_take(struct simulate_player *player)
{
    return player->arrivals[player->arrival_first++];
}

/* --- steps --- */

static void begin_call(struct simulate_player *player)
{
    player->base.signals += hvd_schedule_facts(player->schedule)->signals;
    player->base.sends = player->sends;
    player->base.receives = player->receive_count;
    player->tick = 0;
}

bool simulate_player_advance(struct simulate_player *player)
{
    player->step++;
    while (player->step >= player->step_count) {
        if (player->tick == hvd_schedule_facts(player->schedule)->ticks) {
            if (--player->calls <= 0) {
                return false;
            }
            begin_call(player);
            continue;
        }
        player->step = 0;
        player->step_count =
            hvd_schedule_tick(player->schedule, player->tick++, &player->steps);
    }
    return true;
}
