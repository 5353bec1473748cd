/* SPDX-License-Identifier: Apache-2.0 */
/* Telling MXNet's engine that an asynchronous operation is over.
 *
 * The engine passes an operation the address of an mxnet::engine::CallbackOnComplete, to
 * be copied and called once, by any thread. The C interface leaves out what that is;
 * mxnet/engine.h, which the wheels of MXNet ship, has it as three pointers. */
#ifndef HVD_MXNET_DONE_H
#define HVD_MXNET_DONE_H

#include "gpu_binding/base/error.h"

struct mxnet_done {
    void (*call)(void *engine, void *operation, const void *failure);
    void *engine;
    void *operation;
};

/* Finds what failures are made of. */
int hvd_mxnet_done_prepare(struct hvd_error *err);

/* Ends the operation. With a text, whoever waits for one of the arrays that it wrote gets
 * an exception: of the Python type that the text begins with, as in "ValueError: no such
 * rank". */
void hvd_mxnet_done_run(const struct mxnet_done *done, const char *text);

#endif
