/* SPDX-License-Identifier: Apache-2.0 */
/* A thread reads the stack of the main thread, which sleeps, blocks or computes below
 * functions with known names. meson.build compiles this program in several ways. */
#include "collectives/stack/stack.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/base/thread.h"
#include "tests/tap.h"

/* A function that is not inlined, and that does not end with a jump to the next one. */
#if defined(__clang__)
#define KNOWN __attribute__((noinline))
#else
#define KNOWN __attribute__((noinline, noclone))
#endif

enum {
    READS = 20, /* of each stack */
};

static int ends[2]; /* of a pipe, by which the main thread is released */
static sem_t released;
static _Atomic bool is_released;
static volatile int after_call;
static volatile sig_atomic_t own_signals;

static void block_in_read(void)
{
    char byte;

    tap_ok(read(ends[0], &byte, 1) == 1, "read() does not return early");
}

static void block_in_poll(void)
{
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    char byte;

    tap_ok(poll(&ready, 1, -1) == 1 && read(ends[0], &byte, 1) == 1,
           "poll() does not return early");
}

static void block_in_sem_wait(void)
{
    int status;

    do {
        status = sem_wait(&released);
    } while (status != 0 && errno == EINTR);
}

static void spin(void)
{
    while (!atomic_load(&is_released)) {
    }
}

/* --- the stack --- */

typedef void block(void);

KNOWN void stack_test_inner(block *how);
KNOWN void stack_test_middle(block *how, int room);
KNOWN void stack_test_outer(block *how);

KNOWN void stack_test_inner(block *how)
{
    how();
    after_call++;
}

/* Uses a number of bytes of the stack that the compiler does not know. */
KNOWN void stack_test_middle(block *how, int room)
{
    volatile char *bytes = __builtin_alloca((size_t)room);

    bytes[0] = 1;
    stack_test_inner(how);
    after_call += bytes[0];
}

KNOWN void stack_test_outer(block *how)
{
    volatile uint64_t many[64] = {0};

    stack_test_middle(how, 100 + after_call);
    after_call += (int)many[7];
}

/* --- the reader --- */

struct wanted {
    const char *names[6]; /* in this order, with others between them */
    const char *promise;
    int complete; /* stacks with all of them, of READS */
    char last[4096];
};

static bool has_all(const char *text, const char *const *names)
{
    for (; *names != NULL; names++) {
        text = strstr(text, *names);
        if (text == NULL) {
            return false;
        }
        text += strlen(*names);
    }
    return true;
}

static void *read_stacks(void *arg)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    struct wanted *wanted = arg;

    nanosleep(&pause, NULL);
    for (int tries = 0; wanted->complete < READS && tries < 10 * READS; tries++) {
        hvd_stack_read(wanted->last, sizeof(wanted->last));
        if (has_all(wanted->last, wanted->names)) {
            wanted->complete++;
        } else if (wanted->complete > 0) {
            break;
        } else {
            nanosleep(&pause, NULL); /* the main thread may not be there yet */
        }
    }
    if (write(ends[1], "", 1) != 1) {
        abort();
    }
    sem_post(&released);
    atomic_store(&is_released, true);
    return NULL;
}

static void empty_pipe(void)
{
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    char byte;

    while (poll(&ready, 1, 0) == 1 && read(ends[0], &byte, 1) == 1) {
    }
}

static void run(block *how, struct wanted *wanted)
{
    pthread_t reader;

    empty_pipe();
    sem_init(&released, 0, 0);
    atomic_store(&is_released, false);
    if (hvd_thread_start(&reader, read_stacks, wanted) != 0) {
        abort();
    }
    stack_test_outer(how);
    pthread_join(reader, NULL);
}

static void check(block *how, struct wanted *wanted)
{
    run(how, wanted);
    tap_ok(wanted->complete == READS, "%s", wanted->promise);
    if (wanted->complete != READS) {
        tap_note("%d of %d; the last one:", wanted->complete, READS);
        for (char *line = strtok(wanted->last, "\n"); line != NULL;
             line = strtok(NULL, "\n")) {
            tap_note("%s", line);
        }
    }
}

#define FUNCTIONS                                                                        \
    "stack_test_inner in ", "stack_test_middle in ", "stack_test_outer in ", "main in "

static void count_signal(int number)
{
    (void)number;
    own_signals++;
}

/* Returns whether any real-time signal has a handler that is not this program's. */
static bool has_other_handler(void)
{
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        struct sigaction action;

        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
            action.sa_handler != count_signal) {
            return true;
        }
    }
    return false;
}

/* A program that uses all real-time signals keeps them, and gets none. */
static void check_own_handlers(void)
{
    struct wanted wanted = {.names = {NULL}};

    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        signal(number, count_signal);
    }
    run(spin, &wanted);
    tap_ok(own_signals == 0 && !has_other_handler(),
           "a program that uses the signal itself gets none, and keeps its handler");
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        signal(number, SIG_DFL);
    }
}

int main(void)
{
#if defined(__x86_64__)
    struct wanted in_read = {.names = {"read in ", FUNCTIONS},
                             .promise = "functions above read() in their order"};
    struct wanted in_poll = {.names = {"poll in ", FUNCTIONS},
                             .promise = "functions above poll() in their order"};
    struct wanted in_sem = {.names = {"sem_wait", FUNCTIONS},
                            .promise = "functions above sem_wait() in their order"};
    struct wanted in_spin = {.names = {"spin in ", FUNCTIONS},
                             .promise = "functions of a thread that computes"};

    if (pipe(ends) != 0) {
        return 1;
    }
    check(block_in_read, &in_read);
    check(block_in_poll, &in_poll);
    check(block_in_sem_wait, &in_sem);
    check(spin, &in_spin);
    tap_ok(!has_other_handler(), "no handler is left over");
    check_own_handlers();
#else
    tap_skip("functions in their order", "on x86-64 only");
#endif
    return tap_done();
}
