/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses pairs for measuring links. Every member is in at most one pair of a round, so
 * pairs do not disturb each other, and the number of rounds does not depend on the number
 * of members. Pure. */
#ifndef HVD_INFO_PAIRS_H
#define HVD_INFO_PAIRS_H

/* Returns the partner of member `me` of `count` in a round (0, 1, 2), or -1 if it has
 * none. Rounds 0 and 1 pair neighbours, with even and odd numbers; round 2 pairs members
 * that are half of the list apart. No pair is in two rounds. */
int hvd_info_pairs_partner(int me, int count, int round);

#endif
