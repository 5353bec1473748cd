/* SPDX-License-Identifier: Apache-2.0 */
/* The warnings in files that NCCL has written, merged into kinds: warnings of one kind
 * differ only in numbers, addresses and names of nodes. Pure. */
#ifndef HVD_INFO_NCCL_KINDS_H
#define HVD_INFO_NCCL_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

enum {
    HVD_INFO_NCCL_HOST_BYTES = 256,
    HVD_INFO_NCCL_TEXT_BYTES = 512,
    HVD_INFO_NCCL_TIME_BYTES = 32,
    /* further kinds are only counted */
    HVD_INFO_NCCL_KINDS_MOST = 500,
};

/* One file: nccl.RANK.HOST.PID, which one process has written. */
struct hvd_info_nccl_file {
    int rank; /* -1: unknown, because torchrun has started the process */
    long pid;
    char host[HVD_INFO_NCCL_HOST_BYTES];
};

struct hvd_info_nccl_kind {
    char text
        [HVD_INFO_NCCL_TEXT_BYTES]; /* the first warning, without control characters */
    char folded[HVD_INFO_NCCL_TEXT_BYTES]; /* # for all that differs */
    char time[HVD_INFO_NCCL_TIME_BYTES]; /* of the first warning; empty: unknown */
    int first; /* the file of the first warning */
    long lines; /* how many warnings of this kind there are */
    int *files; /* [file_count] ascending indices of the files that have it */
    int file_count;
    int file_room;
};

struct hvd_info_nccl_kinds {
    struct hvd_info_nccl_kind *items; /* [count] */
    int count;
    long left_out; /* warnings of further kinds */
    /* the names of nodes to fold, sorted by strcmp and borrowed */
    const char *const *hosts;
    int host_count;
};

/* Parses the name of a file. Returns false if it is none of hvd's names. */
bool hvd_info_nccl_file_parse(const char *name, struct hvd_info_nccl_file *file);

/* Adds one line of a file if it is a warning; other lines are ignored. Add files in the
 * order of their indices. Fails only without memory. */
int hvd_info_nccl_kinds_add(struct hvd_info_nccl_kinds *kinds, int file, const char *line,
                            struct hvd_error *err);

/* Sorts the kinds by the time of their first warning, those without a time last. */
void hvd_info_nccl_kinds_sort(struct hvd_info_nccl_kinds *kinds);

/* Frees the kinds; a zeroed record is allowed. */
void hvd_info_nccl_kinds_finish(struct hvd_info_nccl_kinds *kinds);

#endif
