/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the callback by which an asynchronous kernel reports that it has ended. */
#ifndef HVD_TENSORFLOW_DONE_H
#define HVD_TENSORFLOW_DONE_H

#include <stdbool.h>

#include "contrib/python/native/tensorflow/tensorflow.h"

/* A callback of TensorFlow, to be run later, once, by any thread. */
struct hvd_done {
    void *words[4];
};

/* Moves the callback out of the object that TensorFlow destroys when the kernel's
 * function returns. Returns false, and changes nothing, if the layout of the object is
 * not the expected one: then the kernel must run the callback before it returns. */
bool hvd_done_take(struct TF_AsyncOpKernelDoneCallback *callback, struct hvd_done *out);

/* Runs and destroys the callback. The context of the kernel is invalid afterwards. */
void hvd_done_run(struct hvd_done *done);

#endif
