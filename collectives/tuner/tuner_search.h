/* SPDX-License-Identifier: Apache-2.0 */
/* Which setting of the knobs to try next, and which one is best. Pure.
 *
 *   explore  three settings far apart, then the most promising one, until no other promises
 *            anything. The gain of a setting is predicted from all trials, near ones before
 *            all; the farther it is from the nearest of them, the more the prediction may be
 *            too low.
 *   again    the best few are sampled again
 *   duel     the best against the defaults in turns (tuner_duel.h); it must win by more than
 *            the noise, else the defaults stay
 *
 * While exploring, the defaults are sampled again and again, and every score counts as a ratio
 * to theirs: what slows the whole job for a while slows both.
 *
 * Why predict: in simulated jobs a search along one knob after the other got stuck where both
 * have to change together (small thresholds need short cycles), and ended up to 40 % above the
 * best. A Gaussian process in place of the weighted mean found no better settings. */
#ifndef HVD_TUNER_SEARCH_H
#define HVD_TUNER_SEARCH_H

#include <stdbool.h>

#include "collectives/tuner/knob.h"
#include "gpu_binding/base/error.h"

enum {
    HVD_TUNER_KNOBS = 8, /* at most */
    HVD_SEARCH_TRIALS = 200, /* more find nothing more */
};

/* The index of each knob's value. */
struct hvd_tuner_setting {
    int index[HVD_TUNER_KNOBS];
};

struct hvd_search;

/* knobs: [count], borrowed; at most HVD_TUNER_KNOBS. max_trials: how many settings may be
 * tried, the defaults among them, at least 1; above HVD_SEARCH_TRIALS counts as that. Without a
 * choice the search is over at once. The caller owns *out. */
int hvd_search_create(const struct hvd_knob *knobs, int count, int max_trials,
                      struct hvd_search **out, struct hvd_error *err);
void hvd_search_destroy(struct hvd_search *search); /* NULL is fine */

/* The setting to sample now; when the search is over, the best one. */
const struct hvd_tuner_setting *hvd_search_setting(const struct hvd_search *search);

/* The score of that setting (above 0; more is better), and on to the next. */
void hvd_search_tell(struct hvd_search *search, double score);

bool hvd_search_is_over(const struct hvd_search *search);

/* The score of the defaults lately; 0 before the first. */
double hvd_search_reference(const struct hvd_search *search);

/* The score to expect of what hvd_search_setting says; 0 before the first sample. */
double hvd_search_score(const struct hvd_search *search);

#endif
