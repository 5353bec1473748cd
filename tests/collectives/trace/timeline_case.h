/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline of one rank that tests tell what happens, and what it wrote. */
#ifndef HVD_TEST_TIMELINE_CASE_H
#define HVD_TEST_TIMELINE_CASE_H

#include "collectives/trace/timeline.h"

enum {
    CASE_ENTRIES = 64,
    CASE_RANKS = 4
};

struct timeline_case {
    char path[64]; /* of the file, in /tmp */
    struct hvd_timeline_config config;
    struct hvd_timeline *timeline; /* the one between begin and text_at_end */
    struct hvd_request *request; /* of CASE_ENTRIES */
};

void case_init(struct timeline_case *test);
void case_finish(struct timeline_case *test);

/* The i-th entry of the request, from now on of this name and kind. */
struct hvd_entry *case_entry(struct timeline_case *test, int i, const char *name,
                             enum hvd_kind kind);

/* Begins to record to the file; ends the program if that fails. */
void case_begin(struct timeline_case *test, bool marks_cycles);

/* Destroys the timeline and returns its text, to be freed; "" when it is no JSON. */
char *case_text(struct timeline_case *test);

/* It is agreed on and starts, in a batch of its own. */
void case_agree(struct timeline_case *test, struct hvd_entry *entry);
void case_start(struct timeline_case *test, struct hvd_entry *entry, bool crosses_nodes);

/* All that happens to a tensor that goes well. */
void case_run(struct timeline_case *test, struct hvd_entry *entry, bool crosses_nodes);

/* The phases of one row as words, to be freed: "+NEGOTIATE_ALLREDUCE 0 1 - +ALLREDUCE
 * ..."; "" if what begins and ends is not nested, or time goes back. */
char *case_phases(const char *text, int row);

#endif
