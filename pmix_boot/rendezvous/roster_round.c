/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/roster_round.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What a place holds instead of the connection of a rank that waits. */
enum {
    AWAITED = -1,
    ANSWERED = -2,
};

/* So many meetings are kept of which some ranks may still come, to hear why it failed. */
static const int most_kept = 64;

struct hvd_meeting {
    uint64_t list;
    uint32_t number;
    int count;
    int32_t *ranks; /* [count]; NULL: all of the launch */
    int *ids; /* [count] */
    int *told; /* [count], for a step */
    int here; /* places of ranks that wait */
    int missing; /* AWAITED places; with none of both, the meeting is over */
    int timeout_ms;
    int64_t deadline_ms;
    struct hvd_meeting_failure failure; /* why it cannot be any more; status 0: it can */
};

static int rank_at(const struct hvd_meeting *meeting, int index)
{
    return meeting->ranks != NULL ? meeting->ranks[index] : index;
}

/* --- meetings come and go --- */

static void destroy(struct hvd_meeting *meeting)
{
    if (meeting != NULL) {
        free(meeting->ranks);
        free(meeting->ids);
        free(meeting->told);
        free(meeting);
    }
}

static void remove_at(struct hvd_meetings *meetings, int at)
{
    destroy(meetings->all[at]);
    meetings->all[at] = meetings->all[--meetings->count];
}

void hvd_meetings_finish(struct hvd_meetings *meetings)
{
    while (meetings->count > 0) {
        remove_at(meetings, 0);
    }
    free(meetings->all);
    free(meetings->ended);
    *meetings = (struct hvd_meetings){0};
}

static bool is_same(const struct hvd_meeting *meeting,
                    const struct hvd_meeting_offer *offer)
{
    if (meeting->list != offer->list || meeting->number != offer->number ||
        (meeting->ranks == NULL) != (offer->ranks == NULL)) {
        return false;
    }
    return offer->ranks == NULL ||
           (meeting->count == offer->count &&
            memcmp(meeting->ranks, offer->ranks,
                   (size_t)offer->count * sizeof(offer->ranks[0])) == 0);
}

static int find(const struct hvd_meetings *meetings,
                const struct hvd_meeting_offer *offer)
{
    for (int i = 0; i < meetings->count; i++) {
        if (is_same(meetings->all[i], offer)) {
            return i;
        }
    }
    return -1;
}

/* NULL: no memory. */
static struct hvd_meeting *create(const struct hvd_meeting_offer *offer, int64_t now_ms)
{
    const size_t count = (size_t)offer->count;
    struct hvd_meeting *meeting = calloc(1, sizeof(*meeting));

    if (meeting == NULL) {
        return NULL;
    }
    *meeting = (struct hvd_meeting){
        .list = offer->list,
        .number = offer->number,
        .count = offer->count,
        .ids = malloc(count * sizeof(int)),
        .told = malloc(count * sizeof(int)),
        .missing = offer->count,
        .timeout_ms = offer->timeout_ms,
        .deadline_ms = now_ms + offer->timeout_ms,
    };
    meeting->ranks = offer->ranks != NULL ? malloc(count * sizeof(int32_t)) : NULL;
    if (meeting->ids == NULL || meeting->told == NULL ||
        (offer->ranks != NULL && meeting->ranks == NULL)) {
        destroy(meeting);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        meeting->ids[i] = AWAITED;
    }
    if (offer->ranks != NULL) {
        memcpy(meeting->ranks, offer->ranks, count * sizeof(int32_t));
    }
    return meeting;
}

static void forget_one(struct hvd_meetings *meetings)
{
    for (int i = 0; i < meetings->count; i++) {
        if (meetings->all[i]->here == 0) {
            remove_at(meetings, i);
            return;
        }
    }
}

static struct hvd_meeting *add(struct hvd_meetings *meetings,
                               const struct hvd_meeting_offer *offer, int64_t now_ms)
{
    struct hvd_meeting **grown;

    if (meetings->count >= most_kept) {
        forget_one(meetings);
    }
    grown = realloc(meetings->all, (size_t)(meetings->count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    meetings->all = grown;
    grown[meetings->count] = create(offer, now_ms);
    return grown[meetings->count] != NULL ? grown[meetings->count++] : NULL;
}

/* --- failures --- */

static bool has_ended(const struct hvd_meetings *meetings, int rank)
{
    return rank < meetings->ended_count && meetings->ended[rank] >= 0;
}

/* " 2, 5-7 and 12 more": the ranks that have not come. */
static void list_missing(const struct hvd_meeting *meeting, char *text, size_t bytes)
{
    enum {
        MOST_NAMED = 6
    };
    int named = 0;
    int left = meeting->missing;
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < meeting->count && named < MOST_NAMED; named++) {
        int first;
        int last;

        while (i < meeting->count && meeting->ids[i] != AWAITED) {
            i++;
        }
        if (i == meeting->count) {
            break;
        }
        first = last = rank_at(meeting, i++);
        left--;
        while (i < meeting->count && meeting->ids[i] == AWAITED &&
               rank_at(meeting, i) == last + 1) {
            last = rank_at(meeting, i++);
            left--;
        }
        used += (size_t)snprintf(text + used, bytes - used,
                                 first == last ? "%s%d" : "%s%d-%d",
                                 named > 0 ? ", " : " ", first, last);
    }
    if (left > 0) {
        snprintf(text + used, bytes - used, " and %d more", left);
    }
}

static void fail_late(struct hvd_meeting *meeting)
{
    char missing[160];

    list_missing(meeting, missing, sizeof(missing));
    meeting->failure.culprit = -1;
    hvd_fail(&meeting->failure.error, HVD_ERR_TIMEOUT,
             "%d of %d ranks did not start within %g s: rank%s%s; they have ended, hang, "
             "or never called init%s",
             meeting->missing, meeting->count, meeting->timeout_ms / 1000.0,
             meeting->missing > 1 ? "s" : "", missing,
             meeting->ranks != NULL ? " with the same list of ranks" : "");
}

static void fail_ended(struct hvd_meeting *meeting, int rank, int wait_status)
{
    char how[80];

    if (WIFSIGNALED(wait_status)) {
        snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
    } else {
        snprintf(how, sizeof(how), "exited with status %d", WEXITSTATUS(wait_status));
    }
    meeting->failure.culprit = rank;
    hvd_fail(&meeting->failure.error, HVD_ERR_PEER,
             "rank %d %s and did not call init%s: those that wait for it cannot start; "
             "see its output",
             rank, how, meeting->ranks != NULL ? " with this list of ranks" : "");
}

/* What a rank is told that comes when the others were told already. */
static int fail_latecomer(const struct hvd_meeting *meeting, int rank,
                          struct hvd_meeting_failure *failure)
{
    *failure = meeting->failure;
    if (failure->error.status == HVD_ERR_TIMEOUT) {
        hvd_fail(&failure->error, HVD_ERR_TIMEOUT,
                 "rank %d has started when the others had waited for it for %g s and "
                 "given up: HVD_START_TIMEOUT is how long they wait",
                 rank, meeting->timeout_ms / 1000.0);
    }
    return failure->error.status;
}

void hvd_meetings_leave(struct hvd_meetings *meetings, int id, const char *host)
{
    for (int i = 0; i < meetings->count; i++) {
        struct hvd_meeting *meeting = meetings->all[i];

        for (int at = 0; meeting->here > 0 && at < meeting->count; at++) {
            if (meeting->ids[at] != id) {
                continue;
            }
            meeting->ids[at] = ANSWERED;
            meeting->here--;
            if (meeting->failure.error.status == 0) {
                meeting->failure.culprit = rank_at(meeting, at);
                hvd_fail(&meeting->failure.error, HVD_ERR_PEER,
                         "rank %d on %s has ended, or lost its network, before all %d "
                         "ranks had started",
                         rank_at(meeting, at), host, meeting->count);
            }
            return;
        }
    }
}

void hvd_meetings_end(struct hvd_meetings *meetings, int rank, int wait_status)
{
    int *grown;

    if (rank < 0 || rank >= HVD_MEETING_MOST_RANKS) {
        return;
    }
    if (rank >= meetings->ended_count) {
        grown = realloc(meetings->ended, ((size_t)rank + 1) * sizeof(*grown));
        if (grown == NULL) {
            return; /* then a time limit tells the others */
        }
        meetings->ended = grown;
        while (meetings->ended_count <= rank) {
            grown[meetings->ended_count++] = -1;
        }
    }
    meetings->ended[rank] = wait_status;
}

/* --- ranks --- */

static bool is_possible(const struct hvd_meeting_offer *offer)
{
    if (offer->count < 1 || offer->count > HVD_MEETING_MOST_RANKS || offer->index < 0 ||
        offer->index >= offer->count || offer->rank < 0 || offer->timeout_ms < 0) {
        return false;
    }
    return (offer->ranks != NULL ? offer->ranks[offer->index] : offer->index) ==
           offer->rank;
}

/* The meeting that the offer is for, a new one if need be; NULL: no memory. */
static struct hvd_meeting *meeting_for(struct hvd_meetings *meetings,
                                       const struct hvd_meeting_offer *offer,
                                       int64_t now_ms)
{
    int at = find(meetings, offer);

    if (at >= 0 && offer->index < meetings->all[at]->count &&
        meetings->all[at]->ids[offer->index] == ANSWERED) {
        /* Those that still wait there hear why before they go. */
        if (meetings->all[at]->here > 0) {
            return meetings->all[at];
        }
        remove_at(meetings, at);
        at = -1;
    }
    return at >= 0 ? meetings->all[at] : add(meetings, offer, now_ms);
}

int hvd_meetings_offer(struct hvd_meetings *meetings, int id,
                       const struct hvd_meeting_offer *offer, int64_t now_ms,
                       struct hvd_meeting_failure *failure)
{
    struct hvd_error *err = &failure->error;
    struct hvd_meeting *meeting;

    failure->culprit = -1;
    if (!is_possible(offer)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "rank %d, number %d of %d, is no place in a job", offer->rank,
                        offer->index, offer->count);
    }
    meeting = meeting_for(meetings, offer, now_ms);
    if (meeting == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", offer->count);
    }
    if (meeting->count != offer->count) {
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        "rank %d was told of %d ranks, others of %d: they do not belong "
                        "to one launch, or HOROVOD_SIZE was set by hand",
                        offer->rank, offer->count, meeting->count);
    }
    if (meeting->ids[offer->index] >= 0) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "there are two processes with rank %d: start each rank once, and "
                        "do not set HOROVOD_RANK by hand",
                        offer->rank);
    }
    if (meeting->failure.error.status != 0) {
        meeting->missing -= meeting->ids[offer->index] == AWAITED;
        meeting->ids[offer->index] = ANSWERED;
        return fail_latecomer(meeting, offer->rank, failure);
    }
    meeting->ids[offer->index] = id;
    meeting->here++;
    meeting->missing--;
    return 0;
}

/* --- what is to be done --- */

/* Those that wait, all of whom now get an answer. */
static void answer(struct hvd_meeting *meeting, struct hvd_meeting_step *step)
{
    step->ids = meeting->told;
    step->count = 0;
    for (int i = 0; i < meeting->count; i++) {
        if (meeting->ids[i] >= 0) {
            meeting->told[step->count++] = meeting->ids[i];
            meeting->ids[i] = ANSWERED;
        }
    }
    meeting->here = 0;
}

static void judge(const struct hvd_meetings *meetings, struct hvd_meeting *meeting,
                  int64_t now_ms)
{
    for (int i = 0; i < meeting->count && meetings->ended_count > 0 &&
                    meeting->failure.error.status == 0;
         i++) {
        const int rank = rank_at(meeting, i);

        if (meeting->ids[i] == AWAITED && has_ended(meetings, rank)) {
            fail_ended(meeting, rank, meetings->ended[rank]);
        }
    }
    if (meeting->failure.error.status == 0 && now_ms >= meeting->deadline_ms) {
        fail_late(meeting);
    }
}

void hvd_meetings_next(struct hvd_meetings *meetings, int64_t now_ms,
                       struct hvd_meeting_step *step)
{
    *step = (struct hvd_meeting_step){.again_ms = -1};
    for (int i = 0; i < meetings->count && step->act == HVD_MEETING_WAIT;) {
        struct hvd_meeting *meeting = meetings->all[i];

        if (meeting->here == 0 && meeting->missing == 0) {
            remove_at(meetings, i);
            continue;
        }
        if (meeting->missing > 0) {
            judge(meetings, meeting, now_ms);
        }
        if (meeting->here > 0 && meeting->failure.error.status != 0) {
            step->act = HVD_MEETING_FAIL;
            step->failure = meeting->failure;
        } else if (meeting->here > 0 && meeting->missing == 0) {
            step->act = HVD_MEETING_COMPLETE;
        } else if (meeting->failure.error.status == 0 &&
                   (step->again_ms < 0 || meeting->deadline_ms < step->again_ms)) {
            step->again_ms = meeting->deadline_ms;
        }
        if (step->act != HVD_MEETING_WAIT) {
            answer(meeting, step);
        }
        i++;
    }
}
