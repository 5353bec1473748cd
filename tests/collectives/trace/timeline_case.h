/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline of one rank, which a test feeds with events and then reads. */
#ifndef HVD_TEST_TIMELINE_CASE_H
#define HVD_TEST_TIMELINE_CASE_H

#include "collectives/trace/timeline.h"

enum {
    CASE_ENTRIES = 64,
    CASE_RANKS = 4
};

struct timeline_case {
    char path[64]; /* a file in /tmp */
    struct hvd_timeline_config config;
    struct hvd_timeline *timeline; /* exists between case_begin and case_text */
    struct hvd_request *request; /* a request with CASE_ENTRIES entries */
};

void case_init(struct timeline_case *test);
void case_finish(struct timeline_case *test);

/* Gives entry i of the request this name and kind, and returns it. */
struct hvd_entry *case_entry(struct timeline_case *test, int i, const char *name,
                             enum hvd_kind kind);

/* Begins to record to the file; ends the program if that fails. */
void case_begin(struct timeline_case *test, bool marks_cycles);

/* Destroys the timeline and returns its text, which the caller frees; "" if it is not
 * JSON. */
char *case_text(struct timeline_case *test);

/* Agree on the tensor, and start it, as a batch of one tensor. */
void case_agree(struct timeline_case *test, struct hvd_entry *entry);
void case_start(struct timeline_case *test, struct hvd_entry *entry, bool crosses_nodes);

/* Plays all events of a tensor that succeeds. */
void case_run(struct timeline_case *test, struct hvd_entry *entry, bool crosses_nodes);

/* Returns the activities of a row as words, which the caller frees: "+NEGOTIATE_ALLREDUCE
 * 0 1 - +ALLREDUCE ..."; "" if they are not nested, or if time goes back. */
char *case_phases(const char *text, int row);

#endif
