/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the GPU of a kernel through functions that TensorFlow's library exports for its
 * own C++ code:
 *
 *     context -> device (GPUDevice) -> AcceleratorDeviceInfo -> GPUDeviceContext
 *             -> Stream -> CUstream
 *
 * The type names of the objects are checked on the way. */
#include "contrib/python/native/tensorflow/gpu.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "contrib/python/native/tensorflow/object.h"
#include "gpu_binding/base/log.h"

static const char device_type[] = "N10tensorflow9GPUDeviceE";
static const char context_type[] = "N10tensorflow16GPUDeviceContextE";

enum {
    /* index of the pointer to the GPUDeviceContext in DeviceBase::AcceleratorDeviceInfo,
     * in all versions */
    DEFAULT_CONTEXT = 1,
};

typedef void *get_function(const void *object);

/* Functions that return the driver's stream of a stream_executor::Stream; the first one
 * that the library exports is used. */
static const struct {
    const char *name;
    const char *type; /* the type that the stream must have; NULL: any */
} ways[] = {
    {"_ZN15stream_executor3gpu16AsGpuStreamValueEPNS_6StreamE", NULL},
    {"_ZNK15stream_executor3gpu10CudaStream24platform_specific_handleEv",
     "N15stream_executor3gpu10CudaStreamE"},
};

static struct {
    get_function *device_information; /* DeviceBase::tensorflow_accelerator_device_info */
    get_function *context_stream; /* GPUDeviceContext::stream */
    get_function *driver_stream;
    const char *stream_type;
    int (*current_context)(void **context);
    int (*current_device)(int *device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*synchronize)(void);
} found;

/* --- initialization --- */

static get_function *find_function(void *library, const char *name)
{
    void *address = dlsym(library, name);
    get_function *function = NULL;

    memcpy(&function, &address, sizeof(address));
    return function;
}

/* Returns the name of a function that this TensorFlow lacks, or NULL. */
static const char *find_in_tensorflow(void *library)
{
    found.device_information = find_function(
        library, "_ZNK10tensorflow10DeviceBase34tensorflow_accelerator_device_infoEv");
    found.context_stream =
        find_function(library, "_ZNK10tensorflow16GPUDeviceContext6streamEv");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && found.driver_stream == NULL;
         i++) {
        found.driver_stream = find_function(library, ways[i].name);
        found.stream_type = ways[i].type;
    }
    return found.device_information == NULL      ? "tensorflow_accelerator_device_info"
           : found.context_stream == NULL        ? "GPUDeviceContext::stream"
           : found.driver_stream == NULL         ? "a function for the stream of CUDA"
           : tf.KernelBuilder_HostMemory == NULL ? "TF_KernelBuilder_HostMemory"
                                                 : NULL;
}

static bool find_driver(void)
{
    static const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"cuCtxGetCurrent", &found.current_context},
        {"cuCtxGetDevice", &found.current_device},
        {"cuCtxPushCurrent_v2", &found.push},
        {"cuCtxPopCurrent_v2", &found.pop},
        {"cuCtxSynchronize", &found.synchronize},
    };
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    bool has_all = driver != NULL;

    for (size_t i = 0; has_all && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *address = dlsym(driver, wanted[i].name);

        memcpy(wanted[i].function, &address, sizeof(address));
        has_all = address != NULL;
    }
    return has_all;
}

bool hvd_tf_gpu_open(void)
{
    void *library = hvd_tensorflow_library();
    const char *lacking;

    /* This TensorFlow was built for CPUs only or for AMD's GPUs, or there is no CUDA
     * driver. */
    if (dlsym(library, "_ZTVN10tensorflow9GPUDeviceE") == NULL || !find_driver()) {
        return false;
    }
    lacking = find_in_tensorflow(library);
    if (lacking != NULL) {
        hvd_log(
            HVD_LOG_WARN,
            "tensors on GPUs are copied through host memory by TensorFlow: its library "
            "does not export %s; hvd supports TensorFlow 2.12 to 2.21",
            lacking);
    }
    return lacking == NULL;
}

/* --- use by kernels --- */

static void warn_once(const char *reason)
{
    static _Atomic bool has_warned;

    if (!atomic_exchange(&has_warned, true)) {
        hvd_log(
            HVD_LOG_WARN,
            "each collective on a GPU waits until the device is idle: %s; hvd supports "
            "TensorFlow 2.12 to 2.21",
            reason);
    }
}

/* Finds the stream of the kernel's device. Returns the reason if that fails, otherwise
 * NULL. */
static const char *find_stream(const struct TF_OpKernelContext *context, void **stream)
{
    const void *device = hvd_tf_object_device(context, device_type);
    void *const *information;
    const void *own;

    if (device == NULL) {
        return "the CUDA device of TensorFlow was not found in the context of a kernel";
    }
    information = found.device_information(device);
    if (!hvd_tf_object_is(information[DEFAULT_CONTEXT], context_type)) {
        return "the CUDA device of TensorFlow has no context of its own";
    }
    own = found.context_stream(information[DEFAULT_CONTEXT]);
    if (own == NULL ||
        (found.stream_type != NULL && !hvd_tf_object_is(own, found.stream_type))) {
        return "the stream of TensorFlow's device is not CUDA's";
    }
    *stream = found.driver_stream(own);
    return NULL;
}

int hvd_tf_gpu_of(const struct TF_OpKernelContext *context, struct hvd_tf_gpu *out,
                  struct hvd_error *err)
{
    struct hvd_tf_gpu gpu = {.number = -1};
    const char *reason = find_stream(context, &gpu.stream);
    int error = found.current_device(&gpu.number);

    error = error != 0 ? error : found.current_context(&gpu.context);
    if (error != 0) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "the kernel runs on a GPU without a CUDA context (cuCtxGetDevice: error "
            "%d): place the collective with tf.device('CPU:0')",
            error);
    }
    gpu.has_stream = reason == NULL;
    if (reason != NULL) {
        warn_once(reason);
    }
    *out = gpu;
    return 0;
}

int hvd_tf_gpu_settle(const struct hvd_tf_gpu *gpu, struct hvd_error *err)
{
    void *context = gpu->context;
    int error;

    if (gpu->has_stream) {
        return 0;
    }
    error = found.push(context);
    if (error == 0) {
        error = found.synchronize();
        found.pop(&context);
    }
    return error == 0
               ? 0
               : hvd_fail(err, HVD_ERR_SYS,
                          "cannot wait for GPU %d: cuCtxSynchronize failed with error %d",
                          gpu->number, error);
}
