/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of static jobs, for ranks that ask again because their connections were
 * reset before the answer arrived. Ranks of several lists may start at once, so there may
 * be several answers. Pure: no sockets. */
#ifndef HVD_ANSWERS_H
#define HVD_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_answer {
    char *data; /* [bytes] the message FORMED */
    size_t bytes;
    int32_t *ranks; /* [count] ranks of the launch, in the order of the list */
    uint64_t *numbers; /* [count] of their questions */
    int count;
};

/* Zeroed, there are none. */
struct hvd_answers {
    struct hvd_answer *all; /* [count] */
    int count;
};

void hvd_answers_finish(struct hvd_answers *answers);

/* Keeps an answer, and takes over its memory; keeps none if memory runs out. Forgets the
 * earlier answers to its ranks: a rank joins again when it has begun, which it does
 * together with the other ranks of its list, or when it has given up. So each rank has at
 * most one answer. */
void hvd_answers_keep(struct hvd_answers *answers, const struct hvd_answer *answer);

/* Finds the answer to the question of the rank with this index in its list; NULL if there
 * is none. Borrowed until the next keep. */
const struct hvd_answer *hvd_answers_find(const struct hvd_answers *answers, int index,
                                          uint64_t number);

#endif
