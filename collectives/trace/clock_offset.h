/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the difference between another machine's clock and ours, by question and
 * answer. Pure.
 *
 *   we      asked_ns ──────────┐                ┌───────> returned_ns      our clock
 *                              v                │
 *   they               received_ns ──────> answered_ns                     their clock
 *
 * If both ways took the same time, their clock is ahead by ((received - asked) +
 * (answered - returned)) / 2. The error is half of the difference between both ways, and
 * therefore at most half of their sum. So the fastest of many rounds is the most exact
 * one. Its error grows with time, because the clocks run at different speeds. */
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

/* All zeros: nothing is known. */
struct hvd_clock_offset {
    bool is_known;
    int64_t offset_ns; /* their clock minus ours */
    int64_t error_ns; /* largest possible error at measured_ns */
    int64_t measured_ns; /* by our clock */
};

/* Uses the round if it is more exact than the result so far. Ignores rounds with
 * impossible times. */
void hvd_clock_offset_add(struct hvd_clock_offset *offset,
                          const struct hvd_clock_round *round);

/* Returns the largest possible error at now_ns, if the speeds of the clocks differ by at
 * most 15 parts per million. */
int64_t hvd_clock_offset_error(const struct hvd_clock_offset *offset, int64_t now_ns);

#endif
