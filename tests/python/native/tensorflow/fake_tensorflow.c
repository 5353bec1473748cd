/* SPDX-License-Identifier: Apache-2.0 */
/* The C functions of the TensorFlow stand-in: tensors, kernels and their contexts. */
#include "tests/python/native/tensorflow/fake_tensorflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/python/native/tensorflow/fake_device.h"

enum {
    MOST_KERNELS = 32,
    LIMIT_S = 60,
};

struct TF_Status {
    int code;
    char text[600];
};

struct TF_Tensor {
    atomic_int owners;
    int dtype;
    int ndim;
    int64_t dims[FAKE_MOST_DIMS];
    void *data;
    void *own; /* host memory that is freed with the tensor, or NULL */
};

struct TF_KernelBuilder {
    const char *op;
    const char *device;
    tf_create_function *create;
    tf_compute_function *compute;
    tf_compute_async_function *compute_async;
    tf_delete_function *delete;
    const char *on_host[FAKE_MOST];
};

struct TF_OpKernelConstruction {
    const struct fake_run *run;
    bool has_failed;
};

/* The first member has the layout of TensorFlow's C++ object. */
struct TF_OpKernelContext {
    struct fake_context_words words;
    struct fake_run *run;
    const struct TF_KernelBuilder *builder;
    void *kernel;
};

/* The layout of a std::function<void()>. */
struct TF_AsyncOpKernelDoneCallback {
    void *storage[2];
    void *manager;
    void *invoker;
};

static struct TF_KernelBuilder *kernels[MOST_KERNELS];
static int kernel_count;
static void *next_output;

/* --- status --- */

HVD_EXPORT struct TF_Status *TF_NewStatus(void)
{
    return calloc(1, sizeof(struct TF_Status));
}

HVD_EXPORT void TF_DeleteStatus(struct TF_Status *status)
{
    free(status);
}

HVD_EXPORT void TF_SetStatus(struct TF_Status *status, int code, const char *message)
{
    status->code = code;
    snprintf(status->text, sizeof(status->text), "%s", message);
}

HVD_EXPORT int TF_GetCode(const struct TF_Status *status)
{
    return status->code;
}

/* --- tensors --- */

struct TF_Tensor *fake_tensor(int dtype, const int64_t *dims, int ndim, void *data)
{
    struct TF_Tensor *tensor = calloc(1, sizeof(*tensor));

    tensor->owners = 1;
    tensor->dtype = dtype;
    tensor->ndim = ndim;
    tensor->data = data;
    for (int i = 0; i < ndim; i++) {
        tensor->dims[i] = dims[i];
    }
    return tensor;
}

static struct TF_Tensor *keep(struct TF_Tensor *tensor)
{
    tensor->owners++;
    return tensor;
}

HVD_EXPORT void TF_DeleteTensor(struct TF_Tensor *tensor)
{
    if (--tensor->owners == 0) {
        free(tensor->own);
        free(tensor);
    }
}

HVD_EXPORT struct TF_Tensor *TF_NewTensor(int dtype, const int64_t *dims, int ndim,
                                          void *data, size_t bytes,
                                          tf_deallocator *give_back, void *argument)
{
    struct TF_Tensor *tensor = fake_tensor(dtype, dims, ndim, malloc(bytes + 1));

    tensor->own = tensor->data;
    memcpy(tensor->data, data, bytes);
    give_back(data, bytes, argument);
    return tensor;
}

HVD_EXPORT int TF_TensorType(const struct TF_Tensor *tensor)
{
    return tensor->dtype;
}

HVD_EXPORT int TF_NumDims(const struct TF_Tensor *tensor)
{
    return tensor->ndim;
}

HVD_EXPORT int64_t TF_Dim(const struct TF_Tensor *tensor, int index)
{
    return tensor->dims[index];
}

HVD_EXPORT void *TF_TensorData(const struct TF_Tensor *tensor)
{
    return tensor->data;
}

HVD_EXPORT size_t TF_TensorByteSize(const struct TF_Tensor *tensor)
{
    size_t bytes = 4; /* the size of all types that the tests use */

    for (int i = 0; i < tensor->ndim; i++) {
        bytes *= (size_t)tensor->dims[i];
    }
    return bytes;
}

int64_t fake_rows(const struct TF_Tensor *tensor)
{
    return tensor->ndim > 0 ? tensor->dims[0] : -1;
}

void *fake_data(const struct TF_Tensor *tensor)
{
    return tensor->data;
}

/* --- registering --- */

static struct TF_KernelBuilder *new_builder(const struct TF_KernelBuilder *like)
{
    struct TF_KernelBuilder *builder = malloc(sizeof(*builder));

    *builder = *like;
    return builder;
}

HVD_EXPORT struct TF_KernelBuilder *
TF_NewKernelBuilder(const char *op, const char *device, tf_create_function *create,
                    tf_compute_function *compute, tf_delete_function *delete)
{
    return new_builder(&(struct TF_KernelBuilder){.op = op,
                                                  .device = device,
                                                  .create = create,
                                                  .compute = compute,
                                                  .delete = delete});
}

#if FAKE_TENSORFLOW != 212
HVD_EXPORT struct TF_KernelBuilder *
TF_NewAsyncKernelBuilder(const char *op, const char *device, tf_create_function *create,
                         tf_compute_async_function *compute, tf_delete_function *delete)
{
    return new_builder(&(struct TF_KernelBuilder){.op = op,
                                                  .device = device,
                                                  .create = create,
                                                  .compute_async = compute,
                                                  .delete = delete});
}
#endif

HVD_EXPORT void TF_KernelBuilder_HostMemory(struct TF_KernelBuilder *builder,
                                            const char *argument)
{
    int count = 0;

    while (builder->on_host[count] != NULL) {
        count++;
    }
    builder->on_host[count] = argument;
}

HVD_EXPORT void TF_RegisterKernelBuilder(const char *name,
                                         struct TF_KernelBuilder *builder,
                                         struct TF_Status *status)
{
    if (kernel_count == MOST_KERNELS) {
        TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, name);
        return;
    }
    kernels[kernel_count++] = builder;
}

static const struct TF_KernelBuilder *find_kernel(const char *op, const char *device)
{
    for (int i = 0; i < kernel_count; i++) {
        if (strcmp(kernels[i]->op, op) == 0 && strcmp(kernels[i]->device, device) == 0) {
            return kernels[i];
        }
    }
    return NULL;
}

bool fake_has_kernel(const char *op, const char *device)
{
    return find_kernel(op, device) != NULL;
}

bool fake_has_async_kernels(void)
{
    return kernel_count > 0 && kernels[0]->compute_async != NULL;
}

static bool is_on_host(const struct TF_KernelBuilder *builder, const char *argument)
{
    for (int i = 0; builder->on_host[i] != NULL; i++) {
        if (strcmp(builder->on_host[i], argument) == 0) {
            return true;
        }
    }
    return strcmp(builder->device, "CPU") == 0;
}

bool fake_is_on_host(const char *op, const char *device, const char *argument)
{
    return is_on_host(find_kernel(op, device), argument);
}

/* --- functions that a kernel calls when it is made --- */

static const char *text_of(const struct fake_run *run, const char *name)
{
    /* other names are scale factors */
    return strcmp(name, "tensor_name") == 0 ? run->name : "1.0";
}

HVD_EXPORT void TF_OpKernelConstruction_GetAttrSize(struct TF_OpKernelConstruction *made,
                                                    const char *name, int32_t *list_size,
                                                    int32_t *total_size,
                                                    struct TF_Status *status)
{
    (void)status;
    if (strcmp(name, "T") == 0) {
        *list_size = made->run->input_count;
    } else {
        *total_size = (int32_t)strlen(text_of(made->run, name));
    }
}

HVD_EXPORT void
TF_OpKernelConstruction_GetAttrString(struct TF_OpKernelConstruction *made,
                                      const char *name, char *value, size_t max_length,
                                      struct TF_Status *status)
{
    (void)status;
    memcpy(value, text_of(made->run, name), max_length);
}

HVD_EXPORT void TF_OpKernelConstruction_GetAttrInt64(struct TF_OpKernelConstruction *made,
                                                     const char *name, int64_t *value,
                                                     struct TF_Status *status)
{
    (void)status;
    *value = strcmp(name, "reduce_op") == 0   ? made->run->reduce_op
             : strcmp(name, "root_rank") == 0 ? made->run->root_rank
                                              : 0;
}

HVD_EXPORT void TF_OpKernelConstruction_GetAttrBool(struct TF_OpKernelConstruction *made,
                                                    const char *name,
                                                    unsigned char *value,
                                                    struct TF_Status *status)
{
    (void)status;
    *value = strcmp(name, "blocks") == 0 && made->run->blocks;
}

HVD_EXPORT struct TF_StringView
TF_OpKernelConstruction_GetName(struct TF_OpKernelConstruction *made)
{
    return (struct TF_StringView){.data = made->run->name,
                                  .len = strlen(made->run->name)};
}

HVD_EXPORT void TF_OpKernelConstruction_Failure(struct TF_OpKernelConstruction *made,
                                                struct TF_Status *status)
{
    fprintf(stderr, "# no kernel: %s\n", status->text);
    made->has_failed = true;
}

/* --- functions that a kernel calls when it runs --- */

HVD_EXPORT int TF_NumInputs(struct TF_OpKernelContext *context)
{
    return context->run->input_count;
}

HVD_EXPORT void TF_GetInput(struct TF_OpKernelContext *context, int index,
                            struct TF_Tensor **tensor, struct TF_Status *status)
{
    (void)status;
    *tensor = keep(context->run->inputs[index]);
}

HVD_EXPORT void TF_SetOutput(struct TF_OpKernelContext *context, int index,
                             const struct TF_Tensor *tensor, struct TF_Status *status)
{
    (void)status;
    context->run->outputs[index] = keep((struct TF_Tensor *)tensor);
}

/* Allocates an output. In the tests, only a second output may be on the host. */
HVD_EXPORT struct TF_Tensor *TF_AllocateOutput(struct TF_OpKernelContext *context,
                                               int index, int dtype, const int64_t *dims,
                                               int ndim, size_t bytes,
                                               struct TF_Status *status)
{
    bool on_host = is_on_host(context->builder, index == 1 ? "received_splits" : "");
    void *own = on_host ? malloc(bytes + 1) : NULL;
    void *memory = on_host               ? own
                   : next_output != NULL ? next_output
                                         : fake_device_memory(bytes);
    struct TF_Tensor *tensor = fake_tensor(dtype, dims, ndim, memory);

    (void)status;
    tensor->own = own;
    next_output = NULL;
    context->run->outputs[index] = tensor;
    return keep(tensor);
}

/* Forwards the input if the kernel has released its own reference. */
HVD_EXPORT struct TF_Tensor *
TF_ForwardInputOrAllocateOutput(struct TF_OpKernelContext *context, const int *inputs,
                                int input_count, int output, const int64_t *dims,
                                int ndim, int *forwarded, struct TF_Status *status)
{
    struct TF_Tensor *input = context->run->inputs[inputs[0]];

    (void)input_count;
    if (next_output == NULL && input->owners == 1) {
        *forwarded = inputs[0];
        context->run->outputs[output] = keep(input);
        return keep(input);
    }
    return TF_AllocateOutput(context, output, input->dtype, dims, ndim,
                             TF_TensorByteSize(input), status);
}

HVD_EXPORT void TF_OpKernelContext_Failure(struct TF_OpKernelContext *context,
                                           struct TF_Status *status)
{
    context->run->code = status->code;
    snprintf(context->run->text, sizeof(context->run->text), "%s", status->text);
}

/* --- the end --- */

static void end_run(struct TF_OpKernelContext *context)
{
    struct fake_run *run = context->run;

    if (run->kernel == NULL) {
        context->builder->delete (context->kernel);
    }
    fake_context_finish(&context->words);
    free(context);
    atomic_fetch_add(&run->ends, 1);
}

static void invoke(struct TF_AsyncOpKernelDoneCallback *callback)
{
    end_run(callback->storage[0]);
}

static bool manage(void *to, const void *from, int operation)
{
    (void)to;
    (void)from;
    return operation != 0;
}

#if FAKE_TENSORFLOW != 212
HVD_EXPORT void
TF_RunAsyncOpKernelDoneCallback(struct TF_AsyncOpKernelDoneCallback *callback)
{
    invoke(callback);
}
#endif

/* --- running --- */

void fake_next_output(void *memory)
{
    next_output = memory;
}

static void *make_kernel(const struct TF_KernelBuilder *builder,
                         const struct fake_run *run)
{
    struct TF_OpKernelConstruction construction = {.run = run};
    void *kernel;

    if (run->kernel != NULL && *run->kernel != NULL) {
        return *run->kernel;
    }
    kernel = builder->create(&construction);
    if (run->kernel != NULL) {
        *run->kernel = kernel;
    }
    return construction.has_failed ? NULL : kernel;
}

bool fake_run_start(struct fake_run *run)
{
    const struct TF_KernelBuilder *builder = find_kernel(run->op, run->device);
    struct TF_OpKernelContext *context = calloc(1, sizeof(*context));
    struct TF_AsyncOpKernelDoneCallback callback = {
        .storage = {context}, .manager = (void *)manage, .invoker = (void *)invoke};

    context->run = run;
    context->builder = builder;
    context->kernel = builder == NULL ? NULL : make_kernel(builder, run);
    if (context->kernel == NULL) {
        free(context);
        return false;
    }
    fake_context_init(&context->words, strcmp(run->device, "GPU") == 0);
    if (builder->compute_async != NULL) {
        builder->compute_async(context->kernel, context, &callback);
    } else {
        builder->compute(context->kernel, context);
        end_run(context);
    }
    return true;
}

bool fake_run_wait(struct fake_run *run)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct timespec now, begin;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        if (atomic_load(&run->ends) > 0) {
            return true;
        }
        nanosleep(&moment, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < LIMIT_S);
    return false;
}

void fake_run_delete_kernel(struct fake_run *run)
{
    find_kernel(run->op, run->device)->delete (*run->kernel);
    *run->kernel = NULL;
}

void fake_run_free(struct fake_run *run)
{
    for (int i = 0; i < FAKE_MOST; i++) {
        if (run->inputs[i] != NULL) {
            TF_DeleteTensor(run->inputs[i]);
        }
        if (run->outputs[i] != NULL) {
            TF_DeleteTensor(run->outputs[i]);
        }
    }
}
