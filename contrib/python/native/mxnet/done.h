/* SPDX-License-Identifier: Apache-2.0 */
/* Tells MXNet's engine that an asynchronous operation has ended.
 *
 * The engine passes the address of an mxnet::engine::CallbackOnComplete to an operation,
 * which copies it and calls it once, from any thread. The C interface does not describe
 * this object; mxnet/engine.h, which MXNet's wheels contain, defines it as three
 * pointers. */
#ifndef HVD_MXNET_DONE_H
#define HVD_MXNET_DONE_H

#include "gpu_binding/base/error.h"

struct mxnet_done {
    void (*call)(void *engine, void *operation, const void *failure);
    void *engine;
    void *operation;
};

/* Looks up the constructor and destructor of std::runtime_error. Call it once, before
 * hvd_mxnet_done_run. */
int hvd_mxnet_done_prepare(struct hvd_error *err);

/* Ends the operation. If text is not NULL, the operation has failed: a thread that waits
 * for one of the arrays that it writes gets an exception. The text begins with the type
 * of the Python exception, as in "ValueError: no such rank". */
void hvd_mxnet_done_run(const struct mxnet_done *done, const char *text);

#endif
