/* SPDX-License-Identifier: Apache-2.0 */
/* What the defaults score lately, and how much scores vary by chance. */
#include "collectives/tuner/tuner_reference.h"

#include <math.h>

/* Before anything is known samples are off by 2 %, a guess that counts for two samples. */
static const double guessed_noise = 0.02;
static const double guess_counts = 2;

/* No machine is steadier. */
static const double least_noise = 0.002;

void hvd_reference_add(struct hvd_reference *reference, double log_score)
{
    double change = log_score - reference->last;

    if (reference->count == 0) {
        reference->log_score = log_score;
    } else {
        reference->log_score = (log_score + reference->log_score) / 2;
        reference->squares += change * change;
    }
    reference->last = log_score;
    reference->count++;
}

double hvd_reference_noise(const struct hvd_reference *reference)
{
    int differences = reference->count > 0 ? reference->count - 1 : 0;
    /* A difference has the variance of two samples, a lead that of one and about half of one. */
    double variance =
        (reference->squares / 2 + guess_counts * guessed_noise * guessed_noise) /
        (differences + guess_counts);

    return fmax(sqrt(1.5 * variance), least_noise);
}
