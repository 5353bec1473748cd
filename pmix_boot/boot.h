/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up of a job: finds the rank, the size, the nodes of all ranks, a job secret, and
 * one card (a record of addresses) of each rank.
 *
 * hvd's own service (rendezvous/service.h) provides them under srun --hvd and hvdrun.
 * PMIx provides them under mpirun, prterun and srun --mpi=pmix. A program can also pass a
 * store of its own. A process with none of these is rank 0 of 1.
 *
 * A child process, hvd-boot, speaks PMIx and ends after some milliseconds, so libpmix is
 * never loaded into the program. PMIx is finalized before hvd_boot_create returns,
 * because Slurm kills the whole step, without a message, if a rank exits while PMIx is
 * open. */
#ifndef HVD_BOOT_H
#define HVD_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    /* random, made by rank 0, the same on all ranks */
    unsigned char secret[HVD_SECRET_BYTES];
    uint64_t number; /* of the job: the same on all ranks, and not secret */
    struct hvd_boot_peer *peers; /* [size] */
    /* the surviving ranks may call hvd_boot_create again after a rank has died */
    bool is_elastic;
    int generation; /* of an elastic job: 1, 2, ...; 0: the job is not elastic */
};

/* A store through which ranks find each other without a launcher; the program has
 * numbered the ranks. The functions are those of struct hvd_store in hvd.h. */
struct hvd_boot_store {
    int rank;
    int size;
    void *context;
    int (*put)(void *context, const char *key, const void *value, size_t bytes,
               struct hvd_error *err);
    int (*get)(void *context, const char *key, int timeout_ms, void **value,
               size_t *bytes, struct hvd_error *err);
};

/* Input of hvd_boot_create on one rank; borrowed for the call. */
struct hvd_boot_query {
    const void *card;
    size_t card_bytes; /* may differ between ranks */
    /* ranks of the launch that form the job, in this order; NULL: all */
    const int *ranks;
    int count; /* length of ranks */
    /* if set, ranks must be NULL; NULL: ask the launcher */
    const struct hvd_boot_store *store;
    int timeout_ms;
};

/* Describes to the user how hvd_boot_create would find the other ranks without a store: a
 * static string. Fails where hvd_boot_create would, as far as the environment tells. */
int hvd_boot_describe(const char **how, struct hvd_error *err);

/* Publishes the card and collects the cards of all ranks within the time limit.
 * Collective over the ranks of the job, with the same list on each; other jobs of one
 * launch may start at the same time. May be called again once it has returned on every
 * rank, which the caller ensures by communicating with all of them in between. Fails with
 * HVD_ERR_ARG if the list is invalid or lacks this rank, HVD_ERR_TIMEOUT naming the
 * missing ranks, HVD_ERR_UNSUPPORTED if the environment shows more than one task but no
 * PMIx (the text says what to type), HVD_ERR_STATE if the launcher left a reason in
 * HVD_ENV_LAUNCH_ERROR, HVD_ERR_NET if the launcher's PMIx server does not work,
 * HVD_ERR_MISMATCH if a rank runs another version. One call at a time per process. The
 * program sees one SIGCHLD. The caller owns *out. */
int hvd_boot_create(const struct hvd_boot_query *query, struct hvd_boot **out,
                    struct hvd_error *err);

/* Returns a rank that has died since hvd_boot_create, as far as the service of an elastic
 * job knows, or -1. This rank is meant if its own connection to the service broke. Does
 * not block. */
int hvd_boot_lost(const struct hvd_boot *boot);

/* Destroys a boot; NULL is allowed. */
void hvd_boot_destroy(struct hvd_boot *boot);

#endif
