/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the attributes of a node, once. */
#include "contrib/python/native/tensorflow/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/python/native/tensorflow/call.h"

/* Reads attributes until one cannot be read; `status` then has the reason. */
struct reader {
    struct TF_OpKernelConstruction *construction;
    struct TF_Status *status;
};

static bool is_good(const struct reader *reader)
{
    return tf.GetCode(reader->status) == TF_OK;
}

static int64_t read_number(struct reader *reader, const char *name)
{
    int64_t value = 0;

    if (is_good(reader)) {
        tf.OpKernelConstruction_GetAttrInt64(reader->construction, name, &value,
                                             reader->status);
    }
    return value;
}

static bool read_flag(struct reader *reader, const char *name)
{
    unsigned char value = 0;

    if (is_good(reader)) {
        tf.OpKernelConstruction_GetAttrBool(reader->construction, name, &value,
                                            reader->status);
    }
    return value != 0;
}

/* Returns the number of entries of a list, or the length of a string in bytes. */
static int read_size(struct reader *reader, const char *name, bool is_list)
{
    int32_t entries = 0, bytes = 0;

    if (is_good(reader)) {
        tf.OpKernelConstruction_GetAttrSize(reader->construction, name, &entries, &bytes,
                                            reader->status);
    }
    return is_list ? entries : bytes;
}

/* Returns a string that the caller frees, or NULL if there is no memory. */
static char *read_text(struct reader *reader, const char *name)
{
    int bytes = read_size(reader, name, false);
    char *text = calloc(1, (size_t)bytes + 1);

    if (text == NULL) {
        tf.SetStatus(reader->status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
    } else if (is_good(reader) && bytes > 0) {
        tf.OpKernelConstruction_GetAttrString(reader->construction, name, text,
                                              (size_t)bytes, reader->status);
    }
    return text;
}

/* Reads a factor, which is text because TensorFlow's attributes have no double. */
static double read_factor(struct reader *reader, const char *name)
{
    char *text = read_text(reader, name);
    double factor = text != NULL ? strtod(text, NULL) : 0;

    free(text);
    return factor;
}

/* Returns the name of the node, with its scope or without. The caller frees it. */
static char *node_name(struct reader *reader, bool ignores_scope)
{
    struct TF_StringView name = tf.OpKernelConstruction_GetName(reader->construction);
    size_t first = name.len;

    while (first > 0 && !(ignores_scope && name.data[first - 1] == '/')) {
        first--;
    }
    return strndup(name.data + first, name.len - first);
}

/* Returns the tensor name that the caller of the operation gave, otherwise the node's
 * name. */
static char *base_name(struct reader *reader)
{
    bool ignores_scope = read_flag(reader, "ignore_name_scope");
    char *given = read_text(reader, "tensor_name");

    if (given != NULL && given[0] == '\0') {
        free(given);
        return node_name(reader, ignores_scope);
    }
    return given;
}

static char *member_name(const char *base, int index, int count)
{
    size_t bytes = strlen(base) + 32;
    char *name = malloc(bytes);

    if (name != NULL && count > 1) {
        snprintf(name, bytes, "%s_%dof%d", base, index + 1, count);
    } else if (name != NULL) {
        snprintf(name, bytes, "%s", base);
    }
    return name;
}

static void name_tensors(struct reader *reader, struct hvd_tf_kernel *kernel)
{
    char *base = base_name(reader);

    kernel->names = calloc((size_t)kernel->count + 1, sizeof(kernel->names[0]));
    for (int i = 0; kernel->names != NULL && base != NULL && i < kernel->count; i++) {
        kernel->names[i] = member_name(base, i, kernel->count);
        if (kernel->names[i] == NULL) {
            tf.SetStatus(reader->status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
        }
    }
    if (kernel->names == NULL || base == NULL) {
        tf.SetStatus(reader->status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
    }
    free(base);
}

static bool has_list(enum hvd_tf_kind kind)
{
    return kind == HVD_TF_ALLREDUCE || kind == HVD_TF_ALLGATHER ||
           kind == HVD_TF_REDUCESCATTER;
}

static void read_kernel(struct reader *reader, struct hvd_tf_kernel *kernel)
{
    kernel->blocks = read_flag(reader, "blocks");
    if (kernel->kind == HVD_TF_JOIN) {
        return;
    }
    kernel->count = has_list(kernel->kind) ? read_size(reader, "T", true) : 1;
    kernel->set = (int)read_number(reader, "process_set_id");
    name_tensors(reader, kernel);
    if (kernel->kind == HVD_TF_BROADCAST) {
        kernel->root = (int)read_number(reader, "root_rank");
    }
    if (kernel->kind == HVD_TF_ALLREDUCE || kernel->kind == HVD_TF_REDUCESCATTER) {
        kernel->op = (enum hvd_op)read_number(reader, "reduce_op");
        kernel->prescale = read_factor(reader, "prescale_factor");
        kernel->postscale = read_factor(reader, "postscale_factor");
    }
}

struct hvd_tf_kernel *hvd_tf_kernel_create(struct TF_OpKernelConstruction *construction,
                                           enum hvd_tf_kind kind)
{
    struct reader reader = {.construction = construction, .status = tf.NewStatus()};
    struct hvd_tf_kernel *kernel = calloc(1, sizeof(*kernel));

    if (kernel != NULL) {
        kernel->kind = kind;
        read_kernel(&reader, kernel);
    } else {
        tf.SetStatus(reader.status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
    }
    if (!is_good(&reader)) {
        tf.OpKernelConstruction_Failure(construction, reader.status);
        hvd_tf_kernel_destroy(kernel);
        kernel = NULL;
    }
    tf.DeleteStatus(reader.status);
    return kernel;
}

void hvd_tf_kernel_destroy(void *argument)
{
    struct hvd_tf_kernel *kernel = argument;

    if (kernel != NULL) {
        hvd_tf_call_destroy(atomic_load(&kernel->idle));
        for (int i = 0; kernel->names != NULL && i < kernel->count; i++) {
            free(kernel->names[i]);
        }
        free(kernel->names);
        free(kernel);
    }
}
