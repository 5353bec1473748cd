/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of contrib/bench/scale.sh: starts, reduces the gradients of LeNet-5 in every
 * step, checks the sums, agrees without data, joins, and ends. Rank 0 and the last rank
 * print a line of name=value. Rank 0 also tells when each hundred of steps is done.
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* after netinet/in.h; netinet/tcp.h lacks the counts of bytes */
#include <linux/tcp.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"

/* The parameters of LeNet-5's layers: weights and bias of two convolutions and three
 * dense layers, 61,706 in all. */
static const int64_t shapes[] = {150, 6, 2400, 16, 48000, 120, 10080, 84, 840, 10};

enum {
    TENSORS = sizeof(shapes) / sizeof(shapes[0]),
    PARAMETERS = 61706,
};

/* until the agreement on a step is replayed */
static const int64_t warm_steps = 10;

/* steps that only agree; in the first ones, the tensors are new */
static const int agreed_warm = 3;
static const int agreed_steps = 40;

static float gradients[PARAMETERS];

/* Resources of a process. It has sent the bytes and packets over its open connections. */
struct usage {
    double rss_kib, pss_kib, descriptors, threads, connections, sent_bytes, sent_packets;
};

/* Returns the number after `name` in a file of /proc. */
static double read_number(const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
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

/* The processor time in ms, and the context switches, that this process has used. */
enum {
    WORK_USER_MS,
    WORK_SYSTEM_MS,
    WORK_SLEEPS,
    WORK_PREEMPTIONS,
    WORK_COUNT
};

static void read_work(double *work)
{
    struct rusage used = {0};

    getrusage(RUSAGE_SELF, &used);
    work[WORK_USER_MS] =
        (double)used.ru_utime.tv_sec * 1e3 + (double)used.ru_utime.tv_usec / 1e3;
    work[WORK_SYSTEM_MS] =
        (double)used.ru_stime.tv_sec * 1e3 + (double)used.ru_stime.tv_usec / 1e3;
    work[WORK_SLEEPS] = (double)used.ru_nvcsw;
    work[WORK_PREEMPTIONS] = (double)used.ru_nivcsw;
}

static struct usage read_usage(void)
{
    struct usage usage = {.rss_kib = read_number("/proc/self/status", "VmRSS:"),
                          .pss_kib = read_number("/proc/self/smaps_rollup", "Pss:"),
                          .threads = read_number("/proc/self/status", "Threads:")};
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
        usage.descriptors--; /* that of the directory */
    }
    return usage;
}

/* Combines the values of all ranks: HVD_MAX or HVD_AVERAGE. */
static int combine(double *values, int64_t count, int op, struct hvd_error *err)
{
    const struct hvd_tensor tensor = {.name = op == HVD_MAX ? "most" : "mean",
                                      .input = values,
                                      .output = values,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, op, 1, 1, 0, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

/* A parameter's gradient in a step, of even ranks; odd ranks add 1. Cheap: 1,024 ranks
 * that share two cores should measure hvd, not this program. */
static int digit(int parameter, int64_t step)
{
    return (parameter + (int)step) % 8;
}

static int check_sums(int64_t step, int size, struct hvd_error *err)
{
    const int odd = size / 2; /* ranks that add 1 */
    int wrong = 0;

    for (int i = 0; i < PARAMETERS; i++) {
        wrong += gradients[i] != (float)(digit(i, step) * size + odd);
    }
    return wrong == 0
               ? 0
               : hvd_fail(err, HVD_ERR_MISMATCH, "step %lld: %d of %d sums are wrong",
                          (long long)step, wrong, PARAMETERS);
}

/* Waits for all requests, and frees them. Returns status, or the first failure. */
static int end_all(struct hvd_request **requests, int status, struct hvd_error *err)
{
    for (int i = 0; i < TENSORS; i++) {
        if (requests[i] != NULL) {
            int ended = hvd_wait(requests[i], status == 0 ? err : NULL);

            status = status < 0 ? status : ended;
            hvd_request_free(requests[i]);
        }
    }
    return status;
}

/* Reduces all gradients at once, as a framework does at the end of a backward pass. The
 * first `size` ranks take part; the others have joined. */
static int do_step(int64_t step, int size, struct hvd_error *err)
{
    struct hvd_request *requests[TENSORS] = {NULL};
    char names[TENSORS][16];
    float *at = gradients;
    const int odd = hvd_rank() % 2;
    int status = 0;

    for (int i = 0; i < PARAMETERS; i++) {
        gradients[i] = (float)(digit(i, step) + odd);
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
    status = end_all(requests, status, err);
    return status == 0 ? check_sums(step, size, err) : status;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

struct plan {
    int64_t steps, victim, fatal_step;
};

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

/* Does all steps; sets *median_ms to the median of those after the first ones, and work
 * to the mean work of such a step in this process. */
static int do_steps(const struct plan *plan, double *median_ms, double *work,
                    struct hvd_error *err)
{
    double *times = calloc((size_t)plan->steps + 1, sizeof(*times));
    int status =
        times != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "no memory for the times");
    int64_t first = plan->steps > 2 * warm_steps ? warm_steps : 0;
    double before[WORK_COUNT] = {0};

    for (int64_t step = 0; step < plan->steps && status == 0; step++) {
        int64_t begin_ns = hvd_clock_ns();

        if (hvd_rank() == plan->victim && step == plan->fatal_step) {
            raise(SIGKILL);
        }
        if (step == first) {
            read_work(before);
        }
        status = do_step(step, hvd_size(), err);
        times[step] = (double)(hvd_clock_ns() - begin_ns) / 1e6;
        if (hvd_rank() == 0 && (step + 1) % 100 == 0) {
            printf("steps: %lld, ms since srun: %.0f\n", (long long)(step + 1),
                   since_srun_ms());
            fflush(stdout);
        }
    }
    if (status == 0 && plan->steps > 0) {
        qsort(times + first, (size_t)(plan->steps - first), sizeof(*times), compare);
        *median_ms = times[first + (plan->steps - first) / 2];
        read_work(work);
        for (int i = 0; i < WORK_COUNT; i++) {
            work[i] = (work[i] - before[i]) / (double)(plan->steps - first);
        }
    }
    free(times);
    return status;
}

/* Agrees on tensors without elements, in an order that does not repeat, so that ranks
 * send what they need to agree and nothing else. Sets *usage to the mean of a step. */
static int agree_only(struct usage *usage, struct hvd_error *err)
{
    const struct hvd_tensor empty = {.input = gradients,
                                     .output = gradients,
                                     .shape = (int64_t[]){0},
                                     .ndim = 1,
                                     .dtype = HVD_FLOAT32,
                                     .device = HVD_DEVICE_CPU};
    struct usage before = {0};
    uint32_t random = 1;
    int status = 0;

    for (int step = -agreed_warm; step < agreed_steps && status == 0; step++) {
        struct hvd_request *requests[TENSORS] = {NULL};
        unsigned chosen;

        random = random * 1664525 + 1013904223;
        chosen = step < 0 ? (1U << TENSORS) - 1 : (random >> 16) % (1U << TENSORS);
        if (step == 0) {
            before = read_usage();
        }
        for (int i = 0; i < TENSORS && status == 0; i++) {
            struct hvd_tensor tensor = empty;
            char name[24];

            snprintf(name, sizeof(name), "empty %d", i);
            tensor.name = name;
            if ((chosen >> i & 1) != 0) {
                status =
                    hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &requests[i], err);
            }
        }
        status = end_all(requests, status, err);
    }
    *usage = read_usage();
    usage->sent_bytes = (usage->sent_bytes - before.sent_bytes) / agreed_steps;
    usage->sent_packets = (usage->sent_packets - before.sent_packets) / agreed_steps;
    return status;
}

/* Ranks below half the size reduce one step more than the others, then join, too. */
static int join_early(double *join_ms, struct hvd_error *err)
{
    const int64_t begin_ns = hvd_clock_ns();
    struct hvd_request *request = NULL;
    int status = 0, last = -1;

    if (hvd_rank() < hvd_size() / 2) {
        status = do_step(0, hvd_size() / 2, err);
    }
    if (status == 0) {
        status = hvd_join_start(&request, err);
    }
    if (status == 0) {
        status = hvd_wait(request, err);
        last = status == 0 ? hvd_request_last_rank(request) : -1;
        hvd_request_free(request);
    }
    *join_ms = (double)(hvd_clock_ns() - begin_ns) / 1e6;
    if (status == 0 && (last < 0 || last >= hvd_size())) {
        status = hvd_fail(err, HVD_ERR_MISMATCH, "rank %d joined last", last);
    }
    return status;
}

/* When the parts of the start ended, in ms since srun was started. */
struct start {
    double main_ms, init_ms, first_ms;
    double rss_kib; /* memory before hvd_init */
};

static void print_line(const struct start *start, const struct usage *most,
                       const struct usage *own, const struct usage *agreement)
{
    printf("rank=%d ranks=%d main=%.0f init=%.0f first=%.0f rss=%.0f pss=%.0f "
           "descriptors=%.0f threads=%.0f connections=%.0f sent=%.0f packets=%.0f "
           "agreement=%.0f agreement_packets=%.1f ",
           hvd_rank(), hvd_size(), start->main_ms, start->init_ms, start->first_ms,
           most->rss_kib, most->pss_kib, most->descriptors, most->threads,
           most->connections, own->sent_bytes, own->sent_packets, agreement->sent_bytes,
           agreement->sent_packets);
}

/* Replaces the values by the most of all ranks. */
static int find_most(struct usage *usage, struct hvd_error *err)
{
    double values[] = {usage->rss_kib, usage->pss_kib, usage->descriptors, usage->threads,
                       usage->connections};
    int status = combine(values, 5, HVD_MAX, err);

    *usage = (struct usage){values[0], values[1], values[2], values[3], values[4], 0, 0};
    return status;
}

static int measure(const struct plan *plan, struct start *start, struct hvd_error *err)
{
    double times[] = {start->main_ms, start->init_ms}, median_ms = 0, join_ms = 0;
    double work[WORK_COUNT] = {0};
    struct usage own = {0}, agreement = {0}, most;
    int status = combine(times, 2, HVD_MAX, err);

    start->main_ms = times[0];
    start->init_ms = times[1];
    start->first_ms = since_srun_ms();
    if (status == 0) {
        status = do_steps(plan, &median_ms, work, err);
    }
    own = read_usage();
    if (status == 0) {
        status = combine(work, WORK_COUNT, HVD_AVERAGE, err);
    }
    if (status == 0) {
        status = agree_only(&agreement, err);
    }
    most = own;
    most.rss_kib -= start->rss_kib;
    if (status == 0) {
        status = find_most(&most, err);
    }
    if (status == 0) {
        status = join_early(&join_ms, err);
    }
    if (status == 0 && (hvd_rank() == 0 || hvd_rank() == hvd_size() - 1)) {
        print_line(start, &most, &own, &agreement);
        printf("steps=%lld step=%.1f user=%.2f system=%.2f sleeps=%.1f preemptions=%.1f "
               "join=%.1f\n",
               (long long)plan->steps, median_ms, work[WORK_USER_MS],
               work[WORK_SYSTEM_MS], work[WORK_SLEEPS], work[WORK_PREEMPTIONS], join_ms);
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
    struct start start = {.main_ms = since_srun_ms()};
    struct hvd_error err = {0};
    int status;

    memset(gradients, 0, sizeof(gradients)); /* its pages belong to rss_kib */
    if (plan.steps < 0) {
        fprintf(stderr, "usage: scale_ranks STEPS [VICTIM STEP]\n");
        return 2;
    }
    start.rss_kib = read_number("/proc/self/status", "VmRSS:");
    status = hvd_init(&err);
    start.init_ms = since_srun_ms();
    if (status == 0) {
        status = measure(&plan, &start, &err);
    }
    if (status < 0) {
        fprintf(stderr, "failed: %s\n", err.text);
    }
    return hvd_shutdown() == 0 && status == 0 ? 0 : 1;
}
