/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the mark that tells a process from its forked children. */
#include "gpu_binding/base/fork_mark.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

typedef pid_t fork_function(void);

/* Forks without libc, so that libc's fork handlers do not run. Some runtimes fork like
 * this. */
static pid_t fork_by_system_call(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Forks a child with `make`. The mark must be the child's own at once if at_first,
 * otherwise only after the child has set it. Returns whether it is so. */
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
    tap_ok(child_says(fork, mark, false),
           "a forked child does not have the mark until it sets it: %s", kind);
    tap_ok(child_says(fork_by_system_call, mark, false),
           "a child that was forked without libc does not have the mark: %s", kind);
    tap_ok(hvd_fork_mark_is_mine(mark),
           "children do not change the mark of their parent: %s", kind);
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
           "the mark works on kernels that cannot clear pages, too");
    return tap_done();
}
