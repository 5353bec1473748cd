/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping TensorFlow's callback beyond the call of the kernel.
 *
 * TensorFlow hands the address of a std::function<void()> to the kernel and destroys it
 * as soon as the kernel's function returns (CAsyncOpKernel in tensorflow/c/kernels.cc),
 * so it has to be moved away. TensorFlow's wheels for Linux are bound to libstdc++, whose
 * binary interface fixes what such an object is: 16 bytes of storage, the manager, the
 * invoker. To move it is to copy these words and to leave an empty manager, and that is
 * to be an empty function. */
#include "contrib/python/native/tensorflow/done.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MANAGER = 2,
    INVOKER = 3,
    DESTROY = 3, /* what the manager is told to do: std::__destroy_functor */
};

typedef bool manager_function(void *to, const void *from, int operation);

/* Whether the address is in some library or program. */
static bool find_code(void *address)
{
    Dl_info info;

    return address != NULL && dladdr(address, &info) != 0;
}

/* The same, for one of two: dladdr looks at all symbols of a library, for 0.4 ms where
 * that is TensorFlow's, and nodes come with the same functions again and again. Libraries
 * that have called us stay. */
static bool is_code(int which, void *address)
{
    static _Atomic(void *) known[2];

    if (address != NULL && atomic_load(&known[which]) == address) {
        return true;
    }
    if (!find_code(address)) {
        return false;
    }
    atomic_store(&known[which], address);
    return true;
}

bool hvd_done_take(struct TF_AsyncOpKernelDoneCallback *callback, struct hvd_done *out)
{
    void **words = (void **)callback;

    if (!is_code(0, words[MANAGER]) || !is_code(1, words[INVOKER])) {
        return false;
    }
    memcpy(out->words, words, sizeof(out->words));
    words[MANAGER] = NULL;
    words[INVOKER] = NULL;
    return true;
}

void hvd_done_run(struct hvd_done *done)
{
    manager_function *manage;

    memcpy(&manage, &done->words[MANAGER], sizeof(manage));
    tf.RunAsyncOpKernelDoneCallback((struct TF_AsyncOpKernelDoneCallback *)done->words);
    manage(done->words, done->words, DESTROY);
}
