/* SPDX-License-Identifier: Apache-2.0 */
/* Counts steps, and compares sums of the ranks' variables in one of them. */
#include "contrib/python/native/tensorflow/start.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/env.h"

/* Scripts may broadcast the variables after the first batch, because only then all of
 * them exist, and a batch of models that train each other may be several steps. If nobody
 * broadcasts them, they still differ later: all ranks add the same to them. */
enum {
    DUE_STEP = 10,
};

/* The indices of struct comparison.sums, and of the input of HorovodStartCompare. */
enum {
    RANKS, /* 1 for each rank that knows its variables */
    SUM,
    SQUARE, /* of the sum */
    MAGNITUDE, /* the sum of the absolute values */
    SUMS,
};

struct comparison {
    struct comparison *next;
    char *name; /* of the tensor that the ranks reduce */
    int set;
    int64_t steps;
    struct hvd_request *request; /* NULL: has not been started, or has been evaluated */
    double sums[SUMS];
};

struct start_kernel {
    char *name;
    int set;
};

static struct {
    pthread_mutex_t lock;
    struct comparison *first;
    bool has_stopped;
    bool abstains;
    hvd_start_warning *warn;
} starts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Rounding differs between devices and, on some, from run to run: 1e-4 of the magnitude
 * is far above it, and far below the difference of two initial values. */
static bool do_differ(const double *sums)
{
    double variance = sums[RANKS] * sums[SQUARE] - sums[SUM] * sums[SUM];

    return variance > 1e-8 * sums[MAGNITUDE] * sums[MAGNITUDE];
}

/* --- the list; callers hold the lock ------------------------------------------------ */

static struct comparison *find_comparison(const struct start_kernel *kernel)
{
    struct comparison *each = starts.first;

    while (each != NULL &&
           (each->set != kernel->set || strcmp(each->name, kernel->name) != 0)) {
        each = each->next;
    }
    return each;
}

static struct comparison *add_comparison(const struct start_kernel *kernel)
{
    struct comparison *added = calloc(1, sizeof(*added));

    if (added == NULL) {
        return NULL;
    }
    added->name = strdup(kernel->name);
    if (added->name == NULL) {
        free(added);
        return NULL;
    }
    added->set = kernel->set;
    added->next = starts.first;
    starts.first = added;
    return added;
}

/* Frees the comparison, unless the library still uses its memory. */
static void drop_comparison(struct comparison *each)
{
    if (each->request == NULL || hvd_test(each->request, NULL) != HVD_INPROGRESS) {
        hvd_request_free(each->request);
        free(each->name);
        free(each);
    }
}

/* Returns whether the comparison has ended now, and the ranks' variables differ. */
static bool end_comparison(struct comparison *each)
{
    int status = each->request == NULL ? HVD_INPROGRESS : hvd_test(each->request, NULL);

    if (status == HVD_INPROGRESS) {
        return false;
    }
    hvd_request_free(each->request);
    each->request = NULL;
    return status == 0 && hvd_set_rank(each->set) == 0 &&
           (int)each->sums[RANKS] == hvd_set_size(each->set) && do_differ(each->sums);
}

/* --- kernels ------------------------------------------------------------------------ */

void *hvd_start_create(struct TF_OpKernelConstruction *construction)
{
    struct TF_Status *status = tf.NewStatus();
    struct start_kernel *kernel = calloc(1, sizeof(*kernel));
    int32_t entries = 0, bytes = 0;
    int64_t set = 0;

    tf.OpKernelConstruction_GetAttrSize(construction, "tensor_name", &entries, &bytes,
                                        status);
    if (tf.GetCode(status) == TF_OK) {
        tf.OpKernelConstruction_GetAttrInt64(construction, "process_set_id", &set,
                                             status);
    }
    if (kernel != NULL && tf.GetCode(status) == TF_OK) {
        kernel->set = (int)set;
        kernel->name = calloc(1, (size_t)bytes + 1);
    }
    if (kernel != NULL && kernel->name != NULL) {
        tf.OpKernelConstruction_GetAttrString(construction, "tensor_name", kernel->name,
                                              (size_t)bytes, status);
    } else if (tf.GetCode(status) == TF_OK) {
        tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
    }
    if (tf.GetCode(status) != TF_OK) {
        tf.OpKernelConstruction_Failure(construction, status);
        hvd_start_delete(kernel);
        kernel = NULL;
    }
    tf.DeleteStatus(status);
    return kernel;
}

void hvd_start_delete(void *argument)
{
    struct start_kernel *kernel = argument;

    if (kernel != NULL) {
        free(kernel->name);
        free(kernel);
    }
}

static void set_output(struct TF_OpKernelContext *context, int32_t value)
{
    struct TF_Status *status = tf.NewStatus();
    struct TF_Tensor *output =
        tf.AllocateOutput(context, 0, TF_INT32, NULL, 0, sizeof(value), status);

    if (tf.GetCode(status) == TF_OK) {
        *(int32_t *)tf.TensorData(output) = value;
        tf.DeleteTensor(output);
    } else {
        tf.OpKernelContext_Failure(context, status);
    }
    tf.DeleteStatus(status);
}

void hvd_start_compute_step(void *argument, struct TF_OpKernelContext *context)
{
    const struct start_kernel *kernel = argument;
    bool is_due = false, differ = false;
    struct comparison *found;
    hvd_start_warning *warn;

    pthread_mutex_lock(&starts.lock);
    warn = starts.warn;
    found = starts.has_stopped ? NULL : find_comparison(kernel);
    if (found == NULL && !starts.has_stopped) {
        found = add_comparison(kernel);
    }
    if (found != NULL) {
        found->steps++;
        is_due = found->steps == DUE_STEP;
        differ = end_comparison(found);
    }
    pthread_mutex_unlock(&starts.lock);
    if (differ && warn != NULL) {
        warn(kernel->name, kernel->set);
    }
    set_output(context, is_due);
}

/* Starts the allreduce of these sums. If that fails, nothing is compared: without an err,
 * hvdrun does not take it for the reason why a script ends. */
static void start_comparison(struct comparison *each, const double *sums)
{
    const char *wanted = getenv(HVD_ENV_CHECK_PARAMETERS);
    static const int64_t shape[] = {SUMS};
    struct hvd_tensor tensor = {.input = each->sums,
                                .output = each->sums,
                                .shape = shape,
                                .ndim = 1,
                                .dtype = HVD_FLOAT64,
                                .device = HVD_DEVICE_CPU};
    size_t bytes = strlen(each->name) + sizeof("start.");
    char *name = malloc(bytes);

    if (name == NULL) {
        return;
    }
    snprintf(name, bytes, "start.%s", each->name);
    tensor.name = name;
    memset(each->sums, 0, sizeof(each->sums));
    if (!starts.abstains && (wanted == NULL || strcmp(wanted, "0") != 0)) {
        memcpy(each->sums, sums, sizeof(each->sums));
    }
    hvd_allreduce_start(&tensor, 1, HVD_SUM, 1.0, 1.0, each->set, &each->request, NULL);
    free(name);
}

void hvd_start_compute_compare(void *argument, struct TF_OpKernelContext *context)
{
    const struct start_kernel *kernel = argument;
    struct TF_Status *status = tf.NewStatus();
    struct TF_Tensor *input = NULL;
    struct comparison *found;

    tf.GetInput(context, 0, &input, status);
    pthread_mutex_lock(&starts.lock);
    found = starts.has_stopped ? NULL : find_comparison(kernel);
    if (input != NULL && tf.TensorByteSize(input) == sizeof(found->sums) &&
        found != NULL && found->request == NULL) {
        start_comparison(found, tf.TensorData(input));
    }
    pthread_mutex_unlock(&starts.lock);
    if (input != NULL) {
        tf.DeleteTensor(input);
    }
    tf.DeleteStatus(status);
    set_output(context, 0);
}

/* --- the job ------------------------------------------------------------------------ */

void hvd_start_stop(void)
{
    pthread_mutex_lock(&starts.lock);
    starts.has_stopped = true;
    pthread_mutex_unlock(&starts.lock);
}

void hvd_tensorflow_start_warn(hvd_start_warning *warn)
{
    pthread_mutex_lock(&starts.lock);
    starts.warn = warn;
    pthread_mutex_unlock(&starts.lock);
}

void hvd_tensorflow_start_forget(int set)
{
    pthread_mutex_lock(&starts.lock);
    for (struct comparison **at = &starts.first; *at != NULL;) {
        struct comparison *each = *at;

        if (set < 0 || each->set == set) {
            *at = each->next;
            drop_comparison(each);
        } else {
            at = &each->next;
        }
    }
    if (set < 0) {
        starts.has_stopped = false;
        starts.abstains = false;
    }
    pthread_mutex_unlock(&starts.lock);
}

void hvd_tensorflow_start_abstain(void)
{
    pthread_mutex_lock(&starts.lock);
    starts.abstains = true;
    pthread_mutex_unlock(&starts.lock);
}
