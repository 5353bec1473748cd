/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a test of host tensors run on tensors of a GPU. */
#define ON_GPU_ITSELF
#include "tests/collectives/gpu/on_gpu.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/gpu/gpu_memory.h"

enum {
    ARENA_BYTES = 256 << 20,
    STAGE_BYTES = 16 << 20,
    MOST_TENSORS = 64,
};

/* One tensor of a request in flight. */
struct moved {
    char *input; /* on the device */
    char *output;
    void *host_output;
    size_t output_bytes;
    size_t row_bytes;
};

struct record {
    struct record *next;
    struct hvd_request *request;
    int count;
    bool is_over;
    struct moved moved[MOST_TENSORS];
};

static void *stream;
static char *arena, *stage; /* device memory, and pinned memory for inputs */
static size_t arena_used, stage_used;
static struct record *records;

int on_gpu_init(struct hvd_error *err)
{
    if (stream == NULL && !gpu_open()) {
        exit(1);
    }
    if (stream == NULL) {
        stream = gpu_stream();
        arena = gpu_memory(ARENA_BYTES);
        stage = gpu_host_memory(STAGE_BYTES);
    }
    return hvd_init(err);
}

int on_gpu_shutdown(void)
{
    return hvd_shutdown();
}

/* Allocates device memory. All of it is freed at once, when no request is in flight. */
static char *allocate(size_t bytes)
{
    char *memory = arena + arena_used;

    arena_used += (bytes + 255) / 256 * 256 + 256;
    if (arena_used > ARENA_BYTES) {
        fprintf(stderr, "# the test's device memory is full\n");
        exit(1);
    }
    return memory;
}

/* Copies an input through pinned memory: a copy from pageable memory would block the
 * program, but the collective is to start while the copy is under way. If the stage is
 * full, the copy blocks. */
static void copy_in(void *to, const void *from, size_t bytes)
{
    if (bytes <= STAGE_BYTES - stage_used) {
        memcpy(stage + stage_used, from, bytes);
        from = stage + stage_used;
        stage_used += bytes;
    }
    gpu_copy(to, from, bytes, stream);
}

static size_t bytes_of(const struct hvd_tensor *tensor, size_t *row_bytes)
{
    size_t bytes = hvd_dtype_bytes(tensor->dtype), row = bytes;

    for (int i = 0; i < tensor->ndim; i++) {
        bytes *= (size_t)tensor->shape[i];
        row *= i > 0 ? (size_t)tensor->shape[i] : 1;
    }
    *row_bytes = row;
    return bytes;
}

/* Allocates memory for input and output. An input that lies inside the output has the
 * same offset there on the device. */
static void allocate_both(struct moved *moved, const struct hvd_tensor *tensor,
                          size_t bytes)
{
    const char *input = tensor->input, *output = tensor->output;

    if (output != NULL) {
        moved->output =
            allocate(moved->output_bytes > bytes ? moved->output_bytes : bytes);
    }
    if (output != NULL && input >= output &&
        (input == output || input < output + moved->output_bytes)) {
        moved->input = moved->output + (input - output);
    } else if (input != NULL) {
        moved->input = allocate(bytes);
    }
}

/* Makes a copy of the tensor on the device. gets_bytes: size of the output; SIZE_MAX: as
 * large as the input. */
static struct hvd_tensor move_in(struct record *record, const struct hvd_tensor *tensor,
                                 size_t gets_bytes)
{
    struct hvd_tensor on_device = *tensor;
    struct moved *moved = &record->moved[record->count++];
    size_t bytes = bytes_of(tensor, &moved->row_bytes);

    moved->host_output = tensor->output;
    moved->output_bytes = tensor->output == NULL   ? 0
                          : gets_bytes == SIZE_MAX ? bytes
                                                   : gets_bytes;
    allocate_both(moved, tensor, bytes);
    if (tensor->input != NULL) {
        copy_in(moved->input, tensor->input, bytes);
    }
    on_device.input = moved->input;
    on_device.output = moved->output;
    on_device.device = gpu_number();
    on_device.stream = stream;
    return on_device;
}

static struct record *begin(const struct hvd_tensor *tensors, int count,
                            size_t gets_bytes, struct hvd_tensor *on_device)
{
    struct record *record = calloc(1, sizeof(*record));

    if (record == NULL || count > MOST_TENSORS) {
        fprintf(stderr, "# too many tensors\n");
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        on_device[i] = move_in(record, &tensors[i], gets_bytes);
    }
    return record;
}

static size_t room_of(const struct hvd_tensor *tensor)
{
    return tensor->output_bytes & ~HVD_OUTPUT_IF_FITS;
}

static int keep(struct record *record, int status, struct hvd_request **request)
{
    if (status != 0) {
        free(record);
        return status;
    }
    record->request = *request;
    record->next = records;
    records = record;
    return 0;
}

int on_gpu_allreduce(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                     double prescale, double postscale, int set,
                     struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor moved[MOST_TENSORS];
    struct record *record = begin(tensors, count, SIZE_MAX, moved);

    return keep(
        record,
        hvd_allreduce_start(moved, count, op, prescale, postscale, set, request, err),
        request);
}

int on_gpu_reducescatter(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                         double prescale, double postscale, int set,
                         struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor moved[MOST_TENSORS];
    int64_t rows = tensors[0].shape[0], size = hvd_size();
    int64_t mine = rows / size + (hvd_rank() < rows % size ? 1 : 0);
    size_t row_bytes;
    struct record *record;

    bytes_of(&tensors[0], &row_bytes);
    record = begin(tensors, count, (size_t)mine * row_bytes, moved);
    return keep(
        record,
        hvd_reducescatter_start(moved, count, op, prescale, postscale, set, request, err),
        request);
}

int on_gpu_allgather(const struct hvd_tensor *tensors, int count, int set,
                     struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor moved[MOST_TENSORS];
    struct record *record = begin(tensors, count, room_of(&tensors[0]), moved);

    return keep(record, hvd_allgather_start(moved, count, set, request, err), request);
}

int on_gpu_broadcast(const struct hvd_tensor *tensor, int root, int set,
                     struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor moved;
    struct record *record = begin(tensor, 1, SIZE_MAX, &moved);

    return keep(record, hvd_broadcast_start(&moved, root, set, request, err), request);
}

int on_gpu_alltoall(const struct hvd_tensor *tensor, const int32_t *splits, int nsplits,
                    int set, struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor moved;
    struct record *record = begin(tensor, 1, room_of(tensor), &moved);

    return keep(record, hvd_alltoall_start(&moved, splits, nsplits, set, request, err),
                request);
}

/* Also copies the old output, because the output of ranks other than the root must not
 * change. */
int on_gpu_reduce(const struct hvd_tensor *tensor, enum hvd_op op, double prescale,
                  double postscale, int root, int set, struct hvd_request **request,
                  struct hvd_error *err)
{
    struct hvd_tensor moved;
    struct record *record = begin(tensor, 1, SIZE_MAX, &moved);

    if (moved.output != moved.input) {
        copy_in(moved.output, tensor->output, record->moved[0].output_bytes);
    }
    return keep(
        record,
        hvd_reduce_start(&moved, op, prescale, postscale, root, set, request, err),
        request);
}

int on_gpu_gather(const struct hvd_tensor *tensor, int root, int set,
                  struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor moved;
    struct record *record = begin(tensor, 1, room_of(tensor), &moved);

    return keep(record, hvd_gather_start(&moved, root, set, request, err), request);
}

int on_gpu_scatter(const struct hvd_tensor *tensor, int root, int set,
                   struct hvd_request **request, struct hvd_error *err)
{
    int64_t rows = tensor->shape[0], size = hvd_size();
    int64_t mine = rows / size + (hvd_rank() < rows % size ? 1 : 0);
    struct hvd_tensor moved;
    struct record *record;
    size_t row_bytes;

    bytes_of(tensor, &row_bytes);
    record = begin(tensor, 1, (size_t)mine * row_bytes, &moved);
    return keep(record, hvd_scatter_start(&moved, root, set, request, err), request);
}

int on_gpu_send(const struct hvd_tensor *tensor, int dest, int64_t tag, int set,
                struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor sent = *tensor, moved;
    struct record *record;

    sent.output = NULL;
    record = begin(&sent, 1, 0, &moved);
    return keep(record, hvd_send_start(&moved, dest, tag, set, request, err), request);
}

int on_gpu_recv(const struct hvd_tensor *tensor, int source, int64_t tag, int set,
                struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_tensor received = *tensor, moved;
    struct record *record;

    received.input = NULL;
    record = begin(&received, 1, SIZE_MAX, &moved);
    return keep(record, hvd_recv_start(&moved, source, tag, set, request, err), request);
}

static struct record **find(const struct hvd_request *request)
{
    struct record **at = &records;

    while (*at != NULL && (*at)->request != request) {
        at = &(*at)->next;
    }
    return at;
}

int on_gpu_wait(struct hvd_request *request, struct hvd_error *err)
{
    struct record *record = *find(request);
    int status = hvd_wait_on(request, stream, -1, err);

    for (int i = 0;
         status == 0 && record != NULL && !record->is_over && i < record->count; i++) {
        gpu_copy(record->moved[i].host_output, record->moved[i].output,
                 record->moved[i].output_bytes, stream);
    }
    if (status == 0 && record != NULL && !record->is_over) {
        gpu_finish(stream);
        record->is_over = true;
    }
    return status;
}

int on_gpu_take(struct hvd_request *request, int index, void **data, int64_t *rows)
{
    struct record *record = *find(request);
    int status = hvd_request_rows(request, index, rows);
    size_t bytes;
    char *memory;

    if (status != 0) {
        return status;
    }
    bytes = (size_t)*rows * record->moved[index].row_bytes;
    memory = allocate(bytes);
    status = hvd_request_copy(request, index, memory, stream, NULL);
    if (status != 0) {
        return status;
    }
    *data = malloc(bytes > 0 ? bytes : 1);
    gpu_copy(*data, memory, bytes, stream);
    gpu_finish(stream);
    return 0;
}

void on_gpu_request_free(struct hvd_request *request)
{
    struct record **at = find(request);
    struct record *record = *at;

    hvd_request_free(request);
    if (record != NULL) {
        *at = record->next;
        free(record);
    }
    if (records == NULL) {
        gpu_finish(stream);
        arena_used = 0;
        stage_used = 0;
    }
}

void on_gpu_free(void *data)
{
    free(data);
}
