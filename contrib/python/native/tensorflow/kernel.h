/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a node of a TensorFlow graph that is a collective. */
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
    int count; /* the number of tensors */
    char **names; /* [count]; the names by which the ranks match the tensors */
    int set;
    int root; /* for a broadcast */
    enum hvd_op op; /* for a reduction */
    double prescale;
    double postscale;
    bool blocks; /* the thread that runs the node waits itself, instead of the waiter */
    /* whether the node has run before, so that its calls are worth keeping */
    _Atomic bool has_run;
    /* a call that has ended, with its persistent request, for the next run of the node;
     * NULL: none */
    _Atomic(struct hvd_tf_call *) idle;
};

/* Reads the attributes. If that fails, reports the failure to the construction and
 * returns NULL. */
struct hvd_tf_kernel *hvd_tf_kernel_create(struct TF_OpKernelConstruction *construction,
                                           enum hvd_tf_kind kind);
void hvd_tf_kernel_destroy(void *kernel); /* accepts NULL */

#endif
