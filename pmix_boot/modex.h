/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of boot: each publishes the blob of this rank and returns those of all
 * ranks. */
#ifndef HVD_MODEX_H
#define HVD_MODEX_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/rank_record.h"

/* Borrowed for the call. */
struct hvd_modex_query {
    struct hvd_blob mine;
    const int *ranks; /* ranks of the launch that take part, all different; NULL: all */
    int count;
    const struct hvd_boot_store *store; /* for hvd_modex_store, which takes no list */
    int timeout_ms;
};

struct hvd_modex {
    int rank; /* this rank: its index in the list of ranks, if there is a list */
    int size;
    struct hvd_blob *blobs; /* [size] the blob of each rank */
    int generation; /* of an elastic job: 1, 2, ...; 0: the job is not elastic */
};

/* Each backend fills in out, which the caller ends with hvd_modex_finish, or fails and
 * leaves it unchanged. HVD_ERR_ARG: this rank is not in the list, or a rank in it does
 * not exist.
 *
 *   single      for a process that is alone
 *   pmix        collective, needs a PMIx server (launch_env.h); a child process speaks to
 *               it. HVD_ERR_UNSUPPORTED: this host, or container, has no libpmix for it
 *   rendezvous  collective, needs the service named by HVD_ENV_RENDEZVOUS
 *   elastic     as rendezvous, but among the ranks that are alive when all of them have
 *               called it; takes no list of ranks
 *   store       collective among the ranks of the query's store; takes no list of ranks
 */
int hvd_modex_single(const struct hvd_modex_query *query, struct hvd_modex *out,
                     struct hvd_error *err);
int hvd_modex_pmix(const struct hvd_modex_query *query, struct hvd_modex *out,
                   struct hvd_error *err);
int hvd_modex_rendezvous(const struct hvd_modex_query *query, struct hvd_modex *out,
                         struct hvd_error *err);
int hvd_modex_elastic(const struct hvd_modex_query *query, struct hvd_modex *out,
                      struct hvd_error *err);
int hvd_modex_store(const struct hvd_modex_query *query, struct hvd_modex *out,
                    struct hvd_error *err);

/* Returns whether this installation can speak PMIx; if not, hvd_modex_pmix fails. */
bool hvd_modex_has_pmix(void);

/* Finds rank `own` of the launch in the list of the query: its position and the number of
 * ranks. HVD_ERR_ARG: it is not in the list, or the list has a rank that was not
 * launched. */
int hvd_modex_position(const struct hvd_modex_query *query, int own, int launched,
                       int *rank, int *size, struct hvd_error *err);

/* Frees blobs[0 ... size - 1] and the array; NULL is allowed. */
void hvd_blobs_free(struct hvd_blob *blobs, int size);

/* Frees the blobs; a zeroed modex is allowed. */
void hvd_modex_finish(struct hvd_modex *modex);

#endif
