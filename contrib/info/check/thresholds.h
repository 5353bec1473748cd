/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the limits from which hvd-info --check warns or fails; thresholds.conf describes
 * the format. */
#ifndef HVD_INFO_THRESHOLDS_H
#define HVD_INFO_THRESHOLDS_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

enum {
    HVD_INFO_THRESHOLDS = 64 /* lines of a file, at most */
};

struct hvd_info_limit {
    double value; /* NAN: there is no limit */
    bool is_relative; /* times the median */
};

struct hvd_info_threshold {
    char name[48];
    struct hvd_info_limit yellow, red;
};

struct hvd_info_thresholds {
    int count;
    struct hvd_info_threshold items[HVD_INFO_THRESHOLDS];
};

/* Reads the file; NULL: that of this installation or build. Returns HVD_ERR_ARG for a
 * line that is not as expected, and HVD_ERR_SYS if there is no such file; but without a
 * file of this installation, the count is 0. */
int hvd_info_thresholds_read(const char *file, struct hvd_info_thresholds *thresholds,
                             struct hvd_error *err);

/* Returns NULL if the file has no such name. */
const struct hvd_info_threshold *
hvd_info_thresholds_find(const struct hvd_info_thresholds *thresholds, const char *name);

/* Returns the item with the longest name that begins with `kind` and is the beginning of
 * this text, where "_" stands for any character; NULL if there is none. */
const struct hvd_info_threshold *
hvd_info_thresholds_match(const struct hvd_info_thresholds *thresholds, const char *kind,
                          const char *text);

#endif
