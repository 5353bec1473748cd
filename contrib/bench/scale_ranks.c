/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of contrib/bench/scale.sh: starts, reduces the gradients of LeNet-5 in every
 * step, checks the sums, and ends. Rank 0 prints one line of name=value.
 *
 * usage: scale_ranks STEPS [VICTIM STEP]
 * Rank VICTIM kills itself before STEP; each survivor then prints its error.
 * HVD_SCALE_BEGIN_NS: when srun was started, in ns since 1970. */
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* after netinet/in.h; netinet/tcp.h lacks the counts of bytes */
#include <linux/tcp.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/clock.h"

/* The parameters of LeNet-5's layers: weights and bias of two convolutions and three
 * dense layers, 61,706 in all. */
static const int64_t shapes[] = {150, 6, 2400, 16, 48000, 120, 10080, 84, 840, 10};

enum {
    TENSORS = sizeof(shapes) / sizeof(shapes[0]),
    PARAMETERS = 61706,
};

/* until the agreement on a step is replayed */
static const int64_t warm_steps = 10;

static float gradients[PARAMETERS];

/* Resources of a process. It has sent the bytes and packets over its open connections. */
struct usage {
    double rss_kib, descriptors, threads, connections, sent_bytes, sent_packets;
};

/* Returns the number after `name` in /proc/self/status. */
static double read_status(const char *name)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    double value = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtod(line + strlen(name), NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return value;
}

static void add_connection(int fd, struct usage *usage)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
        info.tcpi_state == 1 /* established */) {
        usage->connections++;
        usage->sent_bytes += (double)info.tcpi_bytes_sent;
        usage->sent_packets += info.tcpi_segs_out;
    }
}

static struct usage read_usage(void)
{
    struct usage usage = {.rss_kib = read_status("VmRSS:"),
                          .threads = read_status("Threads:")};
    DIR *directory = opendir("/proc/self/fd");

    for (const struct dirent *entry = directory != NULL ? readdir(directory) : NULL;
         entry != NULL; entry = readdir(directory)) {
        if (entry->d_name[0] != '.') {
            usage.descriptors++;
            add_connection((int)strtol(entry->d_name, NULL, 10), &usage);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return usage;
}

/* Replaces the values by the largest of all ranks. */
static int find_most(double *values, int64_t count, struct hvd_error *err)
{
    const struct hvd_tensor tensor = {.name = "most",
                                      .input = values,
                                      .output = values,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_MAX, 1, 1, 0, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

/* Reduces all gradients at once, as a framework does at the end of a backward pass. */
static int do_step(int64_t step, struct hvd_error *err)
{
    struct hvd_request *requests[TENSORS] = {NULL};
    char names[TENSORS][16];
    float *at = gradients;
    int status = 0;

    for (int64_t i = 0; i < PARAMETERS; i++) {
        gradients[i] = (float)((i + step) % 7 + hvd_rank() % 2);
    }
    for (int i = 0; i < TENSORS && status == 0; at += shapes[i++]) {
        const struct hvd_tensor tensor = {.name = names[i],
                                          .input = at,
                                          .output = at,
                                          .shape = &shapes[i],
                                          .ndim = 1,
                                          .dtype = HVD_FLOAT32,
                                          .device = HVD_DEVICE_CPU};

        snprintf(names[i], sizeof(names[i]), "gradient %d", i);
        status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &requests[i], err);
    }
    for (int i = 0; i < TENSORS; i++) {
        if (requests[i] != NULL) {
            int ended = hvd_wait(requests[i], status == 0 ? err : NULL);

            status = status < 0 ? status : ended;
            hvd_request_free(requests[i]);
        }
    }
    for (int64_t i = 0; i < PARAMETERS && status == 0; i++) {
        /* every second rank adds 1 */
        const double sum =
            (double)((i + step) % 7 * hvd_size() + (int64_t)(hvd_size() / 2));

        if (gradients[i] != (float)sum) {
            status = HVD_ERR_MISMATCH;
            snprintf(err->text, sizeof(err->text),
                     "step %lld, parameter %lld: the sum is %g instead of %g",
                     (long long)step, (long long)i, (double)gradients[i], sum);
        }
    }
    return status;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

struct plan {
    int64_t steps, victim, fatal_step;
};

/* Does all steps; sets *median_ms to the median of those after the first ones. */
static int do_steps(const struct plan *plan, double *median_ms, struct hvd_error *err)
{
    double *times = calloc((size_t)plan->steps + 1, sizeof(*times));
    int status = times != NULL ? 0 : HVD_ERR_NOMEM;
    int64_t first = plan->steps > 2 * warm_steps ? warm_steps : 0;

    for (int64_t step = 0; step < plan->steps && status == 0; step++) {
        int64_t begin_ns = hvd_clock_ns();

        if (hvd_rank() == plan->victim && step == plan->fatal_step) {
            raise(SIGKILL);
        }
        status = do_step(step, err);
        times[step] = (double)(hvd_clock_ns() - begin_ns) / 1e6;
    }
    if (status == 0 && plan->steps > 0) {
        qsort(times + first, (size_t)(plan->steps - first), sizeof(*times), compare);
        *median_ms = times[first + (plan->steps - first) / 2];
    }
    free(times);
    return status;
}

/* Returns ms since srun was started; 0 if unknown. */
static double since_srun_ms(void)
{
    const char *begin = getenv("HVD_SCALE_BEGIN_NS");
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return begin == NULL ? 0
                         : (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 -
                               strtod(begin, NULL) / 1e6;
}

static int measure(const struct plan *plan, double started_ms, double rss_kib,
                   double init_ms, struct hvd_error *err)
{
    double most[6] = {started_ms, init_ms};
    double first_ms, median_ms = 0;
    int64_t begin_ns = hvd_clock_ns();
    struct usage usage;
    int status = find_most(most, 2, err);

    first_ms = (double)(hvd_clock_ns() - begin_ns) / 1e6;
    if (status == 0) {
        status = do_steps(plan, &median_ms, err);
    }
    usage = read_usage();
    most[2] = usage.rss_kib - rss_kib;
    most[3] = usage.descriptors;
    most[4] = usage.threads;
    most[5] = usage.connections;
    if (status == 0) {
        status = find_most(most + 2, 4, err);
    }
    if (status == 0 && (hvd_rank() == 0 || hvd_rank() == hvd_size() - 1)) {
        printf("rank=%d ranks=%d started=%.0f init=%.0f first=%.0f steps=%lld step=%.1f "
               "rss=%.0f descriptors=%.0f threads=%.0f connections=%.0f sent=%.0f "
               "packets=%.0f\n",
               hvd_rank(), hvd_size(), most[0], most[1], first_ms, (long long)plan->steps,
               median_ms, most[2], most[3], most[4], most[5], usage.sent_bytes,
               usage.sent_packets);
    }
    return status;
}

static int64_t word(char **argv, int argc, int i)
{
    return i < argc ? strtoll(argv[i], NULL, 10) : -1;
}

int main(int argc, char **argv)
{
    const struct plan plan = {word(argv, argc, 1), word(argv, argc, 2),
                              word(argv, argc, 3)};
    double started_ms = since_srun_ms(), rss_kib;
    int64_t begin_ns = hvd_clock_ns();
    struct hvd_error err = {0};
    int status;

    memset(gradients, 0, sizeof(gradients)); /* its pages belong to rss_kib */
    if (plan.steps < 0) {
        fprintf(stderr, "usage: scale_ranks STEPS [VICTIM STEP]\n");
        return 2;
    }
    rss_kib = read_status("VmRSS:");
    status = hvd_init(&err);
    if (status == 0) {
        status = measure(&plan, started_ms, rss_kib,
                         (double)(hvd_clock_ns() - begin_ns) / 1e6, &err);
    }
    if (status < 0) {
        fprintf(stderr, "failed: %s\n", err.text);
    }
    return hvd_shutdown() == 0 && status == 0 ? 0 : 1;
}
