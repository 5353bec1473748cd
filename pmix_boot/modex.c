/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that all backends of the modex share, and the backend for a process that is
 * alone. */
#include "pmix_boot/modex.h"

#include <stdlib.h>
#include <string.h>

int hvd_modex_single(const struct hvd_modex_query *query, struct hvd_modex *out,
                     struct hvd_error *err)
{
    const struct hvd_blob *mine = &query->mine;
    struct hvd_blob *blobs;
    void *copy;

    for (int i = 0; i < query->count; i++) {
        if (query->ranks[i] != 0) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "there is no rank %d: this process was started alone, "
                            "as rank 0 of 1",
                            query->ranks[i]);
        }
    }
    blobs = calloc(1, sizeof(*blobs));
    copy = malloc(mine->bytes);
    if (blobs == NULL || copy == NULL) {
        free(blobs);
        free(copy);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a card of %zu bytes",
                        mine->bytes);
    }
    memcpy(copy, mine->data, mine->bytes);
    blobs[0] = (struct hvd_blob){copy, mine->bytes};
    *out = (struct hvd_modex){.rank = 0, .size = 1, .blobs = blobs};
    return 0;
}

int hvd_modex_position(const struct hvd_modex_query *query, int own, int launched,
                       int *rank, int *size, struct hvd_error *err)
{
    int found = query->ranks == NULL ? own : -1;

    for (int i = 0; query->ranks != NULL && i < query->count; i++) {
        if (query->ranks[i] >= launched) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "there is no rank %d: the launcher started %d ranks",
                            query->ranks[i], launched);
        }
        found = query->ranks[i] == own ? i : found;
    }
    if (found < 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "rank %d is not in the list of %d ranks that it passed to init: only "
            "the ranks in the list may call init with it",
            own, query->count);
    }
    *rank = found;
    *size = query->ranks != NULL ? query->count : launched;
    return 0;
}

void hvd_blobs_free(struct hvd_blob *blobs, int size)
{
    for (int rank = 0; blobs != NULL && rank < size; rank++) {
        free(blobs[rank].data);
    }
    free(blobs);
}

void hvd_modex_finish(struct hvd_modex *modex)
{
    hvd_blobs_free(modex->blobs, modex->size);
    *modex = (struct hvd_modex){0};
}
