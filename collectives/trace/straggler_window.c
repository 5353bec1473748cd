/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of consecutive batches of one queue, merged over some ranks. */
#include "collectives/trace/straggler_window.h"

#include <stdlib.h>
#include <string.h>

/* Begins a message; the records, the shares, the sections and the cells follow. */
struct header {
    int32_t priority;
    int32_t count;
    int32_t share_count;
    int32_t section_count;
    int32_t cell_count; /* of each share */
    int32_t unused;
    int64_t number;
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS];
};

struct hvd_straggler_window *hvd_straggler_window_create(int priority, int64_t number)
{
    struct hvd_straggler_window *window = calloc(1, sizeof(*window));

    if (window == NULL) {
        return NULL;
    }
    window->priority = priority;
    window->number = number;
    for (int i = 0; i < HVD_STRAGGLER_WINDOW; i++) {
        window->records[i].least_us = HVD_WAIT_NONE;
        window->records[i].second_us = HVD_WAIT_NONE;
    }
    return window;
}

void hvd_straggler_window_destroy(struct hvd_straggler_window *window)
{
    if (window != NULL) {
        free(window->shares);
        free(window->cells_us);
        free(window->marks);
        free(window->sections);
        free(window);
    }
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void merge_record(struct hvd_straggler_window_record *into,
                         const struct hvd_straggler_window_record *from)
{
    if (from->least_us < into->least_us) {
        into->second_us = least_of(into->least_us, from->second_us);
        into->least_us = from->least_us;
        into->rank = from->rank;
    } else {
        into->second_us = least_of(into->second_us, from->least_us);
    }
}

/* Merges a record into the window, which grows to include its position. */
static void add_record(struct hvd_straggler_window *window, int place,
                       const struct hvd_straggler_window_record *record)
{
    merge_record(&window->records[place], record);
    if (window->count <= place) {
        window->count = place + 1;
    }
}

void hvd_straggler_window_note(struct hvd_straggler_window *window, int place, int rank,
                               uint32_t wait_us)
{
    const struct hvd_straggler_window_record record = {wait_us, HVD_WAIT_NONE, rank};

    add_record(window, place, &record);
}

void hvd_straggler_add(int64_t *sum, int64_t more)
{
    *sum = more > INT64_MAX - *sum ? INT64_MAX : *sum + more;
}

void hvd_straggler_add_kinds(struct hvd_straggler_kind *into,
                             const struct hvd_straggler_kind *from)
{
    for (int i = 0; i < HVD_STRAGGLER_KINDS; i++) {
        hvd_straggler_add(&into[i].batches, from[i].batches);
        hvd_straggler_add(&into[i].tensors, from[i].tensors);
        hvd_straggler_add(&into[i].bytes, from[i].bytes);
        hvd_straggler_add(&into[i].run_ns, from[i].run_ns);
    }
}

int hvd_straggler_window_keep(struct hvd_straggler_window *window, bool has_marks)
{
    window->cell_count = hvd_straggler_window_cells(window->number);
    if (has_marks) {
        window->marks = calloc(HVD_STRAGGLER_WINDOW, sizeof(window->marks[0]));
    }
    return has_marks && window->marks == NULL ? HVD_ERR_NOMEM : 0;
}

/* The first windows have a cell for each batch: as many cells as the page has columns.
 * Whenever the number of batches doubles, cells become twice as wide. */
int hvd_straggler_window_cells(int64_t number)
{
    const int64_t first = HVD_HISTORY_COLUMNS / HVD_STRAGGLER_WINDOW;
    int cells = HVD_STRAGGLER_WINDOW;

    for (int64_t next = first; number >= next && cells > 1; next = 2 * next + first) {
        cells /= 2;
    }
    return cells;
}

static int grow_shares(struct hvd_straggler_window *window)
{
    const int room = 2 * window->share_room + 1;
    const size_t cell_bytes = (size_t)window->cell_count * sizeof(window->cells_us[0]);
    struct hvd_straggler_window_share *shares =
        realloc(window->shares, (size_t)room * sizeof(*shares));
    uint32_t *cells_us;

    if (shares == NULL) {
        return HVD_ERR_NOMEM;
    }
    window->shares = shares;
    if (cell_bytes > 0) {
        cells_us = realloc(window->cells_us, (size_t)room * cell_bytes);
        if (cells_us == NULL) {
            return HVD_ERR_NOMEM;
        }
        window->cells_us = cells_us;
    }
    window->share_room = room;
    return 0;
}

int hvd_straggler_window_share(struct hvd_straggler_window *window, int rank,
                               int64_t wait_us, const void *cells_us)
{
    const size_t cells = (size_t)window->cell_count;

    if (window->share_count == window->share_room && grow_shares(window) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (cells > 0) {
        uint32_t *own = window->cells_us + (size_t)window->share_count * cells;

        memset(own, 0, cells * sizeof(own[0]));
        if (cells_us != NULL) {
            memcpy(own, cells_us, cells * sizeof(own[0]));
        }
    }
    window->shares[window->share_count++] =
        (struct hvd_straggler_window_share){rank, wait_us};
    return 0;
}

int hvd_straggler_window_section(struct hvd_straggler_window *window,
                                 const struct hvd_straggler_window_section *section)
{
    if (window->section_count == window->section_room) {
        int room = 2 * window->section_room + 1;
        struct hvd_straggler_window_section *sections =
            realloc(window->sections, (size_t)room * sizeof(*sections));

        if (sections == NULL) {
            return HVD_ERR_NOMEM;
        }
        window->sections = sections;
        window->section_room = room;
    }
    window->sections[window->section_count++] = *section;
    return 0;
}

void hvd_straggler_window_write(const struct hvd_straggler_window *window,
                                struct hvd_writer *writer)
{
    struct header header = {
        .priority = window->priority,
        .count = window->count,
        .share_count = window->share_count,
        .section_count = window->section_count,
        .cell_count = window->cell_count,
        .number = window->number,
    };

    memcpy(header.kinds, window->kinds, sizeof(header.kinds));
    hvd_put(writer, &header, sizeof(header));
    hvd_put(writer, window->records, (size_t)window->count * sizeof(window->records[0]));
    if (window->share_count > 0) {
        hvd_put(writer, window->shares,
                (size_t)window->share_count * sizeof(window->shares[0]));
    }
    if (window->section_count > 0) {
        hvd_put(writer, window->sections,
                (size_t)window->section_count * sizeof(window->sections[0]));
    }
    if (window->share_count > 0 && window->cell_count > 0) {
        hvd_put(writer, window->cells_us,
                (size_t)window->share_count * (size_t)window->cell_count *
                    sizeof(window->cells_us[0]));
    }
}

/* Copies a record out of a message, which need not be aligned. */
static struct hvd_straggler_window_record record_at(const char *payload, int i)
{
    struct hvd_straggler_window_record record;

    memcpy(&record, payload + sizeof(struct header) + (size_t)i * sizeof(record),
           sizeof(record));
    return record;
}

static struct hvd_straggler_window_share share_at(const char *payload, int count, int i)
{
    const char *shares = payload + sizeof(struct header) +
                         (size_t)count * sizeof(struct hvd_straggler_window_record);
    struct hvd_straggler_window_share share;

    memcpy(&share, shares + (size_t)i * sizeof(share), sizeof(share));
    return share;
}

static struct hvd_straggler_window_section section_at(const char *payload,
                                                      const struct header *header, int i)
{
    const char *sections =
        payload + sizeof(*header) +
        (size_t)header->count * sizeof(struct hvd_straggler_window_record) +
        (size_t)header->share_count * sizeof(struct hvd_straggler_window_share);
    struct hvd_straggler_window_section section;

    memcpy(&section, sections + (size_t)i * sizeof(section), sizeof(section));
    return section;
}

/* Returns the cells of a share, not aligned; NULL: the message has none. */
static const char *cells_at(const char *payload, const struct header *header, int i)
{
    if (header->cell_count == 0) {
        return NULL;
    }
    return payload + sizeof(*header) +
           (size_t)header->count * sizeof(struct hvd_straggler_window_record) +
           (size_t)header->share_count * sizeof(struct hvd_straggler_window_share) +
           (size_t)header->section_count * sizeof(struct hvd_straggler_window_section) +
           (size_t)i * (size_t)header->cell_count * sizeof(uint32_t);
}

static bool is_rank(int64_t rank, int size)
{
    return rank >= 0 && rank < size;
}

static bool has_good_values(const char *payload, const struct header *header, int size)
{
    for (int i = 0; i < HVD_STRAGGLER_KINDS; i++) {
        const struct hvd_straggler_kind *kind = &header->kinds[i];

        if (kind->batches < 0 || kind->tensors < 0 || kind->bytes < 0 ||
            kind->run_ns < 0) {
            return false;
        }
    }
    for (int i = 0; i < header->count; i++) {
        struct hvd_straggler_window_record record = record_at(payload, i);

        if (!is_rank(record.rank, size) || record.second_us < record.least_us) {
            return false;
        }
    }
    for (int i = 0; i < header->share_count; i++) {
        struct hvd_straggler_window_share share = share_at(payload, header->count, i);

        if (!is_rank(share.rank, size) || share.wait_us < 0) {
            return false;
        }
    }
    for (int i = 0; i < header->section_count; i++) {
        struct hvd_straggler_window_section own = section_at(payload, header, i);

        if (!is_rank(own.rank, size) || own.section.ns < 0 ||
            memchr(own.section.name, '\0', sizeof(own.section.name)) == NULL) {
            return false;
        }
    }
    return true;
}

/* Whether the message is as long as its header says. */
static bool has_good_size(const struct header *header, size_t bytes, int size)
{
    return header->count >= 0 && header->count <= HVD_STRAGGLER_WINDOW &&
           header->share_count >= 0 && header->share_count <= size &&
           header->section_count >= 0 && header->section_count / HVD_SECTIONS <= size &&
           (header->cell_count == 0 ||
            header->cell_count == hvd_straggler_window_cells(header->number)) &&
           bytes ==
               sizeof(*header) +
                   (size_t)header->count * sizeof(struct hvd_straggler_window_record) +
                   (size_t)header->share_count *
                       sizeof(struct hvd_straggler_window_share) +
                   (size_t)header->section_count *
                       sizeof(struct hvd_straggler_window_section) +
                   (size_t)header->share_count * (size_t)header->cell_count *
                       sizeof(uint32_t);
}

int hvd_straggler_window_peek(const void *payload, size_t bytes, int size, int *priority,
                              int64_t *number)
{
    struct header header;

    if (bytes < sizeof(header)) {
        return HVD_ERR_ARG;
    }
    memcpy(&header, payload, sizeof(header));
    if (header.priority < 0 || header.priority >= HVD_STRAGGLER_PRIORITIES ||
        header.number < 0 || !has_good_size(&header, bytes, size) ||
        !has_good_values(payload, &header, size)) {
        return HVD_ERR_ARG;
    }
    *priority = header.priority;
    *number = header.number;
    return 0;
}

int hvd_straggler_window_merge(struct hvd_straggler_window *window, const void *payload)
{
    struct header header;
    int status = 0;

    memcpy(&header, payload, sizeof(header));
    for (int i = 0; i < header.count; i++) {
        struct hvd_straggler_window_record record = record_at(payload, i);

        add_record(window, i, &record);
    }
    for (int i = 0; i < header.share_count && status == 0; i++) {
        struct hvd_straggler_window_share share = share_at(payload, header.count, i);

        status = hvd_straggler_window_share(window, (int)share.rank, share.wait_us,
                                            cells_at(payload, &header, i));
    }
    for (int i = 0; i < header.section_count && status == 0; i++) {
        struct hvd_straggler_window_section section = section_at(payload, &header, i);

        status = hvd_straggler_window_section(window, &section);
    }
    hvd_straggler_add_kinds(window->kinds, header.kinds);
    return status;
}
