/* SPDX-License-Identifier: Apache-2.0 */
/* Two settings in turns, until one is better beyond the noise. Pure. */
#ifndef HVD_TUNER_DUEL_H
#define HVD_TUNER_DUEL_H

enum {
    HVD_DUEL_PAIRS = 6, /* at most */
};

enum hvd_verdict {
    HVD_DUEL_OPEN,
    HVD_DUEL_WON, /* the challenger is better, beyond the noise */
    HVD_DUEL_LOST, /* it is not */
};

/* Zeroed is a new duel. */
struct hvd_duel {
    double leads[HVD_DUEL_PAIRS]; /* log of challenger's score / score of the other */
    int turn; /* samples so far */
    double first; /* log score of the first in this pair */
};

/* Whose turn it is: 1 the challenger's, 0 the other's. They change places in each pair, so that
 * a drift favours neither. */
int hvd_duel_turn(const struct hvd_duel *duel);

/* The log score of whose turn it was. After the last pair the verdict is not open. */
enum hvd_verdict hvd_duel_tell(struct hvd_duel *duel, double log_score);

#endif
