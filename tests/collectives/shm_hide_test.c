/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank that hides its memory may count on while another one writes there: two ranks of one
 * process, and a child that writes as one of them. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/shm/shm_reach.h"
#include "collectives/shm/shm_state.h"
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

/* Whether this machine lets a child write into its parent's memory. */
static bool may_write(char *to)
{
    char byte = 0;
    struct iovec near = {&byte, 1}, far = {to, 1};

    return process_vm_writev(getppid(), &near, 1, &far, 1, 0) == 1 ||
           (errno != EPERM && errno != ENOSYS);
}

/* A child that writes as rank 0 until it is told that rank 1 hides; or ends with FORBIDDEN. */
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
                tap_ok(false, "a child writes as a rank (it ended with %#x)", code);
            }
            free(data);
            return;
        }
        sched_yield();
    }
    is_hidden = hvd_shm_hide(ranks[1]);
    memset(data, 0, BYTES);
    tap_ok(waitpid(pid, &code, 0) == pid && code == 0,
           "who writes to a rank that hides is told");
    if (!is_hidden) {
        tap_skip("nothing is written there any more",
                 "the writer got no cpu for seconds");
    } else {
        tap_ok(memcmp(data, data + BYTES, BYTES) == 0,
               "nothing is written there any more");
    }
    free(data);
}

/* As if it had been stopped there: rank 0 is this process, and does not go on. */
static void test_stopped(void)
{
    hvd_shm_line_of(ranks[0], 0)->writes_to = 2;
    tap_ok(!hvd_shm_hide(ranks[1]),
           "who does not end his write is not waited for for ever");
    hvd_shm_line_of(ranks[0], 0)->writes_to = 0;
    tap_ok(hvd_shm_hide(ranks[1]), "and nobody is who does not write");
}

int main(void)
{
    int bells[RANKS];

    for (int i = 0; i < RANKS; i++) {
        bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    open_ranks(bells);
    /* Each has its say, and hears the other's. */
    for (int turn = 0; turn < 2; turn++) {
        hvd_shm_settle(ranks[0]);
        hvd_shm_settle(ranks[1]);
    }
    if (hvd_shm_can_reach(ranks[0]) && hvd_shm_can_reach(ranks[1])) {
        test_hide();
        test_stopped();
    } else {
        tap_skip("nothing is written to a rank that hides",
                 "this machine does not let ranks reach each other's memory");
    }
    for (int i = 0; i < RANKS; i++) {
        hvd_shm_destroy(ranks[i]);
        close(bells[i]);
    }
    return tap_done();
}
