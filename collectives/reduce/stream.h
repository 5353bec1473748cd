/* SPDX-License-Identifier: Apache-2.0 */
/* A copy that bypasses the caches. */
#ifndef HVD_STREAM_H
#define HVD_STREAM_H

#include <stddef.h>

/* Like memcpy, for a large destination that is not read soon: its lines are neither read
 * from memory before they are written nor kept in a cache. Any alignment, any size; the
 * arrays must not overlap. The copy is ordered before later stores, as with memcpy, so a
 * flag may follow. Any thread. */
void hvd_copy_stream(void *to, const void *from, size_t bytes);

#endif
