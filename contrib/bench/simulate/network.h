/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between nodes, and the cards that they go through. */
#ifndef HVD_SIMULATE_NETWORK_H
#define HVD_SIMULATE_NETWORK_H

#include "contrib/bench/simulate/world.h"

/* A message takes both cards for its bytes; its head needs the latency from one to the other. Plans
 * SIMULATE_MESSAGE_LEFT and SIMULATE_MESSAGE_BEGINS. */
void simulate_send(struct simulate_world *world, int from, int to, double bytes,
                   double now);

/* A message begins to come in. Plans SIMULATE_MESSAGE_COMES. */
void simulate_receive(struct simulate_world *world, const struct simulate_event *begins);

/* Of the message of one of these events. */
double simulate_bytes_of(const struct simulate_event *event);

#endif
