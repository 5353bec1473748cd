/* SPDX-License-Identifier: Apache-2.0 */
/* The record that a rank publishes about itself, as bytes: its node, a random secret, and
 * the card given to boot. */
#ifndef HVD_RANK_RECORD_H
#define HVD_RANK_RECORD_H

#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/boot.h"

struct hvd_blob {
    void *data;
    size_t bytes;
};

/* A decoded record; the pointers point into the blob. */
struct hvd_rank_record {
    /* "host id": equal on the ranks of one node, different on two nodes */
    const char *node;
    size_t host_length; /* length of the host name at the start of node */
    const unsigned char *secret; /* HVD_SECRET_BYTES */
    const void *payload;
    size_t payload_bytes;
};

/* Encodes this machine's node, a fresh secret and the payload. The caller frees
 * out->data. */
int hvd_rank_record_pack(const void *payload, size_t bytes, struct hvd_blob *out,
                         struct hvd_error *err);

/* Returns HVD_ERR_MISMATCH, with the ranks, hosts and versions in the text, if a rank has
 * another version of hvd than this one, `own`. It understands the records of all
 * versions. Records that are none are left to hvd_rank_record_read. */
int hvd_rank_record_compare(const struct hvd_blob *blobs, int size, int own,
                            struct hvd_error *err);

/* Decodes the record of a rank. HVD_ERR_MISMATCH, naming the rank, if another version of
 * hvd or another kind of machine wrote it. */
int hvd_rank_record_read(const struct hvd_blob *blob, int rank,
                         struct hvd_rank_record *out, struct hvd_error *err);

#endif
