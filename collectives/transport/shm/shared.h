/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process that the node's other ranks may map: what hvd_shared_alloc
 * gives.
 *
 * Each piece is a memfd of its own: a page that begins with the piece's number, then the
 * memory. Numbers are by chance, 64 bits of it, so that nothing else is taken for a piece
 * of which only the descriptor is left. Pieces belong to the process, not to the job:
 * they outlive it, and others map them anew in the next (shared_peers.h).
 *
 * Threads: any. */
#ifndef HVD_SHARED_H
#define HVD_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

/* Where something lies, for other processes. */
struct hvd_shared_place {
    uint64_t number; /* of the piece; 0: in none */
    uint64_t offset; /* in its file */
    int64_t fd; /* the owner's descriptor of it */
};

/* A new piece, backed and zero, on a page. Returns 0, HVD_ERR_NOMEM or HVD_ERR_SYS. The
 * caller ends *out with destroy. */
int hvd_shared_create(size_t bytes, void **out, struct hvd_error *err);

/* Gives the memory back, also what others still map of it; they read zeros then. NULL is
 * fine. False: no piece begins there. */
bool hvd_shared_destroy(void *memory);

/* Makes all pieces the process's alone, with what is in them, while other threads use them: what
 * another process stores from now on into what it has mapped is not seen here. They cannot be
 * shared any more. False, logged: some may still be seen. */
bool hvd_shared_withdraw(void);

/* Whether the bytes, at least one, are part of one piece that can be shared; then *place tells
 * where. Costs next to nothing in a process without pieces. */
bool hvd_shared_find(const void *memory, size_t bytes, struct hvd_shared_place *place);

#endif
