/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd's rendezvous service costs a job of many ranks: a real service, and a thread for each rank
 * that does what hvd_init does, all at the same time. Threads and service share this machine.
 *
 *   rendezvous_scale HVD_RENDEZVOUS [RANKS...]     default: 16 64 256 1024
 *
 * Prints a Markdown table of medians: ms until the last rank has the cards of all, ms of processor
 * time of the service, and MB that it sends, without frames and seals. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "contrib/bench/median.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/rendezvous/start.h"

enum {
    ROUNDS = 5,
    CARD_BYTES = 300, /* about as long as one of two nodes with UCX */
    STACK_BYTES = 1 << 17,
    LIMIT_MS = 120000
};

struct job {
    char address[HVD_RENDEZVOUS_START_TEXT_BYTES + 16];
    int ranks;
    pthread_barrier_t begin;
    atomic_int failed;
    atomic_int next;
};

static void *join(void *context)
{
    struct job *job = context;
    struct {
        struct hvd_rendezvous_join head;
        char card[CARD_BYTES + 4];
    } question = {.head = {.card_bytes = CARD_BYTES, .timeout_ms = LIMIT_MS}};
    struct hvd_channel_message message = {HVD_RENDEZVOUS_JOIN, &question,
                                          sizeof(question.head) + CARD_BYTES};
    struct hvd_channel_message answer = {0};
    struct hvd_rendezvous_call *call = NULL;
    struct hvd_error err;

    question.head.slot = question.head.index = job->next++;
    question.head.count = job->ranks;
    pthread_barrier_wait(&job->begin);
    if (hvd_rendezvous_call_begin(job->address, LIMIT_MS, &call, &err) != 0 ||
        hvd_rendezvous_call_ask(call, &message, LIMIT_MS, &answer, &err) != 0 ||
        answer.type != HVD_RENDEZVOUS_FORMED) {
        job->failed++;
    }
    hvd_rendezvous_call_end(call);
    return NULL;
}

/* Milliseconds from the begin of all to the end of the last; negative if one has failed. */
static double run_ranks(struct job *job)
{
    pthread_t *threads = calloc((size_t)job->ranks, sizeof(*threads));
    pthread_attr_t attributes;
    int64_t begin_ns;
    int started = 0;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_barrier_init(&job->begin, NULL, (unsigned)job->ranks + 1);
    while (threads != NULL && started < job->ranks &&
           pthread_create(&threads[started], &attributes, join, job) == 0) {
        started++;
    }
    if (started < job->ranks) {
        fprintf(stderr, "only %d of %d threads\n", started, job->ranks);
        exit(EXIT_FAILURE);
    }
    pthread_barrier_wait(&job->begin);
    begin_ns = hvd_clock_ns();
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    return job->failed > 0 ? -1 : (double)(hvd_clock_ns() - begin_ns) / 1e6;
}

/* Of a child that has been collected since *before. */
static double processor_ms(const struct rusage *before)
{
    struct rusage now;

    getrusage(RUSAGE_CHILDREN, &now);
    return (double)(now.ru_utime.tv_sec - before->ru_utime.tv_sec + now.ru_stime.tv_sec -
                    before->ru_stime.tv_sec) *
               1e3 +
           (double)(now.ru_utime.tv_usec - before->ru_utime.tv_usec +
                    now.ru_stime.tv_usec - before->ru_stime.tv_usec) /
               1e3;
}

static void measure(const char *program, int ranks)
{
    const struct hvd_rendezvous_rules rules = {.np = ranks, .is_here = true};
    double wall[ROUNDS], processor[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        struct job job = {.ranks = ranks};
        struct hvd_rendezvous_service service = {0};
        struct hvd_error err;
        struct rusage before;

        getrusage(RUSAGE_CHILDREN, &before);
        if (hvd_rendezvous_start(program, &rules, &service, &err) != 0) {
            fprintf(stderr, "%s\n", err.text);
            exit(EXIT_FAILURE);
        }
        snprintf(job.address, sizeof(job.address), "127.0.0.1:%s", service.address);
        wall[round] = run_ranks(&job);
        hvd_rendezvous_stop(&service);
        processor[round] = processor_ms(&before);
        if (wall[round] < 0) {
            fprintf(stderr, "%d of %d ranks have failed\n", job.failed, ranks);
            exit(EXIT_FAILURE);
        }
    }
    printf("| %d | %.0f | %.0f | %.1f |\n", ranks, median(wall, ROUNDS),
           median(processor, ROUNDS), ranks * (double)ranks * (CARD_BYTES + 8) / 1e6);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const int usual[] = {16, 64, 256, 1024};
    struct rlimit files;

    if (argc < 2) {
        fputs("usage: rendezvous_scale HVD_RENDEZVOUS [RANKS...]\n", stderr);
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    puts("| ranks | all have all, ms | service, ms of processor time | sent, MB |\n"
         "|---|---|---|---|");
    for (int i = 2; i < argc; i++) {
        measure(argv[1], atoi(argv[i]));
    }
    for (int i = 0; argc == 2 && i < 4; i++) {
        measure(argv[1], usual[i]);
    }
    return EXIT_SUCCESS;
}
