/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the difference between rank 0's clock and this rank's. */
#include "collectives/trace/clock_sync.h"

#include <string.h>

#include "collectives/transport/control/uplink.h"
#include "collectives/transport/control/tree.h"
#include "gpu_binding/base/clock.h"

/* A round on an idle machine takes 50 us. The fastest of 32 is close to the minimum. */
static const int first_rounds = 32;
static const int later_rounds = 8;

/* A burst goes on until the error is this small, or until this much time has passed. */
static const int64_t close_ns = 20000;
static const int64_t first_limit_ns = 100000000;
static const int64_t later_limit_ns = 20000000;

/* Free-running clocks differ by about 20 parts per million: by 40 us in this time. */
static const int64_t burst_every_ns = INT64_C(2000000000);

/* Time between questions while the parent does not know its own difference yet. */
static const int64_t patience_ns = 1000000;

/* The payload of both messages; CLOCK_ASK has only asked_ns. */
struct letter {
    struct hvd_clock_round round;
    int64_t parent_offset_ns; /* the parent's difference to rank 0's clock */
    int64_t parent_error_ns;
    int64_t parent_state;
};

void hvd_clock_sync_init(struct hvd_clock_sync *sync, struct hvd_uplink *uplink,
                         const struct hvd_boot *boot)
{
    int parent = hvd_tree_parent(&boot->layout, boot->rank);
    const int *node = boot->layout.node;

    memset(sync, 0, sizeof(*sync));
    sync->uplink = uplink;
    sync->has_parent = parent >= 0;
    sync->now_ns = hvd_clock_ns;
    sync->shares_clock = parent < 0 || node[parent] == node[boot->rank];
    atomic_init(&sync->offset_ns, 0);
    atomic_init(&sync->state, parent < 0 ? HVD_CLOCK_GOOD : HVD_CLOCK_UNKNOWN);
    atomic_init(&sync->error_ns, 0);
    sync->next_ns = INT64_MIN;
}

int hvd_clock_sync_progress(struct hvd_clock_sync *sync)
{
    struct letter letter = {0};
    int64_t now_ns;

    if (!sync->has_parent || sync->is_waiting) {
        return 0;
    }
    now_ns = sync->now_ns();
    if (now_ns < sync->next_ns) {
        return 0;
    }
    if (sync->rounds == 0) {
        sync->burst_ns = now_ns;
    }
    sync->is_waiting = true;
    letter.round.asked_ns = sync->now_ns();
    return hvd_uplink_send_up(sync->uplink, HVD_MESSAGE_CLOCK_ASK, &letter,
                              sizeof(letter));
}

void hvd_clock_sync_on_ask(struct hvd_clock_sync *sync,
                           const struct hvd_uplink_event *event)
{
    struct letter letter;

    if (event->bytes != sizeof(letter) || event->from == HVD_UPLINK_PARENT) {
        return;
    }
    memcpy(&letter, event->payload, sizeof(letter));
    letter.round.received_ns = sync->now_ns();
    letter.parent_state = atomic_load(&sync->state);
    letter.parent_offset_ns = atomic_load(&sync->offset_ns);
    letter.parent_error_ns = atomic_load(&sync->error_ns);
    letter.round.answered_ns = sync->now_ns();
    /* If memory is out, there is no answer, and the child's clock stays unknown. */
    (void)hvd_uplink_send_child(sync->uplink, event->from, HVD_MESSAGE_CLOCK_ANSWER,
                                &letter, sizeof(letter));
}

/* Adds this rank's difference to its parent and the parent's difference to rank 0. */
static void add_up(struct hvd_clock_sync *sync, const struct letter *letter)
{
    int64_t offset_ns = letter->parent_offset_ns;
    int64_t error_ns = letter->parent_error_ns;

    if (!sync->shares_clock) {
        offset_ns += sync->edge.offset_ns;
        error_ns += hvd_clock_offset_error(&sync->edge, letter->round.returned_ns);
    }
    atomic_store(&sync->error_ns, error_ns);
    atomic_store(&sync->offset_ns, offset_ns);
}

/* Whether this burst is over. */
static bool is_burst_over(struct hvd_clock_sync *sync, int64_t now_ns)
{
    bool is_first = atomic_load(&sync->state) != HVD_CLOCK_GOOD;
    int64_t limit_ns = is_first ? first_limit_ns : later_limit_ns;

    if (sync->shares_clock) {
        return true;
    }
    return sync->rounds >= (is_first ? first_rounds : later_rounds) &&
           (hvd_clock_offset_error(&sync->edge, now_ns) <= close_ns ||
            now_ns - sync->burst_ns > limit_ns);
}

static void end_round(struct hvd_clock_sync *sync, const struct letter *letter)
{
    int64_t now_ns = letter->round.returned_ns;

    sync->is_waiting = false;
    sync->rounds++;
    if (!is_burst_over(sync, now_ns)) {
        return;
    }
    if (letter->parent_state == HVD_CLOCK_GOOD) {
        sync->rounds = 0;
        sync->next_ns = now_ns + burst_every_ns;
        atomic_store(&sync->state, HVD_CLOCK_GOOD);
    } else {
        sync->next_ns = now_ns + patience_ns;
    }
}

/* Whether the numbers are small enough that sums of them do not overflow. */
static bool is_sound(const struct letter *letter)
{
    const int64_t most_ns = INT64_MAX / 8; /* 36 years */
    const int64_t times[] = {letter->round.asked_ns, letter->round.received_ns,
                             letter->round.answered_ns, letter->parent_offset_ns,
                             letter->parent_error_ns};

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (times[i] < -most_ns || times[i] > most_ns) {
            return false;
        }
    }
    return true;
}

void hvd_clock_sync_on_answer(struct hvd_clock_sync *sync,
                              const struct hvd_uplink_event *event)
{
    int64_t now_ns = sync->now_ns();
    int rough = HVD_CLOCK_UNKNOWN;
    struct letter letter;

    if (event->bytes != sizeof(letter) || !sync->is_waiting) {
        return;
    }
    memcpy(&letter, event->payload, sizeof(letter));
    if (!is_sound(&letter)) {
        return;
    }
    letter.round.returned_ns = now_ns;
    hvd_clock_offset_add(&sync->edge, &letter.round);
    if (letter.parent_state != HVD_CLOCK_UNKNOWN && sync->edge.is_known) {
        add_up(sync, &letter);
        atomic_compare_exchange_strong(&sync->state, &rough, HVD_CLOCK_ROUGH);
    }
    end_round(sync, &letter);
}

enum hvd_clock_state hvd_clock_sync_offset(struct hvd_clock_sync *sync,
                                           int64_t *offset_ns, int64_t *error_ns)
{
    int state = atomic_load(&sync->state);

    *offset_ns = atomic_load(&sync->offset_ns);
    *error_ns = atomic_load(&sync->error_ns);
    return (enum hvd_clock_state)state;
}
