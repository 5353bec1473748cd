/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's table of process sets that their members create alone (hvd_set_create_start):
 * which members have asked, and what is decided. Pure.
 *
 *   a member   CREATE up: its rank, the name of its entry, the list of members
 *              (rank_list.h). Nodes of the tree pass it on at once, because they cannot
 *              tell which lists belong together.
 *   rank 0     When all members of a list have asked: CREATE down, in the part of the
 *              new set, to the branches and nodes that have members. Other ranks never
 *              hear of the set.
 *   rank 0     When lists of one name overlap and differ, or there is a set of that name
 *              with one of the ranks: CREATE down with the reason, to the members that
 *              have asked.
 *
 * The other members of a failed list are still expected: each fails when it asks. */
#ifndef HVD_SET_CREATIONS_H
#define HVD_SET_CREATIONS_H

#include "collectives/agreement/hash_table.h"
#include "collectives/set/sets.h"
#include "collectives/agreement/codec.h"

/* Begins the name of an entry that creates a set; the label follows. */
#define HVD_CREATION_NAME HVD_RESERVED_NAMES "create."

struct hvd_set_creations {
    const struct hvd_sets *sets; /* borrowed */
    /* of struct hvd_set_creation: the first list of each name */
    struct hvd_hash_table by_name;
};

/* A rank's request for a set; texts are borrowed. */
struct hvd_set_wish {
    int rank;
    const char *name;
    const char *list;
};

/* The decision about a request; texts are borrowed. */
struct hvd_set_outcome {
    int status; /* 0, or why there is no set; text explains it */
    const char *text;
    const char *name;
    const char *list; /* the members, or the ranks that failed */
};

void hvd_set_creations_finish(struct hvd_set_creations *creations);

/* Takes note of a request, and writes the decisions that follow from it. Returns 0,
 * HVD_ERR_NOMEM, or HVD_ERR_NET for a request that is not possible. */
int hvd_set_creations_add(struct hvd_set_creations *creations,
                          const struct hvd_set_wish *wish,
                          struct hvd_decision_writers *writers);

/* Whether the creation of a set of this name waits for the rank. */
bool hvd_set_creations_lack(const struct hvd_set_creations *creations, const char *name,
                            int rank);

/* Parses a decision CREATE, whose record the caller has already read. Returns 0 or
 * HVD_ERR_NET. */
int hvd_take_set_outcome(struct hvd_reader *reader, struct hvd_set_outcome *outcome);

#endif
