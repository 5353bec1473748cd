/* SPDX-License-Identifier: Apache-2.0 */
/* A rank hides its memory while another rank writes into it. Both ranks are in one
 * process; a child process writes as rank 0. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/shm/shm_reach.h"
#include "collectives/transport/shm/shm_state.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
    BYTES = 16 << 20,
    FORBIDDEN = 77,
};

static const struct hvd_shm_sizes sizes = {
    .local_size = RANKS,
    .geometry = {.slots = 2, .slot_bytes = 4096, .recv_bytes = 4096},
    .reaches = true,
};

static struct hvd_shm *ranks[RANKS];

static void open_ranks(const int *bells)
{
    struct hvd_error err = {0};
    int file = hvd_shm_open(&sizes, &err);

    for (int i = 0; i < RANKS; i++) {
        if (file < 0 ||
            hvd_shm_create(dup(file), i, &sizes, bells, &ranks[i], &err) != 0) {
            printf("Bail out! %s\n", err.text);
            exit(99);
        }
    }
    close(file);
}

/* Returns whether this machine lets a child write into its parent's memory. */
static bool may_write(char *to)
{
    char byte = 0;
    struct iovec near = {&byte, 1}, far = {to, 1};

    return process_vm_writev(getppid(), &near, 1, &far, 1, 0) == 1 ||
           (errno != EPERM && errno != ENOSYS);
}

/* Starts a child that writes as rank 0 until it learns that rank 1 hides. The child exits
 * with FORBIDDEN if it may not write at all. */
static pid_t start_writer(char *to)
{
    pid_t pid = fork();

    if (pid == 0) {
        char *from = malloc(BYTES);
        int status = 0;

        if (!may_write(to + BYTES)) {
            _exit(FORBIDDEN);
        }
        memset(from, 1, BYTES);
        while (status == 0) {
            status = hvd_shm_write(ranks[0], 1, (uint64_t)(uintptr_t)to, from, BYTES);
        }
        _exit(status == HVD_INPROGRESS ? 0 : 1);
    }
    return pid;
}

static void test_hide(void)
{
    char *data = calloc(2, BYTES);
    pid_t pid = start_writer(data);
    bool is_hidden;
    int code = -1;

    while (*(volatile char *)data == 0) {
        if (waitpid(pid, &code, WNOHANG) == pid) {
            if (WIFEXITED(code) && WEXITSTATUS(code) == FORBIDDEN) {
                tap_skip("nothing is written to a rank that hides",
                         "this machine does not let a child write into its parent");
            } else {
                tap_ok(false, "the child writes as a rank (it ended with %#x)", code);
            }
            free(data);
            return;
        }
        sched_yield();
    }
    is_hidden = hvd_shm_hide(ranks[1]);
    memset(data, 0, BYTES);
    tap_ok(waitpid(pid, &code, 0) == pid && code == 0,
           "a rank that writes to a hidden rank is told so");
    if (!is_hidden) {
        tap_skip("nothing is written to a rank after it hides",
                 "the writer got no CPU time for seconds");
    } else {
        tap_ok(memcmp(data, data + BYTES, BYTES) == 0,
               "nothing is written to a rank after it hides");
    }
    free(data);
}

/* --- writers that stop during a write and continue when it is too late --- */

static bool stops_before_writing;

/* Replaces the function of the C library that hvd_shm_write calls. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *near, unsigned long near_count,
                          const struct iovec *far, unsigned long far_count,
                          unsigned long flags)
{
    if (stops_before_writing) {
        raise(SIGSTOP);
    }
    return syscall(SYS_process_vm_writev, pid, near, near_count, far, far_count, flags);
}

static void write_as_rank_0(char *to)
{
    char *from = malloc(BYTES);

    memset(from, 1, BYTES);
    stops_before_writing = true;
    _exit(hvd_shm_write(ranks[0], 1, (uint64_t)(uintptr_t)to, from, BYTES) ==
                  HVD_INPROGRESS
              ? 0
              : 1);
}

static bool is_all(const char *data, char value)
{
    return data[0] == value && memcmp(data, data + 1, BYTES - 1) == 0;
}

static void test_stopped_while(void (*writer)(char *), char *data, bool had_begun,
                               const char *how)
{
    pid_t pid = fork();
    bool is_hidden;
    int code = -1;

    if (pid == 0) {
        writer(data);
    }
    waitpid(pid, &code, WUNTRACED);
    if (!WIFSTOPPED(code)) {
        tap_ok(false, "the child writes as a rank (it ended with %#x)", code);
        return;
    }
    is_hidden = hvd_shm_hide(ranks[1]);
    tap_ok(is_hidden, "a rank can hide while another one is stopped in a write by %s",
           how);
    tap_ok(!had_begun || data[0] == 1, "data that was written before it hides stays");
    memset(data, 7, BYTES);
    kill(pid, SIGCONT);
    waitpid(pid, &code, 0);
    tap_ok(code == 0, "the stopped rank is told when it continues (it ended with %#x)",
           code);
    tap_ok(is_all(data, 7), "the stopped rank writes nothing after that");
}

/* Rank 0 claims for ever that it is writing, like a process that was stopped during a
 * write. */
static void test_stopped(void)
{
    ranks[0]->lines[0].writes_to = 2;
    tap_ok(!hvd_shm_hide(ranks[1]),
           "a rank does not wait for ever for a write that never ends");
    ranks[0]->lines[0].writes_to = 0;
    tap_ok(hvd_shm_hide(ranks[1]), "a rank does not wait where nobody writes");
}

static void test_stopped_by_kernel(void)
{
    char *data = calloc(1, BYTES);

    test_stopped_while(write_as_rank_0, data, false, "the kernel");
    free(data);
}

/* Runs a test with two new ranks, which do not hide. */
static void with_ranks(void (*test)(void))
{
    int bells[RANKS];

    for (int i = 0; i < RANKS; i++) {
        bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    open_ranks(bells);
    /* in each turn, both ranks report and read the other's report */
    for (int turn = 0; turn < 2; turn++) {
        hvd_shm_settle(ranks[0]);
        hvd_shm_settle(ranks[1]);
    }
    if (hvd_shm_can_reach(ranks[0]) && hvd_shm_can_reach(ranks[1])) {
        test();
    } else {
        tap_skip("nothing is written to a rank that hides",
                 "this machine does not let ranks reach each other's memory");
    }
    for (int i = 0; i < RANKS; i++) {
        hvd_shm_destroy(ranks[i]);
        close(bells[i]);
    }
}

int main(void)
{
    with_ranks(test_hide);
    with_ranks(test_stopped);
    with_ranks(test_stopped_by_kernel);
    return tap_done();
}
