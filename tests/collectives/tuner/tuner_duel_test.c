/* SPDX-License-Identifier: Apache-2.0 */
/* When a setting counts as better than another. */
#include "collectives/tuner/tuner_duel.h"

#include "tests/tap.h"

static enum hvd_verdict fight(const double *challenger, const double *other, double drift)
{
    struct hvd_duel duel = {0};
    enum hvd_verdict verdict = HVD_DUEL_OPEN;
    int turns[2] = {0};

    for (int i = 0; verdict == HVD_DUEL_OPEN && i < 2 * HVD_DUEL_PAIRS; i++) {
        int side = hvd_duel_turn(&duel);
        const double *scores = side == 1 ? challenger : other;

        verdict = hvd_duel_tell(&duel, scores[turns[side]++] + drift * i);
    }
    return verdict;
}

static void test_duels(void)
{
    const double even[HVD_DUEL_PAIRS] = {0.01, -0.01, 0.005, 0, -0.005, 0.01};
    const double same[HVD_DUEL_PAIRS] = {-0.01, 0.01, 0, 0.005, 0.01, -0.005};
    const double better[HVD_DUEL_PAIRS] = {0.06, 0.05, 0.045, 0.055, 0.05, 0.05};
    const double once[HVD_DUEL_PAIRS] = {2, 0, 0.005, 0, -0.005, 0.01};

    tap_ok(fight(better, even, 0) == HVD_DUEL_WON, "who is 5 %% better wins");
    tap_ok(fight(even, better, 0) == HVD_DUEL_LOST, "who is worse loses");
    tap_ok(fight(even, same, 0) == HVD_DUEL_LOST, "who is as good loses");
    tap_ok(fight(once, even, 0) == HVD_DUEL_LOST, "who is far better once loses");
    tap_ok(fight(even, same, 0.1) == HVD_DUEL_LOST &&
               fight(even, same, -0.1) == HVD_DUEL_LOST,
           "a job that gets faster or slower makes no winner");
}

int main(void)
{
    test_duels();
    return tap_done();
}
