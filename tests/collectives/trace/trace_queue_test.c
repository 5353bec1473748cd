/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of events: its order, its bounds, and that put never waits for a sink that
 * hangs. */
#include "collectives/trace/trace_queue.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/tap.h"

enum {
    CAPACITY = 100,
    MANY = 100000
};

static struct {
    sem_t entered; /* posted when a hanging sink is called */
    sem_t let_go;
    _Atomic bool hangs;
    _Atomic long taken;
    long next; /* the next number expected */
    int disorder;
    int refuse; /* the sink accepts no events in this many further calls */
    bool got_signals;
} sink;

static size_t take(void *context, const struct hvd_trace_event *events, size_t count,
                   bool is_last)
{
    sigset_t blocked;

    (void)context;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    sink.got_signals = sink.got_signals || !sigismember(&blocked, SIGTERM) ||
                       !sigismember(&blocked, SIGXFSZ);
    if (atomic_load(&sink.hangs)) {
        sem_post(&sink.entered);
        sem_wait(&sink.let_go);
    }
    if (sink.refuse > 0 && !is_last) {
        sink.refuse--;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        sink.disorder += events[i].number == sink.next ? 0 : 1;
        sink.next = (long)events[i].number + 1;
    }
    atomic_fetch_add(&sink.taken, (long)count);
    return count;
}

static struct hvd_trace_queue *start(int pause_ms)
{
    struct hvd_trace_queue_options options = {
        .capacity = CAPACITY, .text_bytes = 1000, .pause_ms = pause_ms, .sink = take};
    struct hvd_trace_queue *queue = NULL;

    sem_init(&sink.entered, 0, 0);
    sem_init(&sink.let_go, 0, 0);
    atomic_store(&sink.hangs, false);
    atomic_store(&sink.taken, 0);
    sink.next = 0;
    sink.disorder = 0;
    if (hvd_trace_queue_create(&options, &queue, NULL) != 0) {
        printf("Bail out! hvd_trace_queue_create\n");
        exit(1);
    }
    return queue;
}

static bool put(struct hvd_trace_queue *queue, long number)
{
    struct hvd_trace_event event = {
        .kind = HVD_TRACE_READY, .number = number, .text = strdup("text")};

    return hvd_trace_queue_put(queue, &event);
}

static void events_keep_their_order(void)
{
    struct hvd_trace_queue *queue = start(1);
    long accepted = 0;

    for (long i = 0; i < MANY; i++) {
        while (hvd_trace_queue_room(queue) == 0) {
            const struct timespec pause = {.tv_nsec = 100000};

            nanosleep(&pause, NULL);
        }
        accepted += put(queue, i) ? 1 : 0;
    }
    hvd_trace_queue_destroy(queue);
    tap_ok(accepted == MANY && sink.taken == MANY && sink.disorder == 0,
           "all events arrive in order; room that was promised is there");
    tap_ok(!sink.got_signals, "the thread gets none of the program's signals");
}

/* This test hangs if put waits. */
static void nobody_waits_for_the_sink(void)
{
    struct hvd_trace_queue *queue = start(1);
    long accepted = 1;

    atomic_store(&sink.hangs, true);
    put(queue, 0);
    sem_wait(&sink.entered);
    for (long i = 1; i < 3 * CAPACITY; i++) {
        accepted += put(queue, i) ? 1 : 0;
    }
    tap_ok(accepted == CAPACITY + 1 && hvd_trace_queue_room(queue) == 0,
           "while the sink hangs, a full queue refuses at once");
    atomic_store(&sink.hangs, false);
    sem_post(&sink.let_go);
    hvd_trace_queue_destroy(queue);
    tap_ok(sink.taken == CAPACITY + 1, "destroy lets the sink have the remaining events");
}

/* Tests that no event is lost if the sink accepts none in its first `calls` calls. */
static void sink_may_refuse(int calls, const char *promise)
{
    struct hvd_trace_queue *queue = start(1);

    sink.refuse = calls;
    for (long i = 0; i < CAPACITY; i++) {
        put(queue, i);
    }
    hvd_trace_queue_destroy(queue);
    sink.refuse = 0;
    tap_ok(sink.taken == CAPACITY && sink.disorder == 0, "%s", promise);
}

static bool put_lines(struct hvd_trace_queue *queue, long number, size_t bytes)
{
    struct hvd_trace_event event = {
        .kind = HVD_TRACE_LINES, .number = (int64_t)bytes, .text = malloc(bytes)};

    (void)number;
    return hvd_trace_queue_put(queue, &event);
}

static void lines_are_bounded(void)
{
    struct hvd_trace_queue *queue = start(1);
    bool is_good;

    atomic_store(&sink.hangs, true);
    put(queue, 0);
    sem_wait(&sink.entered);
    is_good = put_lines(queue, 1, 600) && !put_lines(queue, 2, 600) &&
              put_lines(queue, 3, 400) && !put_lines(queue, 4, 1) && put(queue, 5);
    tap_ok(is_good, "the bytes of lines have a limit of their own");
    atomic_store(&sink.hangs, false);
    sem_post(&sink.let_go);
    hvd_trace_queue_destroy(queue);
    hvd_trace_queue_destroy(NULL);
}

int main(void)
{
    events_keep_their_order();
    nobody_waits_for_the_sink();
    sink_may_refuse(5, "events that the sink refuses come again, before later events");
    sink_may_refuse(1 << 30, "at the end, the sink is told to take all events");
    lines_are_bounded();
    return tap_done();
}
