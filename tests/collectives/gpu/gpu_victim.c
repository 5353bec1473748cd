/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which rank RANK dies in the middle of a collective of GPU tensors, on the
 * stand-in:
 *   gpu_victim RANK                        dies when all ranks have launched it
 *   gpu_victim RANK connect                dies while NCCL connects
 *   gpu_victim RANK [FUNCTION:]CALL        dies in this call (its number) of FUNCTION, or
 *                                          of CUDA and NCCL, while a tensor is reduced
 *                                          in pieces
 *   gpu_victim RANK pair:[FUNCTION:]CALL   the same, while hvd measures whether to pack
 *                                          two tensors
 *   gpu_victim RANK full                   the same as the first, while the memory of
 *                                          all ranks is full and they gather another
 *                                          tensor
 * The other ranks print the errors they get, in the format of victim.c, and that their
 * own stream, which waits for the collective, continues. With "connect" they also print
 * whether shutdown leaves a thread or any GPU object; with CALL, whether the library has
 * stopped writing to their tensors. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/survivor.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    COUNT = 1 << 18,
};

static void *stream, *memory;
static int dimensions; /* dimensions of the tensors: 0, or 1 with COUNT elements */
static bool has_pair; /* use two tensors of half the size */
static bool is_full; /* the device gets full */

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

static int start_pair(const struct hvd_tensor *tensor, struct hvd_request **request,
                      struct hvd_error *err)
{
    static const int64_t half[] = {COUNT / 2};
    struct hvd_tensor pair[] = {*tensor, *tensor};

    pair[0].shape = pair[1].shape = half;
    pair[1].name = "half";
    pair[1].input = pair[1].output = (double *)memory + COUNT / 2;
    return hvd_allreduce_start(pair, 2, HVD_SUM, 1, 1, 0, request, err);
}

static int start(const char *name, struct hvd_request **request, struct hvd_error *err)
{
    static const int64_t shape[] = {COUNT};
    struct hvd_tensor tensor =
        gpu_tensor(name, HVD_FLOAT64, shape, dimensions, memory, memory, stream);

    return has_pair ? start_pair(&tensor, request, err)
                    : hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, request, err);
}

static int allreduce(const char *name, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    int status = start(name, &request, err);

    return survivor_wait(status, request, err);
}

/* Starts to gather `rows` rows of each rank into memory of the library. */
static int start_gather(int64_t rows, struct hvd_request **request)
{
    struct hvd_tensor tensor =
        gpu_tensor("gathered", HVD_FLOAT64, &rows, 1, memory, NULL, stream);
    struct hvd_error err = {0};

    return hvd_allgather_start(&tensor, 1, 0, request, &err);
}

/* Leaves the library with device memory that no batch uses. */
static bool leave_unused(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool is_good = start_gather(COUNT / 8, &request) == 0 && hvd_wait(request, &err) == 0;

    hvd_request_free(request);
    return is_good;
}

/* Starts to gather more than before, on a device without memory for that. */
static void start_on_full(struct hvd_request **request)
{
    fake_gpu_limit(1, 0);
    start_gather(COUNT, request);
}

static bool is_left_alone(void)
{
    static double before[COUNT], after[COUNT];
    const struct timespec moment = {.tv_nsec = 30000000};

    gpu_copy(before, memory, sizeof(before), stream);
    gpu_finish(stream);
    nanosleep(&moment, NULL);
    gpu_copy(after, memory, sizeof(after), stream);
    gpu_finish(stream);
    return memcmp(before, after, sizeof(before)) == 0;
}

/* Whether the result was overwritten with NaN, so that no caller can use it. */
static bool is_poisoned(void)
{
    double result = 0;

    gpu_copy(&result, memory, sizeof(result), stream);
    gpu_finish(stream);
    return result != result;
}

static void sleep_long(void *argument)
{
    (void)argument;
    sleep(60);
}

/* Opens a pipe, named by VICTIM_PIPE, into which each rank writes a byte when it has
 * launched its collective. */
static int open_pipe(void)
{
    const char *path = getenv("VICTIM_PIPE");

    return path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

static void tell_victim(void)
{
    int pipe = open_pipe();

    if (pipe >= 0 && write(pipe, "", 1) != 1) {
        perror("the victim's pipe");
    }
    close(pipe);
}

static void await_others(void)
{
    int pipe = open_pipe();
    char byte;

    for (int i = 1; pipe >= 0 && i < hvd_size(); i++) {
        if (read(pipe, &byte, 1) != 1) {
            perror("the victim's pipe");
        }
    }
}

/* Dies with a collective that is launched on the host, but never begins on the device. */
static void die(void)
{
    struct hvd_request *request = NULL, *more = NULL;
    struct hvd_error err = {0};

    fake_gpu_enqueue(stream, sleep_long, NULL);
    if (start("pending", &request, &err) == 0) {
        if (is_full) {
            start_on_full(&more);
        }
        hvd_wait_on(request, stream, -1, &err);
    }
    await_others();
    kill(getpid(), SIGKILL);
}

/* Dies in the given call of this function; NULL: of any function. */
static void die_in(const char *function, long call)
{
    struct hvd_error err = {0};

    fake_gpu_die_in(function, call);
    allreduce("pending", &err);
}

/* Parses "[FUNCTION:]CALL". Returns the call; without FUNCTION, *function keeps its
 * value. */
static long split(char *text, const char **function)
{
    char *colon = strchr(text, ':');

    if (colon == NULL) {
        return atol(text);
    }
    *colon = '\0';
    *function = text;
    return atol(colon + 1);
}

/* Dies in NCCL's connection, after all ranks have agreed on the collective. */
static void die_connecting(void)
{
    struct hvd_error err = {0};

    setenv("FAKE_NCCL_DIES", "1", 1);
    allreduce("pending", &err);
}

static int count_threads(void)
{
    return count_entries("/proc/self/task") - 2; /* without . and . */
}

/* Waits until there are no more threads than wanted: a joined thread may be visible a
 * moment longer, and UCX's module fuse starts a short-lived thread when it is loaded. */
static int await_threads(int wanted)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int count = count_threads();

    for (int i = 0; i < 6000 && count > wanted; i++) {
        nanosleep(&moment, NULL);
        count = count_threads();
    }
    return count;
}

static void print_left(int rank, const struct fake_live *before, int threads)
{
    struct fake_live live;
    int left = await_threads(threads) - threads;

    fake_gpu_live(&live);
    left += (live.streams - before->streams) + (live.contexts - before->contexts) +
            (live.events - before->events) + (live.modules - before->modules) +
            live.comms;
    printf("%s %d: %d\n", left == 0 ? "nothing" : "left", rank, left);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : 0;
    bool connects = argc > 2 && strcmp(argv[2], "connect") == 0;
    bool pairs = argc > 2 && strncmp(argv[2], "pair:", 5) == 0;
    const char *function = NULL;
    long call = 0;
    struct fake_live before;
    struct hvd_request *request = NULL, *more = NULL;
    struct hvd_error err = {0};
    double begin;
    int rank, threads, status;

    is_full = argc > 2 && strcmp(argv[2], "full") == 0;
    if (argc > 2 && !connects && !is_full) {
        call = split(argv[2] + (pairs ? 5 : 0), &function);
    }
    if (!gpu_open()) {
        return 1;
    }
    stream = gpu_stream();
    memory = gpu_memory(COUNT * sizeof(double));
    dimensions = call > 0 ? 1 : 0;
    fake_gpu_live(&before);
    threads = await_threads(1 + before.streams);
    rank = survivor_init();
    if (is_full && !leave_unused()) {
        return 1;
    }
    status = connects ? 0 : allreduce("life", &err);
    begin = survivor_now();
    has_pair = pairs;
    if (rank == victim && call > 0) {
        die_in(function, call);
    } else if (rank == victim) {
        (connects ? die_connecting : die)();
    }
    if (status == 0) {
        status = start("pending", &request, &err);
    }
    if (status == 0 && is_full) {
        start_on_full(&more);
    }
    if (status == 0) {
        status = hvd_wait_on(request, stream, -1, &err);
    }
    if (status == 0) {
        printf("launched %d\n", rank);
        tell_victim();
        status = hvd_wait(request, &err);
    }
    survivor_pending(begin, status, &err);
    hvd_request_free(request);
    hvd_request_free(more);
    if (call > 0 && is_left_alone()) {
        printf("alone %d: its tensor\n", rank);
    }
    gpu_finish(stream);
    printf("stream %d: ended\n", rank);
    if (call == 0 && is_poisoned()) {
        printf("poisoned %d: its tensor\n", rank);
    }
    status = allreduce("next", &err);
    status = survivor_next(status, &err);
    if (connects) {
        print_left(rank, &before, threads);
    }
    return status;
}
