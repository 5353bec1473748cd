/* SPDX-License-Identifier: Apache-2.0 */
/* What the defaults score lately, and how much scores vary by chance. Pure. */
#ifndef HVD_TUNER_REFERENCE_H
#define HVD_TUNER_REFERENCE_H

/* Zeroed: no sample yet. */
struct hvd_reference {
    double log_score; /* the newest counts as much as all before it */
    int count; /* samples */
    double last;
    double squares; /* of the differences between one and the next */
};

void hvd_reference_add(struct hvd_reference *reference, double log_score);

/* How far the log of another score against log_score may be off by chance: a standard deviation,
 * above 0; a guess that gets better with each sample. */
double hvd_reference_noise(const struct hvd_reference *reference);

#endif
