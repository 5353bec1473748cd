/* SPDX-License-Identifier: Apache-2.0 */
/* The part of TensorFlow's C interface that hvd uses. It is looked up at run time in the
 * process that has loaded TensorFlow, so one binary, built without TensorFlow's headers,
 * works with all versions.
 *
 * The interface is tensorflow/c/{ops,kernels,tf_tensor,tf_status}.h. Its objects are
 * opaque; the numbers below are part of the interface. */
#ifndef HVD_TENSORFLOW_H
#define HVD_TENSORFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/attr.h"

struct TF_Status;
struct TF_Tensor;
struct TF_OpDefinitionBuilder;
struct TF_KernelBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeHandle;
struct TF_ShapeInferenceContext;
struct TF_AsyncOpKernelDoneCallback;

struct TF_StringView {
    const char *data; /* not null-terminated */
    size_t len;
};

enum TF_Code {
    TF_OK = 0,
    TF_UNKNOWN = 2,
    TF_INVALID_ARGUMENT = 3,
    TF_RESOURCE_EXHAUSTED = 8,
    TF_FAILED_PRECONDITION = 9,
    TF_UNIMPLEMENTED = 12,
};

enum TF_DataType {
    TF_FLOAT = 1,
    TF_DOUBLE = 2,
    TF_INT32 = 3,
    TF_UINT8 = 4,
    TF_INT16 = 5,
    TF_INT8 = 6,
    TF_INT64 = 9,
    TF_BOOL = 10,
    TF_BFLOAT16 = 14,
    TF_UINT16 = 17,
    TF_HALF = 19,
    TF_UINT32 = 22,
    TF_UINT64 = 23,
};

typedef void *tf_create_function(struct TF_OpKernelConstruction *);
typedef void tf_compute_function(void *kernel, struct TF_OpKernelContext *);
typedef void tf_compute_async_function(void *kernel, struct TF_OpKernelContext *,
                                       struct TF_AsyncOpKernelDoneCallback *);
typedef void tf_delete_function(void *kernel);
typedef void tf_shape_function(struct TF_ShapeInferenceContext *, struct TF_Status *);
typedef void tf_deallocator(void *data, size_t bytes, void *argument);

/* TensorFlow's functions, by their names without the prefix TF_. */
struct tensorflow {
    struct TF_Status *(*NewStatus)(void);
    void (*DeleteStatus)(struct TF_Status *);
    void (*SetStatus)(struct TF_Status *, int code, const char *message);
    int (*GetCode)(const struct TF_Status *);

    struct TF_OpDefinitionBuilder *(*NewOpDefinitionBuilder)(const char *op);
    void (*OpDefinitionBuilderAddAttr)(struct TF_OpDefinitionBuilder *, const char *);
    void (*OpDefinitionBuilderAddInput)(struct TF_OpDefinitionBuilder *, const char *);
    void (*OpDefinitionBuilderAddOutput)(struct TF_OpDefinitionBuilder *, const char *);
    void (*OpDefinitionBuilderSetIsStateful)(struct TF_OpDefinitionBuilder *, bool);
    void (*OpDefinitionBuilderSetShapeInferenceFunction)(struct TF_OpDefinitionBuilder *,
                                                         tf_shape_function *);
    void (*RegisterOpDefinition)(struct TF_OpDefinitionBuilder *, struct TF_Status *);

    struct TF_KernelBuilder *(*NewKernelBuilder)(const char *op, const char *device,
                                                 tf_create_function *,
                                                 tf_compute_function *,
                                                 tf_delete_function *);
    struct TF_KernelBuilder *(*NewAsyncKernelBuilder)(const char *op, const char *device,
                                                      tf_create_function *,
                                                      tf_compute_async_function *,
                                                      tf_delete_function *);
    void (*KernelBuilder_HostMemory)(struct TF_KernelBuilder *, const char *argument);
    void (*RegisterKernelBuilder)(const char *name, struct TF_KernelBuilder *,
                                  struct TF_Status *);
    void (*RunAsyncOpKernelDoneCallback)(struct TF_AsyncOpKernelDoneCallback *);

    void (*OpKernelConstruction_GetAttrSize)(struct TF_OpKernelConstruction *,
                                             const char *name, int32_t *list_size,
                                             int32_t *total_size, struct TF_Status *);
    void (*OpKernelConstruction_GetAttrString)(struct TF_OpKernelConstruction *,
                                               const char *name, char *value,
                                               size_t max_length, struct TF_Status *);
    void (*OpKernelConstruction_GetAttrInt64)(struct TF_OpKernelConstruction *,
                                              const char *name, int64_t *value,
                                              struct TF_Status *);
    void (*OpKernelConstruction_GetAttrBool)(struct TF_OpKernelConstruction *,
                                             const char *name, unsigned char *value,
                                             struct TF_Status *);
    struct TF_StringView (*OpKernelConstruction_GetName)(
        struct TF_OpKernelConstruction *);
    void (*OpKernelConstruction_Failure)(struct TF_OpKernelConstruction *,
                                         struct TF_Status *);

    int (*NumInputs)(struct TF_OpKernelContext *);
    void (*GetInput)(struct TF_OpKernelContext *, int index, struct TF_Tensor **,
                     struct TF_Status *);
    void (*SetOutput)(struct TF_OpKernelContext *, int index, const struct TF_Tensor *,
                      struct TF_Status *);
    struct TF_Tensor *(*AllocateOutput)(struct TF_OpKernelContext *, int index, int dtype,
                                        const int64_t *dims, int ndim, size_t bytes,
                                        struct TF_Status *);
    struct TF_Tensor *(*ForwardInputOrAllocateOutput)(struct TF_OpKernelContext *,
                                                      const int *inputs, int input_count,
                                                      int output, const int64_t *dims,
                                                      int ndim, int *forwarded,
                                                      struct TF_Status *);
    void (*OpKernelContext_Failure)(struct TF_OpKernelContext *, struct TF_Status *);

    struct TF_Tensor *(*NewTensor)(int dtype, const int64_t *dims, int ndim, void *data,
                                   size_t bytes, tf_deallocator *, void *argument);
    void (*DeleteTensor)(struct TF_Tensor *);
    int (*TensorType)(const struct TF_Tensor *);
    int (*NumDims)(const struct TF_Tensor *);
    int64_t (*Dim)(const struct TF_Tensor *, int index);
    void *(*TensorData)(const struct TF_Tensor *);
    size_t (*TensorByteSize)(const struct TF_Tensor *);

    struct TF_ShapeHandle *(*NewShapeHandle)(void);
    void (*DeleteShapeHandle)(struct TF_ShapeHandle *);
    int64_t (*ShapeInferenceContextNumInputs)(struct TF_ShapeInferenceContext *);
    void (*ShapeInferenceContextGetInput)(struct TF_ShapeInferenceContext *, int index,
                                          struct TF_ShapeHandle *, struct TF_Status *);
    void (*ShapeInferenceContextSetOutput)(struct TF_ShapeInferenceContext *, int index,
                                           struct TF_ShapeHandle *, struct TF_Status *);
    struct TF_ShapeHandle *(*ShapeInferenceContextScalar)(
        struct TF_ShapeInferenceContext *);
    struct TF_ShapeHandle *(*ShapeInferenceContextVectorFromSize)(
        struct TF_ShapeInferenceContext *, size_t size);
    int64_t (*ShapeInferenceContextRank)(struct TF_ShapeInferenceContext *,
                                         struct TF_ShapeHandle *);
    void (*ShapeInferenceContextSubshape)(struct TF_ShapeInferenceContext *,
                                          struct TF_ShapeHandle *, int64_t start,
                                          int64_t end, struct TF_ShapeHandle *result,
                                          struct TF_Status *);
    void (*ShapeInferenceContextConcatenateShapes)(struct TF_ShapeInferenceContext *,
                                                   struct TF_ShapeHandle *first,
                                                   struct TF_ShapeHandle *second,
                                                   struct TF_ShapeHandle *result,
                                                   struct TF_Status *);
};

/* The functions; valid once hvd_tensorflow_find has returned NULL. */
extern struct tensorflow tf;

/* Looks up all functions, once. Returns the name of one that this TensorFlow lacks, or
 * NULL. The functions for asynchronous kernels (before 2.13) and KernelBuilder_HostMemory
 * may be missing; they are NULL then. */
const char *hvd_tensorflow_find(void);

/* Returns TensorFlow's library, as a handle for dlsym. */
void *hvd_tensorflow_library(void);

/* Whether a node occupies its thread until all ranks have submitted the tensor:
 * TensorFlow before 2.13 has no asynchronous kernels in C. Call it after
 * hvd_tensorflow_find. Python calls it, too. */
HVD_EXPORT bool hvd_tensorflow_nodes_wait(void);

#endif
