/* SPDX-License-Identifier: Apache-2.0 */
/* A node of a TensorFlow graph that is a collective: what its attributes say. */
#ifndef HVD_TENSORFLOW_KERNEL_H
#define HVD_TENSORFLOW_KERNEL_H

#include <stdatomic.h>

#include "collectives/hvd.h"
#include "contrib/python/native/tensorflow/tensorflow.h"

enum hvd_tf_kind {
    HVD_TF_ALLREDUCE,
    HVD_TF_ALLGATHER,
    HVD_TF_BROADCAST,
    HVD_TF_ALLTOALL,
    HVD_TF_REDUCESCATTER,
    HVD_TF_JOIN,
};

struct hvd_tf_call;

struct hvd_tf_kernel {
    enum hvd_tf_kind kind;
    int count; /* of tensors */
    char **names; /* [count], what the ranks match the tensors by */
    int set;
    int root; /* of a broadcast */
    enum hvd_op op; /* of a reduction; so the factors */
    double prescale;
    double postscale;
    bool blocks; /* the thread that runs the node waits, in place of another */
    _Atomic bool has_run; /* the next call may be worth keeping */
    /* A call that has ended, with its persistent request, for the node's next run; NULL:
     * none. */
    _Atomic(struct hvd_tf_call *) idle;
};

/* Reads the attributes. NULL, and the construction has failed, where that cannot be. */
struct hvd_tf_kernel *hvd_tf_kernel_create(struct TF_OpKernelConstruction *construction,
                                           enum hvd_tf_kind kind);
void hvd_tf_kernel_destroy(void *kernel); /* NULL is fine */

#endif
