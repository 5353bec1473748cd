/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes last, and what that costs the others: notes, windows, sums. */
#include "collectives/observe/lateness.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/observe/lateness_window.h"

/* As far may the others be behind. Who does not take part at all (its environment has no
 * HVD_REPORT) must not cost memory without end. */
static const int64_t most_windows = 256;

/* What this rank notes of a lane. */
struct lane {
    int64_t number; /* of the window that is being noted */
    int64_t merged; /* windows that the whole subtree has filled */
    int place; /* of the next batch */
    int64_t waited_us; /* in this window */
    int64_t ended_ns; /* the last batch */
};

struct hvd_lateness {
    int rank;
    int children;
    bool has_lost; /* a part, for want of memory */
    bool is_closed;
    struct lane lanes[HVD_LATENESS_LANES];
    struct hvd_lateness_kind kinds[HVD_LATENESS_KINDS]; /* not in a window yet */
    struct hvd_window *open; /* some rank of the subtree has still to say its part */
    struct hvd_window *full; /* for the parent, in this order */
    struct hvd_window **full_end;
    struct hvd_writer message; /* what take has handed out */
    struct hvd_lateness_sums sums; /* on rank 0 */
    struct hvd_lateness_rank ranks[];
};

int hvd_lateness_create(int rank, int size, int children, struct hvd_lateness **out,
                        struct hvd_error *err)
{
    size_t counted = rank == 0 ? (size_t)size : 0;
    struct hvd_lateness *lateness =
        calloc(1, sizeof(*lateness) + counted * sizeof(lateness->ranks[0]));

    if (lateness == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to note who is late");
    }
    lateness->rank = rank;
    lateness->children = children;
    lateness->full_end = &lateness->full;
    lateness->sums.size = size;
    lateness->sums.ranks = lateness->ranks;
    *out = lateness;
    return 0;
}

static void destroy_list(struct hvd_window *list)
{
    while (list != NULL) {
        struct hvd_window *next = list->next;

        hvd_window_destroy(list);
        list = next;
    }
}

void hvd_lateness_destroy(struct hvd_lateness *lateness)
{
    if (lateness != NULL) {
        destroy_list(lateness->open);
        destroy_list(lateness->full);
        hvd_writer_finish(&lateness->message);
        free(lateness);
    }
}

/* --- rank 0 counts ----------------------------------------------------------------------- */

static void count_record(struct hvd_lateness *lateness,
                         const struct hvd_window_record *record)
{
    struct hvd_lateness_rank *rank = &lateness->ranks[record->rank];
    int64_t late_us = (int64_t)record->second_us - record->least_us;

    lateness->sums.compared++;
    if (late_us == 0) {
        lateness->sums.even++;
    } else if (record->second_us != HVD_WAIT_NONE) {
        rank->last++;
        rank->late_us += late_us;
        rank->most_late_us = late_us > rank->most_late_us ? late_us : rank->most_late_us;
    }
}

static void add_kinds(struct hvd_lateness_kind *into,
                      const struct hvd_lateness_kind *from)
{
    for (int i = 0; i < HVD_LATENESS_KINDS; i++) {
        into[i].batches += from[i].batches;
        into[i].tensors += from[i].tensors;
        into[i].bytes += from[i].bytes;
        into[i].run_ns += from[i].run_ns;
    }
}

/* What a rank waited more than the last ones of the same batches, it waited for them. */
static void count_window(struct hvd_lateness *lateness, const struct hvd_window *window)
{
    int64_t least_us = 0;

    for (int i = 0; i < window->count; i++) {
        const struct hvd_window_record *record = &window->records[i];

        if (record->least_us == HVD_WAIT_NONE) {
            continue; /* all ranks had joined */
        }
        count_record(lateness, record);
        least_us += record->least_us;
        lateness->sums.kinds[window->kinds_of[i]].run_ns +=
            (int64_t)record->least_us * 1000 * lateness->sums.size;
    }
    for (int i = 0; i < window->share_count; i++) {
        const struct hvd_window_share *share = &window->shares[i];
        int64_t waited_us = share->wait_us - least_us;

        lateness->ranks[share->rank].waited_us += waited_us > 0 ? waited_us : 0;
    }
    add_kinds(lateness->sums.kinds, window->kinds);
}

/* --- windows ----------------------------------------------------------------------------- */

/* The open window with this number; made when it is new. NULL without memory. */
static struct hvd_window *find_window(struct hvd_lateness *lateness, int lane,
                                      int64_t number)
{
    struct hvd_window *window = lateness->open;

    while (window != NULL && (window->lane != lane || window->number != number)) {
        window = window->next;
    }
    if (window == NULL) {
        window = hvd_window_create(lane, number);
        if (window == NULL) {
            lateness->has_lost = true;
            return NULL;
        }
        window->next = lateness->open;
        lateness->open = window;
    }
    return window;
}

/* The window that this rank notes; NULL when that is lost. */
static struct hvd_window *own_window(struct hvd_lateness *lateness, int lane)
{
    const struct lane *own = &lateness->lanes[lane];

    if (own->number - own->merged >= most_windows) {
        lateness->has_lost = true;
        return NULL;
    }
    return find_window(lateness, lane, own->number);
}

static void take_out(struct hvd_lateness *lateness, const struct hvd_window *window)
{
    struct hvd_window **link = &lateness->open;

    while (*link != window) {
        link = &(*link)->next;
    }
    *link = window->next;
}

/* One more rank of the subtree's parts is in the window; the last one sends it on. */
static void add_part(struct hvd_lateness *lateness, struct hvd_window *window)
{
    window->parts++;
    if (window->parts <= lateness->children) {
        return;
    }
    take_out(lateness, window);
    lateness->lanes[window->lane].merged++;
    if (lateness->rank == 0) {
        count_window(lateness, window);
        hvd_window_destroy(window);
        return;
    }
    window->next = NULL;
    *lateness->full_end = window;
    lateness->full_end = &window->next;
}

/* This rank has said all about a window. */
static void end_window(struct hvd_lateness *lateness, int lane)
{
    struct lane *own = &lateness->lanes[lane];
    struct hvd_window *window = own_window(lateness, lane);

    if (window != NULL) {
        add_kinds(window->kinds, lateness->kinds);
        memset(lateness->kinds, 0, sizeof(lateness->kinds));
        if (hvd_window_share(window, lateness->rank, own->waited_us) != 0) {
            lateness->has_lost = true;
        }
        add_part(lateness, window);
    }
    own->number++;
    own->place = 0;
    own->waited_us = 0;
}

/* --- what this rank notes ---------------------------------------------------------------- */

/* Clocks of threads may differ by nanoseconds: what is negative is none. */
static uint32_t microseconds(int64_t ns)
{
    int64_t us = ns > 0 ? (ns + 500) / 1000 : 0;

    return us < HVD_WAIT_NONE ? (uint32_t)us : HVD_WAIT_NONE - 1;
}

/* The ends of a broadcast say nothing: its root is done before the others have come. */
static bool is_compared(const struct hvd_lateness_batch *batch)
{
    return batch->lane >= 0 && batch->lane < HVD_LATENESS_LANES &&
           (unsigned)batch->kind < HVD_LATENESS_KINDS &&
           batch->kind != HVD_KIND_BROADCAST && batch->kind != HVD_KIND_JOIN;
}

/* A rank that has joined is never late; it is taken as one that came with the last, which is
 * when the batch starts. */
static void compare(struct hvd_lateness *lateness, const struct hvd_lateness_batch *batch)
{
    struct lane *own = &lateness->lanes[batch->lane];
    struct hvd_window *window = own_window(lateness, batch->lane);
    bool has_joined = batch->submitted_ns == 0;
    int64_t came_ns = has_joined ? batch->started_ns : batch->submitted_ns;
    uint32_t wait_us = microseconds(batch->ended_ns -
                                    (came_ns > own->ended_ns ? came_ns : own->ended_ns));

    if (window != NULL) {
        window->kinds_of[own->place] = (uint8_t)batch->kind;
        hvd_window_note(window, own->place, lateness->rank,
                        has_joined ? HVD_WAIT_NONE : wait_us);
    }
    own->ended_ns = batch->ended_ns;
    own->waited_us += wait_us;
    own->place++;
    if (own->place == HVD_LATENESS_WINDOW) {
        end_window(lateness, batch->lane);
    }
}

void hvd_lateness_note(struct hvd_lateness *lateness,
                       const struct hvd_lateness_batch *batch)
{
    bool compared = is_compared(batch);

    if ((unsigned)batch->kind < HVD_LATENESS_KINDS) {
        struct hvd_lateness_kind *kind = &lateness->kinds[batch->kind];

        kind->batches++;
        kind->tensors += batch->tensors;
        kind->bytes += batch->bytes;
        kind->run_ns += compared ? 0 : batch->ended_ns - batch->started_ns;
    }
    if (compared) {
        compare(lateness, batch);
    }
}

/* The first lane's window is sent even when it is empty: it carries what is added up, and
 * tells that this rank has closed. */
void hvd_lateness_close(struct hvd_lateness *lateness)
{
    if (lateness->is_closed) {
        return;
    }
    lateness->is_closed = true;
    for (int lane = 0; lane < HVD_LATENESS_LANES; lane++) {
        if (lane == 0 || lateness->lanes[lane].place > 0) {
            end_window(lateness, lane);
        }
    }
}

/* --- between ranks ----------------------------------------------------------------------- */

bool hvd_lateness_take(struct hvd_lateness *lateness, const void **payload, size_t *bytes)
{
    struct hvd_window *window = lateness->full;

    if (window == NULL) {
        return false;
    }
    lateness->full = window->next;
    if (lateness->full == NULL) {
        lateness->full_end = &lateness->full;
    }
    lateness->message.bytes = 0;
    hvd_window_write(window, &lateness->message);
    hvd_window_destroy(window);
    *payload = lateness->message.data;
    *bytes = lateness->message.bytes;
    return !lateness->message.failed;
}

int hvd_lateness_merge(struct hvd_lateness *lateness, const void *payload, size_t bytes)
{
    struct hvd_window *window;
    int64_t number;
    int lane;

    if (hvd_window_peek(payload, bytes, lateness->sums.size, &lane, &number) != 0 ||
        number < lateness->lanes[lane].merged) {
        return HVD_ERR_ARG;
    }
    window = find_window(lateness, lane, number);
    if (window == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (hvd_window_merge(window, payload) != 0) {
        lateness->has_lost = true;
    }
    add_part(lateness, window);
    return 0;
}

const struct hvd_lateness_sums *hvd_lateness_sums(struct hvd_lateness *lateness)
{
    lateness->sums.is_complete =
        lateness->is_closed && lateness->open == NULL && !lateness->has_lost;
    return &lateness->sums;
}
