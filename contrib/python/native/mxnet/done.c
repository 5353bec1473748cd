/* SPDX-License-Identifier: Apache-2.0 */
/* Tells MXNet's engine that an asynchronous operation has ended.
 *
 * A failure is passed as a dmlc::Error, which is a std::runtime_error without further
 * members. The engine copies it as a dmlc::Error, without using its virtual functions, so
 * a std::runtime_error will do. libstdc++, to which MXNet's wheels are linked, exports
 * its constructor and destructor. */
#include "contrib/python/native/mxnet/done.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* The memory of a std::runtime_error: a pointer to its virtual functions, and a pointer
 * to its text, a reference-counted string of libstdc++. */
struct runtime_error {
    void *words[2];
};

static void (*construct)(struct runtime_error *, const char *text);
static void (*destroy)(struct runtime_error *);

int hvd_mxnet_done_prepare(struct hvd_error *err)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
    void *constructor, *destructor;

    if (library == NULL) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot load libstdc++: %s", dlerror());
    }
    constructor = dlsym(library, "_ZNSt13runtime_errorC1EPKc");
    destructor = dlsym(library, "_ZNSt13runtime_errorD1Ev");
    if (constructor == NULL || destructor == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "libstdc++.so.6 does not export std::runtime_error");
    }
    memcpy(&construct, &constructor, sizeof(construct));
    memcpy(&destroy, &destructor, sizeof(destroy));
    return 0;
}

void hvd_mxnet_done_run(const struct mxnet_done *done, const char *text)
{
    struct runtime_error failure;

    if (text == NULL) {
        done->call(done->engine, done->operation, NULL);
        return;
    }
    construct(&failure, text);
    done->call(done->engine, done->operation, &failure);
    destroy(&failure);
}
