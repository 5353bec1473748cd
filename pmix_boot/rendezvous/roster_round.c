/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/roster_round.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum place {
    AWAITED,
    HERE,
    ANSWERED,
};

static int rank_at(const struct hvd_roster_round *round, int index)
{
    return round->ranks != NULL ? round->ranks[index] : index;
}

/* Finds the index of a rank; -1 if it is not in the round. */
static int find_place(const struct hvd_roster_round *round, int rank)
{
    for (int i = 0; round->ranks != NULL && i < round->count; i++) {
        if (round->ranks[i] == rank) {
            return i;
        }
    }
    return round->ranks == NULL && rank >= 0 && rank < round->count ? rank : -1;
}

bool hvd_roster_join_is_possible(const struct hvd_roster_join *join)
{
    if (join->count < 1 || join->count > HVD_ROSTER_MOST_RANKS || join->index < 0 ||
        join->index >= join->count || join->slot < 0 || join->timeout_ms < 0) {
        return false;
    }
    return (join->ranks != NULL ? join->ranks[join->index] : join->index) == join->slot;
}

bool hvd_roster_round_is_of(const struct hvd_roster_round *round,
                            const struct hvd_roster_join *join)
{
    if (round->ranks == NULL || join->ranks == NULL) {
        return round->ranks == NULL && join->ranks == NULL;
    }
    return round->count == join->count &&
           memcmp(round->ranks, join->ranks, (size_t)join->count * sizeof(int32_t)) == 0;
}

struct hvd_roster_round *hvd_roster_round_create(const struct hvd_roster_join *join,
                                                 int64_t now_ms)
{
    const size_t list_bytes = (size_t)join->count * sizeof(int32_t);
    struct hvd_roster_round *round = calloc(1, sizeof(*round));

    if (round == NULL) {
        return NULL;
    }
    *round = (struct hvd_roster_round){
        .count = join->count,
        .ranks = join->ranks != NULL ? malloc(list_bytes) : NULL,
        .places = calloc((size_t)join->count, 1),
        .awaited = join->count,
        .timeout_ms = join->timeout_ms,
        .deadline_ms = now_ms + join->timeout_ms,
        .lost = -1,
    };
    if (round->places == NULL || (join->ranks != NULL && round->ranks == NULL)) {
        hvd_roster_round_destroy(round);
        return NULL;
    }
    if (join->ranks != NULL) {
        memcpy(round->ranks, join->ranks, list_bytes);
    }
    return round;
}

void hvd_roster_round_destroy(struct hvd_roster_round *round)
{
    free(round->ranks);
    free(round->places);
    free(round);
}

static void fail_late(struct hvd_roster_round *round,
                      const struct hvd_missing_hosts *hosts)
{
    struct hvd_missing missing = {0};

    for (int i = 0; i < round->count; i++) {
        if (round->places[i] == AWAITED) {
            const int rank = rank_at(round, i);

            hvd_missing_add(&missing, rank, hvd_missing_hosts_find(hosts, rank));
        }
    }
    hvd_missing_fail(&missing, round->count, round->timeout_ms,
                     round->ranks != NULL ? HVD_MISSING_LIST : HVD_MISSING_CALL,
                     &round->failure.error);
    round->failure.culprit = -1;
}

/* Fails a member that joins after the others have got their answer. */
static int fail_latecomer(const struct hvd_roster_round *round, int rank,
                          struct hvd_roster_failure *failure)
{
    *failure = round->failure;
    if (failure->error.status == HVD_ERR_TIMEOUT) {
        hvd_fail(&failure->error, HVD_ERR_TIMEOUT,
                 "rank %d started too late: the others had waited for it for %g s and "
                 "given up; if it needs longer, set HVD_START_TIMEOUT to more seconds",
                 rank, round->timeout_ms / 1000.0);
    }
    return failure->error.status;
}

int hvd_roster_round_join(struct hvd_roster_round *round,
                          const struct hvd_roster_join *join,
                          struct hvd_roster_failure *failure)
{
    struct hvd_error *err = &failure->error;

    if (round->count != join->count) {
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "rank %d was told of %d ranks, others of %d: they do not belong "
                        "to one launch, or HOROVOD_SIZE was set by hand",
                        join->slot, join->count, round->count);
    }
    if (round->places[join->index] == HERE) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "there are two processes with rank %d: start each rank once, and "
                        "do not set HOROVOD_RANK by hand",
                        join->slot);
    }
    round->awaited -= round->places[join->index] == AWAITED;
    if (round->failure.error.status != 0) {
        round->places[join->index] = ANSWERED;
        return fail_latecomer(round, join->slot, failure);
    }
    round->places[join->index] = HERE;
    round->here++;
    if (round->lost == join->index) {
        round->lost = -1;
    }
    return 0;
}

static void fail_left(const struct hvd_roster_round *round, int index, const char *host,
                      struct hvd_roster_failure *failure)
{
    failure->culprit = rank_at(round, index);
    hvd_fail(&failure->error, HVD_ERR_PEER,
             "rank %d on %s has ended, or lost its network, before all %d ranks had "
             "started",
             failure->culprit, host, round->count);
}

void hvd_roster_round_leave(struct hvd_roster_round *round, int index, const char *host)
{
    round->places[index] = ANSWERED;
    round->here--;
    if (round->failure.error.status == 0) {
        fail_left(round, index, host, &round->failure);
    }
}

bool hvd_roster_round_lose(struct hvd_roster_round *round, int index, const char *host,
                           int64_t now_ms)
{
    if (round->lost >= 0 || round->failure.error.status != 0) {
        return false;
    }
    round->places[index] = AWAITED;
    round->here--;
    round->awaited++;
    round->lost = index;
    round->return_ms = now_ms + HVD_ROSTER_RETURN_MS;
    fail_left(round, index, host, &round->loss);
    return true;
}

void hvd_roster_round_end(struct hvd_roster_round *round,
                          const struct hvd_missing_end *end)
{
    const int at = find_place(round, end->rank);

    if (round->failure.error.status == 0 && at >= 0 && at == round->lost) {
        round->failure = round->loss;
    } else if (round->failure.error.status == 0 && at >= 0 &&
               round->places[at] == AWAITED) {
        hvd_missing_fail_end(end, round->ranks != NULL, &round->failure.error);
        round->failure.culprit = end->rank;
    }
}

void hvd_roster_round_expire(struct hvd_roster_round *round, int64_t now_ms,
                             const struct hvd_missing_hosts *hosts)
{
    if (round->failure.error.status != 0) {
        return;
    }
    if (round->lost >= 0 && now_ms >= round->return_ms) {
        round->failure = round->loss;
    } else if (round->awaited > 0 && now_ms >= round->deadline_ms) {
        fail_late(round, hosts);
    }
}

bool hvd_roster_round_has_answered(const struct hvd_roster_round *round, int index)
{
    return index < round->count && round->places[index] == ANSWERED;
}

void hvd_roster_round_answer(struct hvd_roster_round *round)
{
    for (int i = 0; i < round->count; i++) {
        round->places[i] = round->places[i] == HERE ? ANSWERED : round->places[i];
    }
    round->here = 0;
}
