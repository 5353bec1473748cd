/* SPDX-License-Identifier: Apache-2.0 */
/* Straggler report, the measurement: notes, windows, sums. */
#include "collectives/trace/straggler_waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_window.h"

/* How many windows this rank may be ahead of the others. Without this limit, a rank that
 * does not take part (its environment lacks HVD_REPORT) would cost unlimited memory. */
static const int64_t most_windows = 256;

/* This rank's measurements of one queue. */
struct priority {
    int64_t number; /* number of the window that is being filled */
    int64_t merged; /* number of windows that the whole subtree has filled */
    int place; /* position of the next batch in the window */
    int64_t waited_us; /* sum of this rank's waits in this window */
    int64_t ended_ns; /* end of the last batch */
    uint32_t cells_us[HVD_STRAGGLER_WINDOW]; /* its waits by cells, for the page */
};

struct hvd_straggler_waits {
    int rank;
    int children;
    bool has_lost; /* some data are lost because memory was out */
    bool is_closed;
    struct priority priorities[HVD_STRAGGLER_PRIORITIES];
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS]; /* not yet part of a window */
    /* windows to which ranks of the subtree still have to add their part */
    struct hvd_straggler_window *open;
    /* windows to be sent to the parent, in this order */
    struct hvd_straggler_window *full;
    struct hvd_straggler_window **full_end;
    bool has_page; /* keeps what the page of the report needs */
    int64_t began_ns;
    int64_t batches; /* number of compared batches that rank 0 has noted */
    struct hvd_straggler_history *history; /* rank 0; NULL: there is no page */
    struct hvd_straggler_buckets *buckets;
    struct hvd_straggler_sections *own_sections; /* NULL: none are reported */
    struct hvd_writer message; /* the message that take returned last */
    struct hvd_straggler_sums sums; /* rank 0 */
    struct hvd_straggler_section sections[HVD_SECTIONS];
    int64_t *section_ns; /* [rank * HVD_SECTIONS + section], once a rank has sections */
    struct hvd_straggler_rank ranks[];
};

int hvd_straggler_waits_create(int rank, int size, int children,
                               struct hvd_straggler_waits **out, struct hvd_error *err)
{
    size_t counted = rank == 0 ? (size_t)size : 0;
    struct hvd_straggler_waits *waits =
        calloc(1, sizeof(*waits) + counted * sizeof(waits->ranks[0]));

    if (waits == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the straggler report");
    }
    waits->rank = rank;
    waits->children = children;
    waits->full_end = &waits->full;
    waits->sums.size = size;
    waits->sums.ranks = waits->ranks;
    waits->sums.sections = waits->sections;
    *out = waits;
    return 0;
}

void hvd_straggler_waits_watch(struct hvd_straggler_waits *waits,
                               struct hvd_straggler_sections *sections)
{
    waits->own_sections = sections;
}

int hvd_straggler_waits_keep(struct hvd_straggler_waits *waits, int64_t began_ns,
                             struct hvd_error *err)
{
    int status = 0;

    if (waits->rank == 0) {
        status = hvd_straggler_history_create(waits->sums.size, &waits->history, err);
        if (status != 0) {
            return status;
        }
        waits->buckets = calloc(1, sizeof(*waits->buckets));
        if (waits->buckets == NULL) {
            return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the page of the report");
        }
    }
    waits->has_page = true;
    waits->began_ns = began_ns;
    waits->sums.history = waits->history;
    waits->sums.buckets = waits->buckets;
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
        free(waits->section_ns);
        free(waits->buckets);
        hvd_straggler_history_destroy(waits->history);
        free(waits);
    }
}

/* --- rank 0 adds up --- */

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

static void count_section(struct hvd_straggler_waits *waits,
                          const struct hvd_straggler_window_section *own)
{
    int index;

    if (waits->section_ns == NULL) {
        waits->section_ns =
            calloc((size_t)waits->sums.size * HVD_SECTIONS, sizeof(waits->section_ns[0]));
        waits->sums.section_ns = waits->section_ns;
    }
    if (waits->section_ns == NULL) {
        waits->has_lost = true;
        return;
    }
    index = hvd_straggler_section_find(waits->sections, &waits->sums.section_count,
                                       own->section.name);
    hvd_straggler_add(&waits->sections[index].ns, own->section.ns);
    hvd_straggler_add(&waits->section_ns[own->rank * HVD_SECTIONS + index],
                      own->section.ns);
}

/* Returns the step of a batch; while no step is counted, the number of the batch. */
static int64_t step_of(const struct hvd_straggler_waits *waits,
                       const struct hvd_straggler_window_mark *mark)
{
    return waits->history->has_steps ? mark->steps : mark->batch;
}

/* Adds a batch to the history and to its bucket. */
static void keep_record(struct hvd_straggler_waits *waits,
                        const struct hvd_straggler_window_record *record,
                        const struct hvd_straggler_window_mark *mark)
{
    const int64_t step = step_of(waits, mark);
    const int64_t late_us = record->second_us != HVD_WAIT_NONE
                                ? (int64_t)record->second_us - record->least_us
                                : 0;

    hvd_straggler_history_add_batch(waits->history, step, record->least_us,
                                    (mark->ended_ns - waits->began_ns) / 1000);
    hvd_straggler_history_add_late(waits->history, step, record->rank, late_us);
    hvd_straggler_buckets_add(waits->buckets, mark->bucket, record->least_us, late_us);
}

/* Adds the waits of one rank to the history. least_us: the shortest waits, by cells. */
static void keep_share(struct hvd_straggler_waits *waits,
                       const struct hvd_straggler_window *window, int i,
                       const int64_t *least_us)
{
    const int width = HVD_STRAGGLER_WINDOW / window->cell_count;
    const uint32_t *cells_us = window->cells_us + (size_t)i * (size_t)window->cell_count;

    for (int cell = 0; cell * width < window->count; cell++) {
        hvd_straggler_history_add_wait(
            waits->history, step_of(waits, &window->marks[(size_t)cell * (size_t)width]),
            (int)window->shares[i].rank, (int64_t)cells_us[cell] - least_us[cell]);
    }
}

/* Adds a window to the history. */
static void keep_window(struct hvd_straggler_waits *waits,
                        const struct hvd_straggler_window *window)
{
    int64_t least_us[HVD_STRAGGLER_WINDOW] = {0};

    if (waits->history == NULL || window->cell_count == 0 || window->marks == NULL) {
        return;
    }
    for (int i = 0; i < window->count; i++) {
        const struct hvd_straggler_window_record *record = &window->records[i];

        if (record->least_us != HVD_WAIT_NONE) {
            keep_record(waits, record, &window->marks[i]);
            least_us[i * window->cell_count / HVD_STRAGGLER_WINDOW] += record->least_us;
        }
    }
    for (int i = 0; i < window->share_count; i++) {
        keep_share(waits, window, i, least_us);
    }
}

/* Adds a window to the sums. The time that a rank has waited for later ranks is the sum
 * of its waits minus the sum of the shortest waits. */
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
    for (int i = 0; i < window->section_count; i++) {
        count_section(waits, &window->sections[i]);
    }
    keep_window(waits, window);
    hvd_straggler_add_kinds(waits->sums.kinds, window->kinds);
}

/* --- windows --- */

/* Returns the open window with this number, or a new one; NULL if memory is out. */
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
        if (waits->has_page && hvd_straggler_window_keep(window, waits->rank == 0) != 0) {
            waits->has_lost = true;
        }
        window->next = waits->open;
        waits->open = window;
    }
    return window;
}

/* Returns this rank's present window; NULL: its data are lost. */
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

/* Adds a complete part of the window, this rank's own or a child's. If it was the last
 * part, passes the window on. */
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

/* Moves this rank's times in sections into the window. */
static void add_sections(struct hvd_straggler_waits *waits,
                         struct hvd_straggler_window *window, int64_t now_ns)
{
    struct hvd_straggler_section list[HVD_SECTIONS];
    int count = waits->own_sections != NULL
                    ? hvd_straggler_sections_take(waits->own_sections, now_ns, list)
                    : 0;

    for (int i = 0; i < count; i++) {
        const struct hvd_straggler_window_section own = {waits->rank, list[i]};

        if (list[i].ns > 0 && hvd_straggler_window_section(window, &own) != 0) {
            waits->has_lost = true;
        }
    }
}

/* Completes this rank's part of a window. */
static void end_window(struct hvd_straggler_waits *waits, int priority)
{
    struct priority *own = &waits->priorities[priority];
    struct hvd_straggler_window *window = own_window(waits, priority);

    if (window != NULL) {
        hvd_straggler_add_kinds(window->kinds, waits->kinds);
        memset(waits->kinds, 0, sizeof(waits->kinds));
        if (hvd_straggler_window_share(window, waits->rank, own->waited_us,
                                       own->cells_us) != 0) {
            waits->has_lost = true;
        }
        add_sections(waits, window, own->ended_ns);
        add_part(waits, window);
    }
    own->number++;
    own->place = 0;
    own->waited_us = 0;
    memset(own->cells_us, 0, sizeof(own->cells_us));
}

/* --- this rank's notes --- */

/* Converts to microseconds. Clocks of threads may differ by nanoseconds: a negative time
 * counts as 0. */
static uint32_t to_microseconds(int64_t ns)
{
    int64_t us = ns > 0 ? (ns + 500) / 1000 : 0;

    return us < HVD_WAIT_NONE ? (uint32_t)us : HVD_WAIT_NONE - 1;
}

/* Whether the ends of the batch tell which rank arrived last. They do not where a rank
 * may finish before others have arrived, such as the root of a broadcast. */
static bool is_compared(const struct hvd_straggler_batch *batch)
{
    return batch->priority >= 0 && batch->priority < HVD_STRAGGLER_PRIORITIES &&
           (unsigned)batch->kind < HVD_STRAGGLER_KINDS &&
           !hvd_kind_has_root((enum hvd_kind)batch->kind) && batch->kind != HVD_KIND_JOIN;
}

/* Notes what the page tells about a batch, on rank 0. */
static void mark_batch(struct hvd_straggler_waits *waits,
                       const struct hvd_straggler_batch *batch,
                       struct hvd_straggler_window_mark *mark)
{
    struct hvd_straggler_bucket bucket = {
        .kind = batch->kind, .tensors = batch->tensors, .bytes = batch->bytes};

    snprintf(bucket.name, sizeof(bucket.name), "%s",
             batch->name != NULL ? batch->name : "");
    if (batch->steps > 0 && !waits->history->has_steps) {
        hvd_straggler_history_count_steps(waits->history);
    }
    *mark = (struct hvd_straggler_window_mark){
        .batch = waits->batches++,
        .steps = batch->steps,
        .ended_ns = batch->ended_ns,
        .bucket = hvd_straggler_buckets_count(waits->buckets, &bucket),
    };
}

/* Adds this rank's wait to its cell of the window. */
static void add_to_cell(struct hvd_straggler_waits *waits, struct priority *own,
                        uint32_t wait_us)
{
    const int cells = hvd_straggler_window_cells(own->number);
    uint32_t *cell_us = &own->cells_us[own->place * cells / HVD_STRAGGLER_WINDOW];

    if (waits->has_page) {
        *cell_us = wait_us < UINT32_MAX - *cell_us ? *cell_us + wait_us : UINT32_MAX;
    }
}

/* Notes this rank's wait for the batch. A rank that has joined is never late; its wait
 * counts from the start of the batch, which is when the last rank arrived. */
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
        if (window->marks != NULL && waits->history != NULL) {
            mark_batch(waits, batch, &window->marks[own->place]);
        }
    }
    add_to_cell(waits, own, wait_us);
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

/* Closes the windows. The window of the first queue is sent even if it is empty: it
 * carries the counts, and shows that this rank has closed. */
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

/* --- between ranks --- */

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
