/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that did not start in time, or ended before, for the errors that name
 * them. */
#ifndef HVD_MISSING_H
#define HVD_MISSING_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

enum {
    HVD_MISSING_RANGES = 6, /* most ranges of ranks that an error names */
    HVD_MISSING_HOST_BYTES = 40
};

/* A zeroed list is empty. */
struct hvd_missing {
    int count; /* number of missing ranks */
    int ranges;
    struct {
        int first, last;
        char host[HVD_MISSING_HOST_BYTES]; /* host of the whole range; empty: unknown */
    } range[HVD_MISSING_RANGES];
};

/* The hosts of the ranks of a launch, as far as they are known. Zeroed: none is. */
struct hvd_missing_hosts {
    char (*host)[HVD_MISSING_HOST_BYTES]; /* [count], by rank; empty: unknown */
    int count;
};

/* The end of a rank. It is sent as it is. */
struct hvd_missing_end {
    int32_t rank; /* the number that the launcher gave the process */
    int32_t wait_status; /* as waitpid gives it */
    char host[HVD_MISSING_HOST_BYTES]; /* NUL-terminated; empty: unknown */
};

/* Reasons for hvd_missing_fail. */
#define HVD_MISSING_CALL "they have ended, hang, or never called init"
#define HVD_MISSING_LIST HVD_MISSING_CALL " with the same list of ranks"

/* Records the host of a rank; cuts off a long name. Returns 0 or HVD_ERR_NOMEM. */
int hvd_missing_hosts_set(struct hvd_missing_hosts *hosts, int rank, const char *host);

/* Finds the host of a rank; empty if it is unknown. Borrowed until the next set. */
const char *hvd_missing_hosts_find(const struct hvd_missing_hosts *hosts, int rank);

/* Adds a missing rank; host may be empty. Ranks in ascending order on one host become a
 * range. */
void hvd_missing_add(struct hvd_missing *missing, int rank, const char *host);

/* Returns HVD_ERR_TIMEOUT with "3 of 8 ranks did not start within 60 s: ranks 2, 5-6 (on
 * n2); " and the reason, which says what to do. */
int hvd_missing_fail(const struct hvd_missing *missing, int size, int timeout_ms,
                     const char *reason, struct hvd_error *err);

/* Returns HVD_ERR_PEER with "rank 3 on n2 exited with status 0 and did not call init:
 * ...". is_list: init was called with a list of ranks. */
int hvd_missing_fail_end(const struct hvd_missing_end *end, bool is_list,
                         struct hvd_error *err);

#endif
