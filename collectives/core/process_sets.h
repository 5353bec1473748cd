/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets as the program sees them: those that this rank has seen added. Which ranks a set
 * has is the membership's matter (sets.h).
 *
 * Threads: any. The lock is held for a few instructions; who holds it takes no other lock. */
#ifndef HVD_PROCESS_SETS_H
#define HVD_PROCESS_SETS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What a rank starts without a name is matched by its number. */
enum hvd_unnamed {
    HVD_UNNAMED_BARRIERS,
    HVD_UNNAMED_BARRIER_CALLS, /* numbered ones, of which ranks may disagree */
    HVD_UNNAMED_SET_CHANGES, /* sets added and removed; of the global set, or the created one */
    HVD_UNNAMED_ABORTS, /* of a set, by this rank: nobody compares them */
    HVD_UNNAMED_KINDS
};

struct hvd_process_set;
struct hvd_set_members;

struct hvd_process_sets {
    pthread_mutex_t lock;
    int rank; /* this one; set before there are other threads */
    struct hvd_process_set *sets; /* [count] ascending by id */
    int count;
};

/* Where this rank and another one stand in a set. */
struct hvd_set_place {
    int rank; /* this one, in the job */
    int size; /* of the set */
    int index; /* of this rank, -1: it is no member */
    int root_index; /* of the other one, -1: it is no member */
    bool is_created; /* by its members alone */
};

void hvd_process_sets_init(struct hvd_process_sets *sets);
void hvd_process_sets_finish(struct hvd_process_sets *sets);

/* Begins with the global set: this rank, and all ranks. */
int hvd_process_sets_open(struct hvd_process_sets *sets, int rank,
                          const struct hvd_set_members *global);

/* Adds a set, which is kept. Returns 0 or HVD_ERR_NOMEM. */
int hvd_process_sets_add(struct hvd_process_sets *sets,
                         const struct hvd_set_members *members);
void hvd_process_sets_remove(struct hvd_process_sets *sets,
                             int id); /* one that is not there is fine */

/* All ranks have joined: they count what they start in the global set from 0 again, for those who
 * had joined have not started what the others have. */
void hvd_process_sets_recount(struct hvd_process_sets *sets);

/* How many of these this rank had started in the set; one more from now on. */
int64_t hvd_process_sets_number(struct hvd_process_sets *sets, int id,
                                enum hvd_unnamed what);

/* Where this rank and root (-1: nobody) stand in a set; its ranks ([size], out). HVD_ERR_ARG when
 * there is no such set. */
int hvd_process_sets_find(struct hvd_process_sets *sets, int id, int root,
                          struct hvd_set_place *place);
int hvd_process_sets_ranks(struct hvd_process_sets *sets, int id, int *ranks);

/* The number of sets; ids, if not NULL, gets theirs. */
int hvd_process_sets_ids(struct hvd_process_sets *sets, int *ids);

#endif
