/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a test of host tensors run on tensors of a GPU: a program compiled with this
 * header in front of all others (-include) calls the functions below instead of hvd's.
 *
 * The input is copied to the device on the program's stream, and the collective starts at
 * once, behind this copy. The stream waits for the end of the collective, and then copies
 * the output back. If the library fails to wait for one of these, data are wrong: on the
 * stand-in almost always. */
#ifndef ON_GPU_H
#define ON_GPU_H

#include "collectives/hvd.h"

int on_gpu_init(struct hvd_error *err); /* ends the process if there is no GPU */
int on_gpu_shutdown(void);
int on_gpu_allreduce(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                     double prescale, double postscale, int set,
                     struct hvd_request **request, struct hvd_error *err);
int on_gpu_reducescatter(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                         double prescale, double postscale, int set,
                         struct hvd_request **request, struct hvd_error *err);
int on_gpu_allgather(const struct hvd_tensor *tensors, int count, int set,
                     struct hvd_request **request, struct hvd_error *err);
int on_gpu_broadcast(const struct hvd_tensor *tensor, int root, int set,
                     struct hvd_request **request, struct hvd_error *err);
int on_gpu_alltoall(const struct hvd_tensor *tensor, const int32_t *splits, int nsplits,
                    int set, struct hvd_request **request, struct hvd_error *err);
int on_gpu_reduce(const struct hvd_tensor *tensor, enum hvd_op op, double prescale,
                  double postscale, int root, int set, struct hvd_request **request,
                  struct hvd_error *err);
int on_gpu_gather(const struct hvd_tensor *tensor, int root, int set,
                  struct hvd_request **request, struct hvd_error *err);
int on_gpu_scatter(const struct hvd_tensor *tensor, int root, int set,
                   struct hvd_request **request, struct hvd_error *err);
int on_gpu_send(const struct hvd_tensor *tensor, int dest, int64_t tag, int set,
                struct hvd_request **request, struct hvd_error *err);
int on_gpu_recv(const struct hvd_tensor *tensor, int source, int64_t tag, int set,
                struct hvd_request **request, struct hvd_error *err);
int on_gpu_wait(struct hvd_request *request, struct hvd_error *err);
int on_gpu_take(struct hvd_request *request, int index, void **data, int64_t *rows);
void on_gpu_request_free(struct hvd_request *request);
void on_gpu_free(void *data);

#ifndef ON_GPU_ITSELF /* on_gpu.c calls hvd's functions */
#define hvd_init on_gpu_init
#define hvd_shutdown on_gpu_shutdown
#define hvd_allreduce_start on_gpu_allreduce
#define hvd_reducescatter_start on_gpu_reducescatter
#define hvd_allgather_start on_gpu_allgather
#define hvd_broadcast_start on_gpu_broadcast
#define hvd_alltoall_start on_gpu_alltoall
#define hvd_reduce_start on_gpu_reduce
#define hvd_gather_start on_gpu_gather
#define hvd_scatter_start on_gpu_scatter
#define hvd_send_start on_gpu_send
#define hvd_recv_start on_gpu_recv
#define hvd_wait on_gpu_wait
#define hvd_request_take on_gpu_take
#define hvd_request_free on_gpu_request_free
#define hvd_free on_gpu_free
#endif

#endif
