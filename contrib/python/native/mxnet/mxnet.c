/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up MXNet's C interface in this process. */
#include "contrib/python/native/mxnet/mxnet.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "collectives/hvd.h"

struct mxnet mx;

#define FUNCTION(name)                                                                   \
    {                                                                                    \
        "MX" #name, offsetof(struct mxnet, name)                                         \
    }

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    FUNCTION(EnginePushAsyncND), FUNCTION(ShallowCopyNDArray),
    FUNCTION(NDArrayFree),       FUNCTION(NDArrayToDLPack),
    FUNCTION(GetLastError),      FUNCTION(NDArrayCallDLPackDeleter),
};

/* The mangled name of mxnet::NDArray::Reorder2DefaultAsync() const. */
static const char reorder_name[] = "_ZNK5mxnet7NDArray20Reorder2DefaultAsyncEv";

int hvd_mxnet_find(const char *path, struct hvd_error *err)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *address;

    if (library == NULL) {
        return hvd_fail(err, HVD_ERR_STATE, "MXNet's library %s is not loaded: %s", path,
                        dlerror());
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        address = dlsym(library, functions[i].name);
        if (address == NULL) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                            "%s has no %s: hvd supports MXNet 1.9", path,
                            functions[i].name);
        }
        memcpy((char *)&mx + functions[i].offset, &address, sizeof(address));
    }
    address = dlsym(library, reorder_name);
    memcpy(&mx.reorder, &address, sizeof(address));
    return 0;
}

int hvd_mxnet_address(mxnet_array array, void **address, struct hvd_error *err)
{
    void **managed; /* a DLManagedTensor, which begins with the address of the data */

    /* Do not use MXNDArrayGetData: it may change the layout of the array, and would wait
     * for the operation that calls this function. */
    if (mx.NDArrayToDLPack(array, (void **)&managed) != 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "MXNet does not return the address of an array: %s",
                        mx.GetLastError());
    }
    *address = *managed;
    mx.NDArrayCallDLPackDeleter(managed);
    return 0;
}
