/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface in a single process: the calls that it refuses, and their error
 * texts. */
#include "collectives/hvd.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

static float value = 3, sum;

static struct hvd_tensor scalar(const char *name)
{
    return (struct hvd_tensor){.name = name,
                               .input = &value,
                               .output = &sum,
                               .dtype = HVD_FLOAT32,
                               .device = HVD_DEVICE_CPU};
}

static void test_before_init(void)
{
    struct hvd_tensor tensor = scalar("x");
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    tap_ok(hvd_is_initialized() == 0 && hvd_rank() == HVD_ERR_STATE &&
               hvd_size() == HVD_ERR_STATE && hvd_host(0) == NULL,
           "before init, ranks and sizes are an error");
    tap_ok(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) ==
                   HVD_ERR_STATE &&
               strcmp(err.text, "Horovod has not been initialized; use hvd.init().") == 0,
           "a collective before init is refused with Horovod's words");
    tap_ok(hvd_timeline_start("t.json", 0, &err) == HVD_ERR_STATE &&
               hvd_timeline_stop(&err) == HVD_ERR_STATE,
           "before init, the timeline is an error");
    tap_ok(hvd_elastic() == HVD_ERR_STATE && hvd_elastic_updates() == HVD_ERR_STATE &&
               hvd_elastic_ready() == HVD_ERR_STATE,
           "before init, functions of elastic jobs are an error");
    tap_ok(hvd_shutdown() == 0, "shutdown before init does nothing");
}

static void test_alone(void)
{
    struct hvd_error err = {0};

    tap_ok(hvd_init(&err) == 0 && hvd_init(&err) == 0,
           "init works, and a second call does nothing");
    tap_ok(hvd_rank() == 0 && hvd_size() == 1 && hvd_local_rank() == 0 &&
               hvd_local_size() == 1 && hvd_cross_rank() == 0 && hvd_cross_size() == 1 &&
               hvd_is_homogeneous() == 1,
           "a process without a launcher is rank 0 of 1");
    tap_ok(hvd_host(0) != NULL && hvd_host(1) == NULL,
           "a single rank knows its own host and no other");
}

static void test_signals(void)
{
    const char *promise = "no signal handler of a library is left after init";
#ifdef __SANITIZE_ADDRESS__
    tap_skip(promise, "the sanitizer has handlers of its own");
#else
    struct sigaction action;

    tap_ok(sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == SIG_DFL, "%s",
           promise);
#endif
}

/* Starts one allreduce, which must be refused with this status and text. */
static void refuse(struct hvd_tensor tensor, enum hvd_op op, int set, int status,
                   const char *text)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int got = hvd_allreduce_start(&tensor, 1, op, 1, 1, set, &request, &err);

    if (!tap_ok(got == status && strstr(err.text, text) != NULL && request == NULL,
                "refused: %s", text)) {
        tap_note("got %d %s", got, err.text);
    }
}

static void test_refusals(void)
{
    int64_t huge[2] = {INT64_MAX / 2, 3}, negative = -1;
    struct hvd_tensor tensor = scalar("t");

    tensor.dtype = HVD_DTYPE_COUNT;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG, "tensor t: there is no dtype 13");
    tensor = scalar(NULL);
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG, "a tensor needs a name");
    refuse(scalar("hvd.x"), HVD_SUM, 0, HVD_ERR_ARG,
           "tensor hvd.x: names that begin with hvd. are the library's own");
    tensor = scalar("t");
    tensor.dtype = HVD_BOOL;
    refuse(tensor, HVD_AVERAGE, 0, HVD_ERR_ARG, "there is no average of booleans");
    tensor = scalar("t");
    tensor.dtype = HVD_INT32;
    refuse(tensor, HVD_ADASUM, 0, HVD_ERR_ARG,
           "tensor t: Adasum takes float16, bfloat16, float32 and float64, not int32");
    tensor = scalar("t");
    refuse(tensor, HVD_OP_COUNT, 0, HVD_ERR_ARG, "there is no reduction op 9");
    refuse(tensor, HVD_SUM, 7, HVD_ERR_ARG,
           "Allreduce: Process set provided does not exist, or has not been registered.");
    tensor.device = 0;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_UNSUPPORTED, "tensor t is on GPU 0");
    tensor = scalar("t");
    tensor.ndim = 1;
    tensor.shape = &negative;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG, "tensor t: dimension 0 is -1");
    tensor.ndim = 2;
    tensor.shape = huge;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG, "larger than the address space");
    huge[0] = 0;
    huge[1] = INT64_MAX / 8;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG, "larger than the address space");
    tensor.ndim = HVD_MAX_DIMS + 1;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG,
           "tensor t has 65 dimensions: expected 0 to 64");
}

static struct hvd_request *unmade;
static struct hvd_error why;

/* Checks that a call was refused with this status and text. The call must have got
 * &unmade for its request, and &why for its error. */
static void says(int status, const char *text)
{
    if (!tap_ok(status == HVD_ERR_ARG && strstr(why.text, text) != NULL && unmade == NULL,
                "refused: %s", text)) {
        tap_note("got %d %s", status, why.text);
    }
}

static void test_wire_refusals(void)
{
    struct hvd_tensor tensor = scalar("t");

    tensor.wire = HVD_FLOAT64;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG,
           "tensor t: wire type 8 is not 0, 6 (float16) or 10 (bfloat16)");
    tensor.wire = -1;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG, "tensor t: wire type -1 is not 0");
    tensor.wire = HVD_FLOAT16;
    refuse(
        tensor, HVD_MIN, 0, HVD_ERR_ARG,
        "tensor t: Allreduce with wire type float16 and op Min: only Allreduce with Sum "
        "or Average takes a wire type");
    refuse(tensor, HVD_ADASUM, 0, HVD_ERR_ARG, "with wire type float16 and op Adasum");
    tensor.dtype = HVD_FLOAT64;
    refuse(tensor, HVD_AVERAGE, 0, HVD_ERR_ARG,
           "tensor t is float64: wire type float16 needs a float32 tensor");
    tensor.dtype = HVD_FLOAT16;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG,
           "tensor t is float16: wire type float16 needs");
    tensor.dtype = HVD_FLOAT32;
    says(hvd_broadcast_start(&tensor, 0, 0, &unmade, &why),
         "tensor t: Broadcast with wire type float16");
    says(hvd_allgather_start(&tensor, 1, 0, &unmade, &why),
         "tensor t: Allgather with wire type float16");
}

static void test_missing_memory(void)
{
    int64_t none = 0, one = 1;
    struct hvd_tensor tensor = scalar("t");
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    tensor.input = NULL;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG,
           "tensor t has elements, but its input is NULL");
    tensor = scalar("t");
    tensor.output = NULL;
    refuse(tensor, HVD_SUM, 0, HVD_ERR_ARG,
           "tensor t has elements, but its output is NULL");
    tensor.input = NULL;
    tensor.shape = &none;
    tensor.ndim = 1;
    tap_ok(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) == 0 &&
               hvd_wait(request, &err) == 0,
           "a tensor without elements needs no memory");
    hvd_request_free(request);
    tensor = scalar("t");
    tensor.output = NULL;
    tensor.shape = &one;
    tensor.ndim = 1;
    says(hvd_reducescatter_start(&tensor, 1, HVD_SUM, 1, 1, 0, &unmade, &why),
         "tensor t has elements, but its output is NULL");
}

static void test_other_refusals(void)
{
    int64_t three = 3;
    int32_t splits[2] = {1, 1}, much = 4;
    struct hvd_tensor tensor = scalar("t");

    tensor.ndim = 1;
    tensor.shape = &three;
    says(hvd_broadcast_start(&tensor, 1, 0, &unmade, &why),
         "broadcast received invalid root rank 1 for provided process set");
    says(hvd_alltoall_start(&tensor, splits, 2, 0, &unmade, &why),
         "Number of entries in splits does not equal number of workers.");
    says(hvd_alltoall_start(&tensor, &much, 1, 0, &unmade, &why),
         "Sum of splits entries is greater than the first dimension of tensor.");
    says(hvd_reducescatter_start(&tensor, 1, HVD_ADASUM, 1, 1, 0, &unmade, &why),
         "tensor t: there is no Reducescatter with op Adasum; use Average or Sum");
}

static void test_bitwise_refusals(void)
{
    struct hvd_tensor tensor = scalar("t");

    refuse(tensor, HVD_BXOR, 0, HVD_ERR_ARG,
           "tensor t is float32: the bitwise ops take integers and bool");
    tensor.dtype = HVD_INT32;
    says(hvd_allreduce_start(&tensor, 1, HVD_BOR, 1, 0.5, 0, &unmade, &why),
         "tensor t: the bitwise ops take no factors, but prescale is 1 and postscale "
         "0.5: give 1.0");
}

static void test_root_refusals(void)
{
    struct hvd_tensor tensor = scalar("t");

    says(hvd_gather_start(&tensor, 1, 0, &unmade, &why),
         "gather received invalid root rank 1 for provided process set");
    says(hvd_reduce_start(&tensor, HVD_ADASUM, 1, 1, 0, 0, &unmade, &why),
         "tensor t: there is no Reduce with op Adasum; use Average or Sum");
    tensor.output = NULL;
    says(hvd_reduce_start(&tensor, HVD_SUM, 1, 1, 0, 0, &unmade, &why),
         "tensor t has elements, but its output is NULL");
    tensor.input = NULL;
    says(hvd_scatter_start(&tensor, 0, 0, &unmade, &why),
         "tensor t has elements, but its input is NULL");
}

static void test_room_refusals(void)
{
    int64_t one = 1;
    struct hvd_tensor tensor = scalar("t");

    tensor.ndim = 1;
    tensor.shape = &one;
    tensor.output = NULL;
    tensor.output_bytes = 4;
    says(hvd_allgather_start(&tensor, 1, 0, &unmade, &why),
         "tensor t has output_bytes 4, but its output is NULL");
    tensor.output = &value;
    says(hvd_alltoall_start(&tensor, NULL, 0, 0, &unmade, &why),
         "tensor t: input and output of an alltoall overlap");
}

/* Two tensors of one request have the same name, so the whole request is refused. */
static void test_names_of_a_refused_request(void)
{
    struct hvd_tensor twice[] = {scalar("a"), scalar("b"), scalar("a")};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    tap_ok(hvd_allreduce_start(twice, 3, HVD_SUM, 1, 1, 0, &request, &err) ==
                   HVD_ERR_ARG &&
               strstr(err.text, "same name as another tensor") != NULL,
           "a request with a name that is in flight is refused");
    tap_ok(hvd_allreduce_start(twice, 2, HVD_SUM, 1, 1, 0, &request, &err) == 0 &&
               hvd_wait(request, &err) == 0,
           "no name of a refused request stays in flight");
    hvd_request_free(request);
}

static void test_fork(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct hvd_tensor tensor = scalar("child");
        struct hvd_request *request = NULL;
        struct hvd_error err = {0};
        int refused = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);

        hvd_shutdown();
        _exit(refused == HVD_ERR_STATE && strstr(err.text, "forked") != NULL ? 0 : 1);
    }
    waitpid(child, &status, 0);
    tap_ok(status == 0 && hvd_is_initialized() == 1,
           "a forked child is refused, and its shutdown does not affect the rank");
}

static void test_shutdown_ends_requests(void)
{
    struct hvd_tensor tensor = scalar("last");
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    tap_ok(hvd_allreduce_start(&tensor, 1, HVD_SUM, 2, 0.5, 0, &request, &err) == 0 &&
               hvd_wait(request, &err) == 0 && sum == 3,
           "a single rank reduces with itself");
    tap_ok(hvd_request_last_rank(request) == HVD_ERR_STATE &&
               hvd_request_set(request) == HVD_ERR_STATE,
           "only a join has a last rank, and only the addition of a set has a set");
    hvd_request_free(request);
    hvd_shutdown();
    tap_ok(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) ==
               HVD_ERR_STATE,
           "after shutdown collectives are refused");
    tap_ok(hvd_init(&err) == 0 && hvd_size() == 1, "init works again after shutdown");
    hvd_shutdown();
}

int main(void)
{
    test_before_init();
    test_alone();
    test_signals();
    test_refusals();
    test_wire_refusals();
    test_missing_memory();
    test_other_refusals();
    test_bitwise_refusals();
    test_room_refusals();
    test_root_refusals();
    test_names_of_a_refused_request();
    test_fork();
    test_shutdown_ends_requests();
    return tap_done();
}
