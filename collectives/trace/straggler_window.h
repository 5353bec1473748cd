/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of consecutive batches of one queue, merged over some ranks. */
#ifndef HVD_STRAGGLER_WINDOW_H
#define HVD_STRAGGLER_WINDOW_H

#include "collectives/trace/straggler_sections.h"
#include "collectives/trace/straggler_waits.h"

/* The rank has no wait for the batch, because it had joined, or there is no such rank.
 * Longer waits are stored as the next lower value. */
#define HVD_WAIT_NONE UINT32_MAX

struct hvd_straggler_window_record {
    uint32_t least_us;
    uint32_t second_us;
    int32_t rank; /* the rank with the shortest wait */
};

/* A batch of the window, for the page of the report. Kept on rank 0 alone, not sent. */
struct hvd_straggler_window_mark {
    int64_t batch; /* its number among the compared batches of all queues */
    int64_t steps;
    int64_t ended_ns;
    int bucket;
};

/* The sum of one rank's waits in the window. */
struct hvd_straggler_window_share {
    int64_t rank;
    int64_t wait_us;
};

/* The time that one rank has spent in one section since its previous window. */
struct hvd_straggler_window_section {
    int64_t rank;
    struct hvd_straggler_section section;
};

struct hvd_straggler_window {
    struct hvd_straggler_window *next;
    int priority;
    int64_t number; /* position of the window among those of its queue */
    /* parts that have been merged so far; this rank and each child add one part */
    int parts;
    int count; /* batches */
    int share_count;
    int share_room;
    struct hvd_straggler_window_share *shares; /* one for each rank */
    /* Sums of the waits of HVD_STRAGGLER_WINDOW / cell_count neighbouring batches, for
     * the page of the report; 0: there is no page. */
    int cell_count;
    uint32_t *cells_us; /* [share_room * cell_count], in the order of the shares */
    struct hvd_straggler_window_mark *marks; /* [HVD_STRAGGLER_WINDOW], or NULL */
    int section_count;
    int section_room;
    struct hvd_straggler_window_section *sections;
    struct hvd_straggler_window_record records[HVD_STRAGGLER_WINDOW];
    /* kinds of the batches; not sent, because all ranks know them */
    uint8_t kinds_of[HVD_STRAGGLER_WINDOW];
    /* all batches since the previous window */
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS];
};

/* Creates an empty window; NULL if memory is out. destroy accepts NULL. */
struct hvd_straggler_window *hvd_straggler_window_create(int priority, int64_t number);
void hvd_straggler_window_destroy(struct hvd_straggler_window *window);

/* Adds a rank's wait for the batch at position `place`. */
void hvd_straggler_window_note(struct hvd_straggler_window *window, int place, int rank,
                               uint32_t wait_us);

/* Adds numbers that are not negative; a sum that is too large becomes the largest
 * number. */
void hvd_straggler_add(int64_t *sum, int64_t more);
void hvd_straggler_add_kinds(struct hvd_straggler_kind *into,
                             const struct hvd_straggler_kind *from);

/* Makes a new window carry cells, and marks if has_marks. Returns 0 or HVD_ERR_NOMEM. */
int hvd_straggler_window_keep(struct hvd_straggler_window *window, bool has_marks);

/* Returns the number of cells of a window. Later windows have fewer, so that the messages
 * of a long job are small: its columns on the page stand for many batches. */
int hvd_straggler_window_cells(int64_t number);

/* Adds the sum of a rank's waits, and its cells (NULL: zeros). Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_straggler_window_share(struct hvd_straggler_window *window, int rank,
                               int64_t wait_us, const void *cells_us);

/* Adds a rank's time in a section. Returns 0 or HVD_ERR_NOMEM. */
int hvd_straggler_window_section(struct hvd_straggler_window *window,
                                 const struct hvd_straggler_window_section *section);

/* Appends the window to a message; sets writer->failed if memory is out. */
void hvd_straggler_window_write(const struct hvd_straggler_window *window,
                                struct hvd_writer *writer);

/* Finds the window that a message belongs to. Returns HVD_ERR_ARG for a message that is
 * malformed in a job of `size` ranks. */
int hvd_straggler_window_peek(const void *payload, size_t bytes, int size, int *priority,
                              int64_t *number);

/* Merges a message that peek has accepted. Returns 0 or HVD_ERR_NOMEM. */
int hvd_straggler_window_merge(struct hvd_straggler_window *window, const void *payload);

#endif
