/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of the jobs in tests/rdma: rdma_rank RANK SIZE FOLDER CASE. The ranks find each
 * other through files in FOLDER, so that no launcher ends the others when one dies:
 *
 *   collectives   each collective once, for several sizes; all results are checked
 *   death         the last rank kills itself between two allreduces; the others expect
 *                 an error
 *   endless       allreduces until an error ends them, because a node is gone
 *   fork          a child is forked, as by a data loader, while hvd's network card may
 *                 still hold the pages of a tensor; parent and child write to it
 *
 * Rank 0 prints lines of TAP, without a plan; each rank ends with 0 if all was as
 * expected. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/clock.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    MOST = 300000, /* elements; 1.2 MB as float32 */
    DEATH_STEPS = 5,
    FORK_ROUNDS = 4,
    POLL_US = 20000,
    EXIT_WRONG = 1,
};

static struct {
    int rank, size;
    const char *folder;
    float *input, *output; /* [MOST] */
} self;

/* --- a store of files --- */

static void name_file(char *path, size_t size, const char *key, const char *suffix)
{
    snprintf(path, size, "%s/%s%s", self.folder, key, suffix);
}

static int put_file(void *context, const char *key, const void *value, size_t bytes,
                    struct hvd_error *err)
{
    char part[512], path[512];
    FILE *file;
    bool is_written;

    (void)context;
    (void)err;
    name_file(part, sizeof(part), key, ".part");
    name_file(path, sizeof(path), key, "");
    file = fopen(part, "we");
    if (file == NULL) {
        return EXIT_WRONG;
    }
    is_written = fwrite(value, 1, bytes, file) == bytes;
    return fclose(file) == 0 && is_written ? rename(part, path) : EXIT_WRONG;
}

static int get_file(void *context, const char *key, int timeout_ms, void **value,
                    size_t *bytes, struct hvd_error *err)
{
    char path[512];
    FILE *file;
    long end;

    (void)context;
    (void)timeout_ms;
    (void)err;
    name_file(path, sizeof(path), key, "");
    file = fopen(path, "re");
    if (file == NULL) {
        usleep(POLL_US);
        return HVD_INPROGRESS;
    }
    fseek(file, 0, SEEK_END);
    end = ftell(file);
    rewind(file);
    *value = malloc((size_t)end + 1);
    *bytes = *value != NULL ? fread(*value, 1, (size_t)end, file) : 0;
    fclose(file);
    return *value != NULL ? 0 : EXIT_WRONG;
}

static void begin(void)
{
    const struct hvd_store store = {.put = put_file, .get = get_file};
    struct hvd_error err = {0};

    if (hvd_init_with(self.rank, self.size, &store, &err) != 0) {
        fprintf(stderr, "rank %d: hvd_init: %s\n", self.rank, err.text);
        exit(EXIT_WRONG);
    }
}

/* --- collectives --- */

/* Small whole numbers, whose sums are exact in float32. */
static float number_of(int rank, int64_t i)
{
    return (float)((i * 7 + (int64_t)rank * 13) % 1000);
}

static void fill(int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        self.input[i] = number_of(self.rank, i);
        self.output[i] = -1;
    }
}

static float sum_of(int64_t i)
{
    float sum = 0;

    for (int rank = 0; rank < self.size; rank++) {
        sum += number_of(rank, i);
    }
    return sum;
}

static bool holds(int64_t first, int64_t count, int rank)
{
    for (int64_t i = 0; i < count; i++) {
        if (self.output[first + i] != number_of(rank, i)) {
            return false;
        }
    }
    return true;
}

static struct hvd_tensor tensor_of(const char *name, const int64_t *count)
{
    return call_tensor(name, HVD_FLOAT32, count, 1, self.input, self.output);
}

static bool allreduces(const char *name, int64_t count)
{
    const struct hvd_tensor tensor = tensor_of(name, &count);

    fill(count);
    call_allreduce(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL);
    for (int64_t i = 0; i < count; i++) {
        if (self.output[i] != sum_of(i)) {
            return false;
        }
    }
    return true;
}

static bool reducescatters(int64_t count)
{
    const int64_t part = count / self.size, all = part * self.size;
    const struct hvd_tensor tensor = tensor_of("reducescatter", &all);

    fill(all);
    call_reducescatter(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL);
    for (int64_t i = 0; i < part; i++) {
        if (self.output[i] != sum_of(self.rank * part + i)) {
            return false;
        }
    }
    return true;
}

static bool broadcasts(int64_t count)
{
    const int root = self.size - 1;
    const struct hvd_tensor tensor = tensor_of("broadcast", &count);

    fill(count);
    call_broadcast(&tensor, root, HVD_SET_GLOBAL);
    return holds(0, count, root);
}

static bool allgathers(int64_t count)
{
    const int64_t part = count / self.size;
    struct hvd_tensor tensor = tensor_of("allgather", &part);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool is_right = true;

    tensor.output_bytes = (size_t)(part * self.size) * sizeof(self.output[0]);
    fill(part * self.size);
    call_finish(hvd_allgather_start(&tensor, 1, HVD_SET_GLOBAL, &request, &err), &request,
                &err);
    hvd_request_free(request);
    for (int rank = 0; rank < self.size; rank++) {
        is_right = is_right && holds(rank * part, part, rank);
    }
    return is_right;
}

static int run_collectives(void)
{
    static const int64_t counts[] = {2, 3000, MOST};
    bool is_right[4] = {true, true, true, true};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        is_right[0] = allreduces("allreduce", counts[i]) && is_right[0];
        is_right[1] = reducescatters(counts[i]) && is_right[1];
        is_right[2] = broadcasts(counts[i]) && is_right[2];
        is_right[3] = allgathers(counts[i]) && is_right[3];
    }
    if (self.rank == 0) {
        tap_ok(is_right[0], "allreduce of 8 B to 1.2 MB adds up");
        tap_ok(is_right[1], "reducescatter gives each rank its part of the sum");
        tap_ok(is_right[2], "broadcast copies the root's data");
        tap_ok(is_right[3], "allgather collects the data of all ranks");
    }
    return is_right[0] && is_right[1] && is_right[2] && is_right[3] ? 0 : EXIT_WRONG;
}

/* --- death --- */

static int try_allreduce(struct hvd_error *err)
{
    int64_t count = MOST;
    const struct hvd_tensor tensor = tensor_of("death", &count);
    struct hvd_request *request = NULL;
    int status =
        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
    }
    hvd_request_free(request);
    return status;
}

/* Prints how long the survivor's last allreduce took, and the error. */
static int report_death(int64_t began_ms, int status, const struct hvd_error *err)
{
    printf("# after %lld ms: %s\n", (long long)(hvd_clock_ms() - began_ms), err->text);
    fflush(stdout);
    return status < 0 && strstr(err->text, "rank 1") != NULL ? 0 : EXIT_WRONG;
}

static int run_death(void)
{
    struct hvd_error err = {0};
    int64_t began_ms;
    int status = 0;

    for (int i = 0; i < DEATH_STEPS && status == 0; i++) {
        status = try_allreduce(&err);
    }
    if (self.rank == self.size - 1) {
        kill(getpid(), SIGKILL);
    }
    began_ms = hvd_clock_ms();
    if (status == 0) {
        status = try_allreduce(&err);
    }
    return report_death(began_ms, status, &err);
}

static int run_endless(void)
{
    struct hvd_error err = {0};
    int64_t began_ms;
    int status;

    do {
        began_ms = hvd_clock_ms();
        status = try_allreduce(&err);
    } while (status == 0);
    return report_death(began_ms, status, &err);
}

/* --- fork --- */

static bool is_filled(const float *data, float value)
{
    for (int64_t i = 0; i < MOST; i++) {
        if (data[i] != value) {
            return false;
        }
    }
    return true;
}

static void set_all(float *data, float value)
{
    for (int64_t i = 0; i < MOST; i++) {
        data[i] = value;
    }
}

/* A child, which never calls hvd: sees the parent's data as it was at the fork, and
 * overwrites its copy. Ends with 0 if the data was right. */
static void load_data(float value)
{
    bool is_right = is_filled(self.input, value);

    set_all(self.input, -5);
    set_all(self.output, -6);
    _exit(is_right && is_filled(self.input, -5) ? 0 : EXIT_WRONG);
}

/* The child runs while the parent changes its data and sends them from the pages that
 * the adapter knows already. */
static int run_fork(void)
{
    int64_t count = MOST;
    const struct hvd_tensor tensor = tensor_of("fork", &count);
    bool is_parent_right = true, is_child_right = true;

    for (int round = 0; round < FORK_ROUNDS; round++) {
        float before = (float)(round + 1), after = before + 100;
        int status = -1;
        pid_t child;

        set_all(self.input, before);
        call_allreduce(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL);
        is_parent_right =
            is_parent_right && is_filled(self.output, before * (float)self.size);
        child = fork();
        if (child == 0) {
            load_data(before);
        }
        set_all(self.input, after);
        call_allreduce(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL);
        is_parent_right =
            is_parent_right && is_filled(self.output, after * (float)self.size);
        waitpid(child, &status, 0);
        is_child_right = is_child_right && child > 0 && status == 0;
        if (status != 0) {
            printf("# child's status: %d\n", status);
        }
    }
    if (self.rank == 0) {
        tap_ok(is_parent_right,
               "sums are right although children were forked (%d of %.1f MB)",
               FORK_ROUNDS, MOST * 4e-6);
        tap_ok(is_child_right, "forked children see the data of the fork, and may write");
    }
    return is_parent_right && is_child_right ? 0 : EXIT_WRONG;
}

/* --- main --- */

static float *map_floats(void)
{
    void *data = mmap(NULL, MOST * sizeof(float), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (data == MAP_FAILED) {
        exit(EXIT_WRONG);
    }
    return data;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"collectives", run_collectives},
        {"death", run_death},
        {"endless", run_endless},
        {"fork", run_fork},
    };
    int status = EXIT_WRONG;

    if (argc != 5) {
        fprintf(stderr, "usage: rdma_rank RANK SIZE FOLDER CASE\n");
        return EXIT_WRONG;
    }
    self.rank = atoi(argv[1]);
    self.size = atoi(argv[2]);
    self.folder = argv[3];
    self.input = map_floats();
    self.output = map_floats();
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[4], cases[i].name) == 0) {
            status = cases[i].run();
        }
    }
    hvd_shutdown();
    return status;
}
