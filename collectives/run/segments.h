/* SPDX-License-Identifier: Apache-2.0 */
/* Several arrays seen as one ("the whole"): the tensors of a batch, which are not copied
 * together. */
#ifndef HVD_SEGMENTS_H
#define HVD_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* Segment i is bytes [begin[i], begin[i + 1]) of the whole, at data[i]. If data[i] is
 * NULL, reads give zeros and writes are dropped. */
struct hvd_segments {
    int count;
    char **data;
    int64_t *begin; /* [count + 1] */
    int last; /* the segment last accessed; the next access is usually near */
};

/* Allocates `count` segments. begin[0] is 0; the caller fills in the rest. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_segments_init(struct hvd_segments *segments, int count);
void hvd_segments_forget(struct hvd_segments *segments); /* sets all data to NULL */

/* Makes segments that consist of one array. Returns 0 or HVD_ERR_NOMEM. */
int hvd_segments_init_one(struct hvd_segments *segments, void *data, int64_t bytes);
void hvd_segments_finish(struct hvd_segments *segments); /* a zeroed struct is fine */

/* Bytes of the whole that lie in one segment. */
struct hvd_piece {
    char *data; /* NULL if the segment has no data */
    size_t bytes;
    /* Writes to this piece should bypass the caches, as hvd_segments_write does: the
     * whole is so large that it leaves the caches before it is read again, and the piece
     * is not small. */
    bool is_streamed;
};

/* Returns the piece from byte `begin` of the whole on, at most `most` bytes. most >=
 * 1. */
struct hvd_piece hvd_segments_at(struct hvd_segments *segments, int64_t begin,
                                 size_t most);

/* read copies bytes [begin, begin + bytes) of the whole to `to` and multiplies each
 * element of dtype by factor; 1 means a plain copy. write copies from `from` to these
 * bytes of the whole. */
void hvd_segments_read(struct hvd_segments *segments, int64_t begin, size_t bytes,
                       enum hvd_dtype dtype, double factor, char *to);
void hvd_segments_write(struct hvd_segments *segments, int64_t begin, size_t bytes,
                        const char *from);

#endif
