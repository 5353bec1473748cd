/* SPDX-License-Identifier: Apache-2.0 */
/* How far another machine's clock is from ours, by question and answer. Pure.
 *
 *   we      asked_ns ──────────┐                ┌───────> returned_ns      our clock
 *                              v                │
 *   they               received_ns ──────> answered_ns                     their clock
 *
 * If both ways took as long, their clock is ahead by ((received - asked) + (answered -
 * returned)) / 2. It can be wrong by half of the time that the message spent under way,
 * and is by half of the difference of both ways. So the fastest of many rounds tells the
 * most. It tells less as it gets older, because the clocks run at different speeds. */
#ifndef HVD_CLOCK_OFFSET_H
#define HVD_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_clock_round {
    int64_t asked_ns;
    int64_t received_ns;
    int64_t answered_ns;
    int64_t returned_ns;
};

/* Zeroed: nothing is known. */
struct hvd_clock_offset {
    bool is_known;
    int64_t offset_ns; /* their clock minus ours */
    int64_t error_ns; /* when it was measured, at most */
    int64_t measured_ns; /* our clock */
};

/* Takes the round if it tells more than what is known. Rounds that cannot be are
 * ignored. */
void hvd_clock_offset_add(struct hvd_clock_offset *offset,
                          const struct hvd_clock_round *round);

/* How wrong it can be by now, if the clocks' speeds differ by no more than 15
 * millionths. */
int64_t hvd_clock_offset_error(const struct hvd_clock_offset *offset, int64_t now_ns);

#endif
