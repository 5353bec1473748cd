/* SPDX-License-Identifier: Apache-2.0 */
/* Starting collectives: what the functions of the public interface that do so share. */
#ifndef HVD_API_START_H
#define HVD_API_START_H

#include "collectives/request/request.h"
#include "collectives/api/api.h"

/* What is asked for, besides the tensors. */
struct hvd_start {
    enum hvd_kind kind;
    const char *word; /* as Horovod's messages begin: "Allreduce" */
    enum hvd_op op;
    double prescale;
    double postscale;
    int set;
    int root;
    const int32_t *splits;
    int nsplits;
    const char *note; /* NULL but for process sets */
    uint64_t call; /* of a barrier; others have it in their tensors */
    bool is_own_name; /* the library has named the tensor */
    /* Filled by hvd_start_check. */
    int rank;
    int index; /* in the set */
    int set_size;
};

/* Of a tensor with a name. */
int hvd_start_check_shape(const struct hvd_tensor *tensor, struct hvd_error *err);

/* The process set: it is there, this rank and the root are members. */
int hvd_start_check(struct hvd_job *job, struct hvd_start *start, struct hvd_error *err);

/* One tensor, after the place; fills its entry. */
int hvd_start_fill_entry(const struct hvd_start *start, const struct hvd_tensor *tensor,
                         struct hvd_entry *entry, struct hvd_error *err);

/* The tensors are on one GPU: their entries wait for its stream. */
int hvd_start_gpu(struct hvd_job *job, const struct hvd_tensor *tensors,
                  struct hvd_request *request, struct hvd_error *err);

/* Checks and submits; *out is the caller's. */
int hvd_start_submit(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                     struct hvd_request **out, struct hvd_error *err);

/* The same for what has no tensor, under a reserved name. */
int hvd_start_named(struct hvd_start *start, const char *name, struct hvd_request **out,
                    struct hvd_error *err);

/* The same by the name "hvd.<word>", with a number, unless it is negative, by which the
 * ranks match it. */
int hvd_start_without_tensor(struct hvd_start *start, const char *word, int64_t number,
                             struct hvd_request **out, struct hvd_error *err);

#endif
