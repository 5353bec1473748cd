/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the difference between another machine's clock and ours. */
#include "collectives/trace/clock_offset.h"

/* The frequency tolerance that NTP assumes for a clock (RFC 5905, PHI). */
static const int64_t drift_per_million = 15;

int64_t hvd_clock_offset_error(const struct hvd_clock_offset *offset, int64_t now_ns)
{
    int64_t age_us = (now_ns - offset->measured_ns) / 1000;

    return offset->error_ns + age_us * drift_per_million / 1000;
}

void hvd_clock_offset_add(struct hvd_clock_offset *offset,
                          const struct hvd_clock_round *round)
{
    int64_t there = round->received_ns - round->asked_ns;
    int64_t back = round->answered_ns - round->returned_ns;
    int64_t under_way = there - back;

    if (under_way < 0 || round->answered_ns < round->received_ns) {
        return;
    }
    if (offset->is_known &&
        under_way / 2 > hvd_clock_offset_error(offset, round->returned_ns)) {
        return;
    }
    offset->is_known = true;
    offset->offset_ns = (there + back) / 2;
    offset->error_ns = under_way / 2;
    offset->measured_ns = round->returned_ns;
}
