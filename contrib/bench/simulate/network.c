/* SPDX-License-Identifier: Apache-2.0 */
/* Cards take messages one after the other. */
#include "contrib/bench/simulate/network.h"

#include <math.h>

static struct simulate_card *card_of(const struct simulate_world *world,
                                     const struct simulate_player *player)
{
    int cards = world->machine->cards;

    return &world->cards[player->node * cards + player->local_rank % cards];
}

void simulate_send(struct simulate_world *world, int from, int to, double bytes,
                   double now)
{
    const struct simulate_machine *machine = world->machine;
    struct simulate_card *card = card_of(world, &world->players[from]);
    double start = fmax(now, card->out);
    struct simulate_event begins = {.time = start + machine->latency,
                                    .kind = SIMULATE_MESSAGE_BEGINS,
                                    .who = to,
                                    .value = (uint64_t)from << 32 | (uint64_t)bytes};

    card->out = start + bytes / machine->link;
    world->players[from].sends++;
    simulate_events_put(&world->events,
                        (struct simulate_event){.time = card->out,
                                                .kind = SIMULATE_MESSAGE_LEFT,
                                                .who = from});
    simulate_events_put(&world->events, begins);
}

double simulate_bytes_of(const struct simulate_event *event)
{
    return (double)(event->value & 0xffffffff);
}

void simulate_receive(struct simulate_world *world, const struct simulate_event *begins)
{
    struct simulate_card *card = card_of(world, &world->players[begins->who]);
    struct simulate_event comes = *begins;

    card->in =
        fmax(begins->time, card->in) + simulate_bytes_of(begins) / world->machine->link;
    comes.kind = SIMULATE_MESSAGE_COMES;
    comes.time = card->in;
    simulate_events_put(&world->events, comes);
}
