/* SPDX-License-Identifier: Apache-2.0 */
/* Two settings in turns, until one is better beyond the noise. */
#include "collectives/tuner/tuner_duel.h"

#include <math.h>
#include <string.h>

#include "collectives/tuner/median.h"

/* Fewer pairs than this say nothing about the noise. */
static const int least_pairs = 4;

/* What is not this much faster (0.3 %) is not worth the change. */
static const double least_lead = 0.003;

/* How far the median of the leads may be off by chance. One outlier among the leads hardly
 * moves the median distance, but where that is small by luck the deviation stands in. */
static double standard_error(const double *leads, int count, double median)
{
    double distances[HVD_DUEL_PAIRS];
    double squares = 0, spread, deviation;

    for (int i = 0; i < count; i++) {
        distances[i] = fabs(leads[i] - median);
        squares += distances[i] * distances[i];
    }
    spread = 1.4826 * hvd_median(distances, count); /* of a normal distribution */
    deviation = sqrt(squares / (count - 1)) / 2;
    return 1.2533 * fmax(spread, deviation) / sqrt(count); /* of its median */
}

static enum hvd_verdict judge(const struct hvd_duel *duel)
{
    double leads[HVD_DUEL_PAIRS];
    int count = duel->turn / 2;
    double median, error;

    if (count < least_pairs) {
        return HVD_DUEL_OPEN;
    }
    memcpy(leads, duel->leads, sizeof(leads));
    median = hvd_median(leads, count);
    error = standard_error(duel->leads, count, median);
    if (median - 3 * error > least_lead) {
        return HVD_DUEL_WON;
    }
    if (median + 2 * error < least_lead) {
        return HVD_DUEL_LOST;
    }
    if (count < HVD_DUEL_PAIRS) {
        return HVD_DUEL_OPEN;
    }
    return median > least_lead && median > 2 * error ? HVD_DUEL_WON : HVD_DUEL_LOST;
}

int hvd_duel_turn(const struct hvd_duel *duel)
{
    return (duel->turn / 2 + duel->turn) % 2 == 0;
}

enum hvd_verdict hvd_duel_tell(struct hvd_duel *duel, double log_score)
{
    double sign = hvd_duel_turn(duel) == 0 ? 1 : -1;

    duel->turn++;
    if (duel->turn % 2 == 1) {
        duel->first = log_score;
        return HVD_DUEL_OPEN;
    }
    duel->leads[duel->turn / 2 - 1] = sign * (duel->first - log_score);
    return judge(duel);
}
