/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the callback by which an asynchronous kernel says that it is done. */
#ifndef HVD_TENSORFLOW_DONE_H
#define HVD_TENSORFLOW_DONE_H

#include <stdbool.h>

#include "contrib/python/native/tensorflow/tensorflow.h"

/* A callback of TensorFlow's, to be run later, once, by any thread. */
struct hvd_done {
    void *words[4];
};

/* Takes the callback over while the kernel's function runs, where TensorFlow would
 * destroy it on return. Returns false, and leaves it alone, when it is not what this
 * knows how to keep: then the kernel has to run it before it returns. */
bool hvd_done_take(struct TF_AsyncOpKernelDoneCallback *callback, struct hvd_done *out);

/* Runs and ends it. The context of the kernel is gone then. */
void hvd_done_run(struct hvd_done *done);

#endif
