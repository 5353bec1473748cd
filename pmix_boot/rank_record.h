/* SPDX-License-Identifier: Apache-2.0 */
/* The record that a rank publishes about itself, as bytes: its node, a random secret, and the
 * card that the caller of boot hands over. */
#ifndef HVD_RANK_RECORD_H
#define HVD_RANK_RECORD_H

#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/boot.h"

struct hvd_blob {
    void *data;
    size_t bytes;
};

/* A record read from a blob; the pointers are borrowed from it. */
struct hvd_rank_record {
    const char *node; /* equal on the ranks of one node, different on two; "host id" */
    size_t host_length; /* of the host name that node begins with */
    const unsigned char *secret; /* HVD_SECRET_BYTES */
    const void *payload;
    size_t payload_bytes;
};

/* Writes this machine's node and a fresh secret around payload. The caller frees out->data. */
int hvd_rank_record_pack(const void *payload, size_t bytes, struct hvd_blob *out,
                         struct hvd_error *err);

/* Reads what rank published. HVD_ERR_MISMATCH, naming the rank, when another version of hvd
 * or another kind of machine wrote it. */
int hvd_rank_record_read(const struct hvd_blob *blob, int rank,
                         struct hvd_rank_record *out, struct hvd_error *err);

#endif
