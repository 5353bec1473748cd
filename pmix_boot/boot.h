/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up: the rank, the size, the nodes of all ranks, a job secret, and one card of each rank.
 *
 * Under Slurm, mpirun and prterun they come from PMIx; where the launcher serves none, under hvdrun,
 * and in an elastic job, from hvd's own service (rendezvous/service.h); or from a store of the
 * program; a process without any of them is rank 0 of 1. A child process, hvd-boot, speaks PMIx and
 * ends after some milliseconds: libpmix is never loaded into the program, and PMIx is finalized
 * before hvd_boot_create returns, because Slurm kills the whole step, without a message, when a rank
 * exits while PMIx is open. */
#ifndef HVD_BOOT_H
#define HVD_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/layout.h"

#define HVD_SECRET_BYTES 32

struct hvd_boot_peer {
    char *host;
    void *card;
    size_t card_bytes;
};

struct hvd_boot {
    int rank;
    int size;
    struct hvd_layout layout;
    unsigned char
        secret[HVD_SECRET_BYTES]; /* random, from rank 0, the same on all ranks */
    struct hvd_boot_peer *peers; /* [size] */
    bool is_elastic; /* when a rank dies, the others may call hvd_boot_create again */
};

/* Where ranks that the program has numbered itself find each other, instead of by a launcher.
 * The functions do what those of struct hvd_store in hvd.h do. */
struct hvd_boot_store {
    int rank;
    int size;
    void *context;
    int (*put)(void *context, const char *key, const void *value, size_t bytes,
               struct hvd_error *err);
    int (*get)(void *context, const char *key, int timeout_ms, void **value,
               size_t *bytes, struct hvd_error *err);
};

/* What one rank hands in; borrowed for the call. */
struct hvd_boot_query {
    const void *card;
    size_t card_bytes; /* may differ between ranks */
    const int *ranks; /* of the launcher: the job is these, in this order; NULL: all */
    int count; /* of ranks */
    const struct hvd_boot_store *store; /* then ranks is NULL. NULL: ask the launcher */
    int timeout_ms;
};

/* For the user: how hvd_boot_create would find the other ranks without a store, a phrase that lives
 * for ever. Fails as that would, as far as the environment shows it. */
int hvd_boot_describe(const char **how, struct hvd_error *err);

/* Publishes the card and collects the cards of all ranks within the time limit. Collective over
 * the ranks of the job, with the same list on each; other jobs of one launch may start at the
 * same time. May be called again once it has returned on every rank: the caller sees to that by
 * talking to all of them in between. Fails with HVD_ERR_ARG when the list cannot be right or this
 * rank is not in it, HVD_ERR_TIMEOUT naming the ranks that are missing, HVD_ERR_UNSUPPORTED when
 * the environment shows more than one task but no PMIx (the text says what to type),
 * HVD_ERR_STATE when the launcher left a reason in HVD_ENV_LAUNCH_ERROR, HVD_ERR_NET when the
 * launcher's PMIx server does not serve, HVD_ERR_MISMATCH when a rank runs another version. One
 * call at a time per process. The program sees one SIGCHLD. The caller owns *out. */
int hvd_boot_create(const struct hvd_boot_query *query, struct hvd_boot **out,
                    struct hvd_error *err);

/* In an elastic job a rank that has died since hvd_boot_create, as far as its service knows, else
 * -1. Does not block. */
int hvd_boot_lost(const struct hvd_boot *boot);

/* NULL is fine. */
void hvd_boot_destroy(struct hvd_boot *boot);

#endif
