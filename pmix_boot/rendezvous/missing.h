/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that have not come to a start, for the error that names them. */
#ifndef HVD_MISSING_H
#define HVD_MISSING_H

#include "gpu_binding/base/error.h"

enum {
    HVD_MISSING_RANGES = 6, /* at most, that an error names */
    HVD_MISSING_HOST_BYTES = 40
};

/* Zeroed: none. */
struct hvd_missing {
    int count; /* of ranks */
    int ranges;
    struct {
        int first, last;
        char host[HVD_MISSING_HOST_BYTES]; /* of all of them; empty: unknown */
    } range[HVD_MISSING_RANGES];
};

/* Reasons for hvd_missing_fail. */
#define HVD_MISSING_CALL "they have ended, hang, or never called init"
#define HVD_MISSING_LIST HVD_MISSING_CALL " with the same list of ranks"

/* host may be empty. Ranks in ascending order on one host are named as a range. */
void hvd_missing_add(struct hvd_missing *missing, int rank, const char *host);

/* Returns HVD_ERR_TIMEOUT with "3 of 8 ranks did not start within 60 s: ranks 2, 5-6 (on
 * n2); " and the reason, which says what to do. */
int hvd_missing_fail(const struct hvd_missing *missing, int size, int timeout_ms,
                     const char *reason, struct hvd_error *err);

#endif
