/* SPDX-License-Identifier: Apache-2.0 */
/* Several arrays seen as one: the tensors of a batch, without copying them together. */
#ifndef HVD_SEGMENTS_H
#define HVD_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* Segment i is bytes [begin[i], begin[i + 1]) of the whole, at data[i]. Where that is
 * NULL, zeros are read and what is written is dropped. */
struct hvd_segments {
    int count;
    char **data;
    int64_t *begin; /* [count + 1] */
    int last; /* where the last access was: the next one is near */
};

/* Room for count segments; begin[0] is 0, the caller fills in the rest. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_segments_init(struct hvd_segments *segments, int count);
void hvd_segments_forget(struct hvd_segments *segments); /* all data becomes NULL */

/* The same for one array, filled in. */
int hvd_segments_init_one(struct hvd_segments *segments, void *data, int64_t bytes);
void hvd_segments_finish(struct hvd_segments *segments); /* zeroed is fine */

/* Bytes of the whole that lie in one segment. */
struct hvd_piece {
    char *data; /* NULL where the segment's is */
    size_t bytes;
    /* It had better be written past the caches, as hvd_segments_write does: the whole is
     * so large that it leaves them before it is read again, and the piece is not
     * small. */
    bool is_streamed;
};

/* The piece from byte `begin` of the whole on, of at most `most` bytes, which are at
 * least 1. */
struct hvd_piece hvd_segments_at(struct hvd_segments *segments, int64_t begin,
                                 size_t most);

/* Copies bytes [begin, begin + bytes) of the whole to `to`, each element of dtype times
 * factor (1: a plain copy); or from `from` into the whole. */
void hvd_segments_read(struct hvd_segments *segments, int64_t begin, size_t bytes,
                       enum hvd_dtype dtype, double factor, char *to);
void hvd_segments_write(struct hvd_segments *segments, int64_t begin, size_t bytes,
                        const char *from);

#endif
