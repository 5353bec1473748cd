/* SPDX-License-Identifier: Apache-2.0 */
/* The mark that tells a process from those that were forked from it. */
#include "gpu_binding/base/fork_mark.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

typedef pid_t fork_function(void);

/* Past libc and its fork handlers, as some runtimes do. */
static pid_t fork_by_system_call(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* What a child of `make` says: whether the mark is its own at first, and once it has set
 * it. */
static bool child_says(fork_function *make, struct hvd_fork_mark *mark, bool at_first)
{
    int status = 1;
    pid_t child = make();

    if (child == 0) {
        bool is_right = hvd_fork_mark_is_mine(mark) == at_first;

        hvd_fork_mark_set(mark);
        _exit(is_right && hvd_fork_mark_is_mine(mark) ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void test_children(struct hvd_fork_mark *mark, const char *kind)
{
    tap_ok(hvd_fork_mark_is_mine(mark), "the process that set it has the mark: %s", kind);
    tap_ok(child_says(fork, mark, false), "a forked child does not, until it sets it: %s",
           kind);
    tap_ok(child_says(fork_by_system_call, mark, false), "nor one made past libc: %s",
           kind);
    tap_ok(hvd_fork_mark_is_mine(mark), "what children do changes nothing here: %s",
           kind);
}

int main(void)
{
    struct hvd_fork_mark mark = {0};
    struct hvd_fork_mark old = {.pid = getpid()};

    hvd_fork_mark_set(&mark);
    test_children(&mark, "marked once");
    hvd_fork_mark_set(&mark);
    test_children(&mark, "marked again");
    tap_ok(hvd_fork_mark_is_mine(&old) && child_says(fork, &old, false),
           "it works on kernels without such pages, too");
    return tap_done();
}
