/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps TensorFlow's callback beyond the call of the kernel.
 *
 * TensorFlow passes the address of a std::function<void()> to the kernel and destroys it
 * when the kernel's function returns (CAsyncOpKernel in tensorflow/c/kernels.cc), so it
 * has to be moved elsewhere. TensorFlow's wheels for Linux are linked to libstdc++, whose
 * binary interface fixes the layout of this object: 16 bytes of storage, the manager, the
 * invoker. To move the object, copy these words and clear the manager, which leaves an
 * empty function behind. */
#include "contrib/python/native/tensorflow/done.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MANAGER = 2,
    INVOKER = 3,
    DESTROY = 3, /* argument of the manager: std::__destroy_functor */
};

typedef bool manager_function(void *to, const void *from, int operation);

/* Whether the address is within a loaded library or the program. */
static bool find_code(void *address)
{
    Dl_info info;

    return address != NULL && dladdr(address, &info) != 0;
}

/* Like find_code, with a cache for the last address of each of two kinds. dladdr searches
 * all symbols of a library, which takes 0.4 ms for TensorFlow's, and nodes pass the same
 * functions again and again. A cached address stays valid, because these libraries are
 * never unloaded. */
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
