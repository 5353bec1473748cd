/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes last, and what that costs the others: notes, windows, sums. */
#include "collectives/trace/straggler_waits.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_window.h"

/* As far may the others be behind. Who does not take part at all (its environment has no
 * HVD_REPORT) must not cost memory without end. */
static const int64_t most_windows = 256;

/* What this rank notes of a queue. */
struct priority {
    int64_t number; /* of the window that is being noted */
    int64_t merged; /* windows that the whole subtree has filled */
    int place; /* of the next batch */
    int64_t waited_us; /* in this window */
    int64_t ended_ns; /* the last batch */
};

struct hvd_straggler_waits {
    int rank;
    int children;
    bool has_lost; /* a part, for want of memory */
    bool is_closed;
    struct priority priorities[HVD_STRAGGLER_PRIORITIES];
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS]; /* not in a window yet */
    /* some rank of the subtree has still to say its part */
    struct hvd_straggler_window *open;
    struct hvd_straggler_window *full; /* for the parent, in this order */
    struct hvd_straggler_window **full_end;
    struct hvd_writer message; /* what take has handed out */
    struct hvd_straggler_sums sums; /* on rank 0 */
    struct hvd_straggler_rank ranks[];
};

int hvd_straggler_waits_create(int rank, int size, int children,
                               struct hvd_straggler_waits **out, struct hvd_error *err)
{
    size_t counted = rank == 0 ? (size_t)size : 0;
    struct hvd_straggler_waits *waits =
        calloc(1, sizeof(*waits) + counted * sizeof(waits->ranks[0]));

    if (waits == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to note who is late");
    }
    waits->rank = rank;
    waits->children = children;
    waits->full_end = &waits->full;
    waits->sums.size = size;
    waits->sums.ranks = waits->ranks;
    *out = waits;
    return 0;
}

static void destroy_list(struct hvd_straggler_window *list)
{
    while (list != NULL) {
        struct hvd_straggler_window *next = list->next;

        hvd_straggler_window_destroy(list);
        list = next;
    }
}

void hvd_straggler_waits_destroy(struct hvd_straggler_waits *waits)
{
    if (waits != NULL) {
        destroy_list(waits->open);
        destroy_list(waits->full);
        hvd_writer_finish(&waits->message);
        free(waits);
    }
}

/* --- rank 0 counts ----------------------------------------------------------------------- */

static void count_record(struct hvd_straggler_waits *waits,
                         const struct hvd_straggler_window_record *record)
{
    struct hvd_straggler_rank *rank = &waits->ranks[record->rank];
    int64_t late_us = (int64_t)record->second_us - record->least_us;

    waits->sums.compared++;
    if (late_us == 0) {
        waits->sums.even++;
    } else if (record->second_us != HVD_WAIT_NONE) {
        rank->last++;
        hvd_straggler_add(&rank->late_us, late_us);
        rank->most_late_us = late_us > rank->most_late_us ? late_us : rank->most_late_us;
    }
}

/* What a rank waited more than the last ones of the same batches, it waited for them. */
static void count_window(struct hvd_straggler_waits *waits,
                         const struct hvd_straggler_window *window)
{
    int64_t least_us = 0;

    for (int i = 0; i < window->count; i++) {
        const struct hvd_straggler_window_record *record = &window->records[i];

        if (record->least_us == HVD_WAIT_NONE) {
            continue; /* all ranks had joined */
        }
        count_record(waits, record);
        least_us += record->least_us;
        hvd_straggler_add(&waits->sums.kinds[window->kinds_of[i]].run_ns,
                          (int64_t)record->least_us * 1000 * waits->sums.size);
    }
    for (int i = 0; i < window->share_count; i++) {
        const struct hvd_straggler_window_share *share = &window->shares[i];
        int64_t waited_us = share->wait_us - least_us;

        hvd_straggler_add(&waits->ranks[share->rank].waited_us,
                          waited_us > 0 ? waited_us : 0);
    }
    hvd_straggler_add_kinds(waits->sums.kinds, window->kinds);
}

/* --- windows ----------------------------------------------------------------------------- */

/* The open window with this number; made when it is new. NULL without memory. */
static struct hvd_straggler_window *find_window(struct hvd_straggler_waits *waits,
                                                int priority, int64_t number)
{
    struct hvd_straggler_window *window = waits->open;

    while (window != NULL && (window->priority != priority || window->number != number)) {
        window = window->next;
    }
    if (window == NULL) {
        window = hvd_straggler_window_create(priority, number);
        if (window == NULL) {
            waits->has_lost = true;
            return NULL;
        }
        window->next = waits->open;
        waits->open = window;
    }
    return window;
}

/* The window that this rank notes; NULL when that is lost. */
static struct hvd_straggler_window *own_window(struct hvd_straggler_waits *waits,
                                               int priority)
{
    const struct priority *own = &waits->priorities[priority];

    if (own->number - own->merged >= most_windows) {
        waits->has_lost = true;
        return NULL;
    }
    return find_window(waits, priority, own->number);
}

static void take_out(struct hvd_straggler_waits *waits,
                     const struct hvd_straggler_window *window)
{
    struct hvd_straggler_window **link = &waits->open;

    while (*link != window) {
        link = &(*link)->next;
    }
    *link = window->next;
}

/* One more rank of the subtree's parts is in the window; the last one sends it on. */
static void add_part(struct hvd_straggler_waits *waits,
                     struct hvd_straggler_window *window)
{
    window->parts++;
    if (window->parts <= waits->children) {
        return;
    }
    take_out(waits, window);
    waits->priorities[window->priority].merged++;
    if (waits->rank == 0) {
        count_window(waits, window);
        hvd_straggler_window_destroy(window);
        return;
    }
    window->next = NULL;
    *waits->full_end = window;
    waits->full_end = &window->next;
}

/* This rank has said all about a window. */
static void end_window(struct hvd_straggler_waits *waits, int priority)
{
    struct priority *own = &waits->priorities[priority];
    struct hvd_straggler_window *window = own_window(waits, priority);

    if (window != NULL) {
        hvd_straggler_add_kinds(window->kinds, waits->kinds);
        memset(waits->kinds, 0, sizeof(waits->kinds));
        if (hvd_straggler_window_share(window, waits->rank, own->waited_us) != 0) {
            waits->has_lost = true;
        }
        add_part(waits, window);
    }
    own->number++;
    own->place = 0;
    own->waited_us = 0;
}

/* --- what this rank notes ---------------------------------------------------------------- */

/* Clocks of threads may differ by nanoseconds: what is negative is none. */
static uint32_t to_microseconds(int64_t ns)
{
    int64_t us = ns > 0 ? (ns + 500) / 1000 : 0;

    return us < HVD_WAIT_NONE ? (uint32_t)us : HVD_WAIT_NONE - 1;
}

/* Ends say nothing where a rank may be done before the others have come, as the root of a
 * broadcast is. */
static bool is_compared(const struct hvd_straggler_batch *batch)
{
    return batch->priority >= 0 && batch->priority < HVD_STRAGGLER_PRIORITIES &&
           (unsigned)batch->kind < HVD_STRAGGLER_KINDS &&
           !hvd_kind_has_root((enum hvd_kind)batch->kind) && batch->kind != HVD_KIND_JOIN;
}

/* A rank that has joined is never late; it is taken as one that came with the last, which
 * is when the batch starts. */
static void compare_batch(struct hvd_straggler_waits *waits,
                          const struct hvd_straggler_batch *batch)
{
    struct priority *own = &waits->priorities[batch->priority];
    struct hvd_straggler_window *window = own_window(waits, batch->priority);
    bool has_joined = batch->submitted_ns == 0;
    int64_t came_ns = has_joined ? batch->started_ns : batch->submitted_ns;
    uint32_t wait_us = to_microseconds(
        batch->ended_ns - (came_ns > own->ended_ns ? came_ns : own->ended_ns));

    if (window != NULL) {
        window->kinds_of[own->place] = (uint8_t)batch->kind;
        hvd_straggler_window_note(window, own->place, waits->rank,
                                  has_joined ? HVD_WAIT_NONE : wait_us);
    }
    own->ended_ns = batch->ended_ns;
    own->waited_us += wait_us;
    own->place++;
    if (own->place == HVD_STRAGGLER_WINDOW) {
        end_window(waits, batch->priority);
    }
}

void hvd_straggler_waits_note(struct hvd_straggler_waits *waits,
                              const struct hvd_straggler_batch *batch)
{
    bool compared = is_compared(batch);

    if ((unsigned)batch->kind < HVD_STRAGGLER_KINDS) {
        struct hvd_straggler_kind *kind = &waits->kinds[batch->kind];

        kind->batches++;
        kind->tensors += batch->tensors;
        kind->bytes += batch->bytes;
        kind->run_ns += compared ? 0 : batch->ended_ns - batch->started_ns;
    }
    if (compared) {
        compare_batch(waits, batch);
    }
}

/* The first queue's window is sent even when it is empty: it carries what is added up,
 * and tells that this rank has closed. */
void hvd_straggler_waits_close(struct hvd_straggler_waits *waits)
{
    if (waits->is_closed) {
        return;
    }
    waits->is_closed = true;
    for (int priority = 0; priority < HVD_STRAGGLER_PRIORITIES; priority++) {
        if (priority == 0 || waits->priorities[priority].place > 0) {
            end_window(waits, priority);
        }
    }
}

/* --- between ranks ----------------------------------------------------------------------- */

bool hvd_straggler_waits_take(struct hvd_straggler_waits *waits, const void **payload,
                              size_t *bytes)
{
    struct hvd_straggler_window *window = waits->full;

    if (window == NULL) {
        return false;
    }
    waits->full = window->next;
    if (waits->full == NULL) {
        waits->full_end = &waits->full;
    }
    waits->message.bytes = 0;
    hvd_straggler_window_write(window, &waits->message);
    hvd_straggler_window_destroy(window);
    *payload = waits->message.data;
    *bytes = waits->message.bytes;
    return !waits->message.failed;
}

int hvd_straggler_waits_merge(struct hvd_straggler_waits *waits, const void *payload,
                              size_t bytes)
{
    struct hvd_straggler_window *window;
    int64_t number;
    int priority;

    if (hvd_straggler_window_peek(payload, bytes, waits->sums.size, &priority, &number) !=
            0 ||
        number < waits->priorities[priority].merged) {
        return HVD_ERR_ARG;
    }
    window = find_window(waits, priority, number);
    if (window == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (hvd_straggler_window_merge(window, payload) != 0) {
        waits->has_lost = true;
    }
    add_part(waits, window);
    return 0;
}

const struct hvd_straggler_sums *
hvd_straggler_waits_sums(struct hvd_straggler_waits *waits)
{
    waits->sums.is_complete = waits->is_closed && waits->open == NULL && !waits->has_lost;
    return &waits->sums;
}
