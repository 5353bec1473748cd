/* SPDX-License-Identifier: Apache-2.0 */
/* Starting collectives: functions that the start functions of the public interface
 * share. */
#ifndef HVD_API_START_H
#define HVD_API_START_H

#include "collectives/request/request.h"
#include "collectives/api/api.h"

/* The arguments of a start function, besides the tensors. */
struct hvd_start {
    enum hvd_kind kind;
    const char *word; /* the beginning of Horovod's messages, such as "Allreduce" */
    enum hvd_op op;
    double prescale;
    double postscale;
    int set;
    int root;
    const int32_t *splits;
    int nsplits;
    const char *note; /* used for process sets, otherwise NULL */
    uint64_t call; /* the number of a barrier; other calls have it in their tensors */
    bool is_own_name; /* the library has chosen the tensor's name */
    /* Filled in by hvd_start_check. */
    int rank;
    int index; /* in the set */
    int set_size;
};

/* Checks the shape of a tensor that has a name. */
int hvd_start_check_shape(const struct hvd_tensor *tensor, struct hvd_error *err);

/* Checks that the process set exists and that this rank and the root are members. */
int hvd_start_check(struct hvd_job *job, struct hvd_start *start, struct hvd_error *err);

/* Checks one tensor, after hvd_start_check, and fills its entry. */
int hvd_start_fill_entry(const struct hvd_start *start, const struct hvd_tensor *tensor,
                         struct hvd_entry *entry, struct hvd_error *err);

/* Makes the entries of tensors on one GPU wait for the caller's stream. */
int hvd_start_gpu(struct hvd_job *job, const struct hvd_tensor *tensors,
                  struct hvd_request *request, struct hvd_error *err);

/* Checks the tensors and submits them as a request. The caller owns *out. */
int hvd_start_submit(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                     struct hvd_request **out, struct hvd_error *err);

/* Submits a request without a tensor, under a reserved name. */
int hvd_start_named(struct hvd_start *start, const char *name, struct hvd_request **out,
                    struct hvd_error *err);

/* Submits a request without a tensor, under the name "hvd.<word>", or
 * "hvd.<word>.<number>" unless the number is negative. The ranks match requests by these
 * names. */
int hvd_start_without_tensor(struct hvd_start *start, const char *word, int64_t number,
                             struct hvd_request **out, struct hvd_error *err);

#endif
