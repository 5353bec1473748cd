/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the stand-in for the CUDA driver, and the context of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_state.h"

enum {
    MOST_DEVICES = 16,
    MOST_PUSHED = 64,
};

struct fake_context {
    _Atomic int retained; /* number of retains; 0: the context does not exist */
};

static struct fake_context contexts[MOST_DEVICES];
static _Thread_local struct fake_context *stack[MOST_PUSHED];
static _Thread_local int depth;

struct fake_context *fake_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

int fake_number(const struct fake_context *context)
{
    return (int)(context - contexts);
}

HVD_EXPORT int fake_gpu_device(void)
{
    return depth > 0 ? fake_number(fake_current()) : -1;
}

int fake_begin(const char *function)
{
    return fake_gpu_fails(function) ? FAKE_INVALID_VALUE
           : fake_current() == NULL ? FAKE_INVALID_CONTEXT
                                    : FAKE_SUCCESS;
}

void fake_begin_end(const char *function)
{
    if (fake_current() == NULL && fake_gpu_failed() == NULL) {
        fprintf(stderr, "fake GPU: %s without a context\n", function);
        abort();
    }
}

static int device_count(void)
{
    const char *text = getenv("FAKE_GPU_COUNT");

    return text != NULL ? atoi(text) : 1;
}

HVD_EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return fake_gpu_fails("cuInit") ? FAKE_NO_DEVICE
           : device_count() > 0     ? FAKE_SUCCESS
                                    : FAKE_NO_DEVICE;
}

HVD_EXPORT int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return fake_gpu_fails("cuDriverGetVersion") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDeviceGetCount(int *count)
{
    *count = device_count();
    return fake_gpu_fails("cuDeviceGetCount") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return fake_gpu_fails("cuDeviceGet") || ordinal >= device_count() ? FAKE_INVALID_VALUE
                                                                      : FAKE_SUCCESS;
}

bool fake_is_shared(void)
{
    return getenv("FAKE_GPU_SHARED") != NULL;
}

/* The processes may have GPUs of different sizes. */
int fake_multiprocessors(void)
{
    return 4 + (fake_is_shared() ? 1 : (int)getpid() % 4) * 8;
}

/* Each process has its own GPUs, unless FAKE_GPU_SHARED is set. */
HVD_EXPORT int cuDeviceGetUuid_v2(void *uuid, int device)
{
    int words[4] = {fake_is_shared() ? 1 : (int)getpid(), device, 7, 7};

    memcpy(uuid, words, sizeof(words));
    return fake_gpu_fails("cuDeviceGetUuid") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

/* Writes the PCI bus id of a device. Each process has its own GPUs, unless
 * FAKE_GPU_SHARED is set. With FAKE_GPU_MIG all devices are slices of one GPU and have
 * its bus id. */
static void bus_id(char *id, size_t bytes, int device)
{
    unsigned owner = fake_is_shared() ? 1 : (unsigned)getpid();

    if (getenv("FAKE_GPU_MIG") != NULL) {
        owner = 0;
        device = 0;
    }
    snprintf(id, bytes, "%04x:%02x:%02x.0", owner & 0xffff, owner >> 16 & 0xff,
             (unsigned)device & 0xff);
}

HVD_EXPORT int cuDeviceGetName(char *name, int bytes, int device)
{
    const char *chosen = getenv("FAKE_GPU_MODEL");

    (void)device;
    snprintf(name, (size_t)bytes, "%s", chosen != NULL ? chosen : "Stand-in");
    return fake_gpu_fails("cuDeviceGetName") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDeviceGetPCIBusId(char *id, int bytes, int device)
{
    bus_id(id, (size_t)bytes, device);
    return fake_gpu_fails("cuDeviceGetPCIBusId") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT void fake_gpu_bus_id(char *id, size_t bytes)
{
    bus_id(id, bytes, fake_gpu_device());
}

HVD_EXPORT bool fake_gpu_is_on_switch(void)
{
    const char *chosen = getenv("FAKE_GPU_MULTICAST");

    return chosen != NULL && strcmp(chosen, "1") == 0;
}

/* Never made to fail: to callers, an error says that the driver does not know the
 * attribute, which is not a failure. */
HVD_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *order = getenv("FAKE_GPU_ORDERING");

    (void)device;
    switch (attribute) {
    case 16: /* multiprocessors */
        *value = fake_multiprocessors();
        return FAKE_SUCCESS;
    case 118: /* order of RDMA writes */
        *value = order != NULL ? atoi(order) : 100;
        return FAKE_SUCCESS;
    case 124: /* dma-buf */
        *value = 0;
        return FAKE_SUCCESS;
    case 132: /* multicast */
        *value = fake_gpu_is_on_switch() ? 1 : 0;
        return FAKE_SUCCESS;
    default:
        return FAKE_INVALID_VALUE;
    }
}

/* Looks up a pair in FAKE_GPU_P2P, "0-1:nvlink,0-2:pcie". Returns the text behind the
 * colon, NULL if the pair is not there. */
static const char *find_pair(int one, int other)
{
    const char *text = getenv("FAKE_GPU_P2P");
    char wanted[64];
    const char *found;

    snprintf(wanted, sizeof(wanted), "%d-%d:", one < other ? one : other,
             one < other ? other : one);
    found = text != NULL ? strstr(text, wanted) : NULL;
    return found != NULL ? found + strlen(wanted) : NULL;
}

HVD_EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = find_pair(device, peer) != NULL;
    return fake_gpu_fails("cuDeviceCanAccessPeer") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
    const char *pair = find_pair(device, peer);

    *value = attribute == 3 && pair != NULL && strncmp(pair, "nvlink", 6) == 0;
    return fake_gpu_fails("cuDeviceGetP2PAttribute") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDevicePrimaryCtxRetain(void **out, int device)
{
    if (fake_gpu_fails("cuDevicePrimaryCtxRetain")) {
        return FAKE_OUT_OF_MEMORY;
    }
    if (device < 0 || device >= device_count() || device >= MOST_DEVICES) {
        return FAKE_INVALID_VALUE;
    }
    contexts[device].retained++;
    *out = &contexts[device];
    fake_count(&fake_counters()->contexts, 1);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    if (device < 0 || device >= MOST_DEVICES || contexts[device].retained == 0) {
        return FAKE_INVALID_CONTEXT;
    }
    contexts[device].retained--;
    fake_count(&fake_counters()->contexts, -1);
    return fake_gpu_fails("cuDevicePrimaryCtxRelease") ? FAKE_INVALID_VALUE
                                                       : FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxPushCurrent_v2(struct fake_context *pushed)
{
    if (fake_gpu_fails("cuCtxPushCurrent") || depth == MOST_PUSHED) {
        return FAKE_INVALID_VALUE;
    }
    if (pushed < contexts || pushed >= contexts + MOST_DEVICES || pushed->retained == 0) {
        return FAKE_INVALID_CONTEXT;
    }
    stack[depth++] = pushed;
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxPopCurrent_v2(struct fake_context **popped)
{
    if (depth == 0) {
        return FAKE_INVALID_CONTEXT;
    }
    *popped = stack[--depth];
    return fake_gpu_fails("cuCtxPopCurrent") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxGetCurrent(struct fake_context **current)
{
    *current = fake_current();
    return fake_gpu_fails("cuCtxGetCurrent") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxGetDevice(int *device)
{
    int error = fake_begin("cuCtxGetDevice");

    *device = fake_gpu_device();
    return error;
}

HVD_EXPORT int cuCtxSynchronize(void)
{
    int error = fake_begin("cuCtxSynchronize");

    if (error == FAKE_SUCCESS) {
        fake_drain_streams(fake_current());
    }
    return error;
}

HVD_EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return fake_begin("cuCtxGetStreamPriorityRange");
}

HVD_EXPORT int cuGetErrorName(int error, const char **name)
{
    *name = error == FAKE_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == FAKE_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
            : error == FAKE_INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
            : error == FAKE_INVALID_HANDLE  ? "CUDA_ERROR_INVALID_HANDLE"
            : error == FAKE_NO_DEVICE       ? "CUDA_ERROR_NO_DEVICE"
            : error == FAKE_NO_BINARY       ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                            : "CUDA_ERROR_UNKNOWN";
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuGetErrorString(int error, const char **text)
{
    *text = error == FAKE_OUT_OF_MEMORY ? "out of memory" : "made up for a test";
    return FAKE_SUCCESS;
}
