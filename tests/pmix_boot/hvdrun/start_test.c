/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that hvdrun starts: a rank runs, or the error says why not. Ranks do not outlive
 * hvdrun. */
#include "pmix_boot/hvdrun/start.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

/* Starts a command with this process's streams and environment. */
static int start(char *const *command, pid_t *pid, int *exit_code, struct hvd_error *err)
{
    struct hvdrun_string_list environment = {0};
    sigset_t mask;
    const struct hvdrun_start how = {.command = command,
                                     .environment = &environment,
                                     .signal_mask = &mask,
                                     .input = STDIN_FILENO,
                                     .output = STDOUT_FILENO,
                                     .error = STDERR_FILENO};
    int status;

    sigemptyset(&mask);
    hvdrun_string_list_add_all(&environment, (const char *const *)environ, NULL);
    status = hvdrun_start(&how, pid, exit_code, err);
    hvdrun_string_list_finish(&environment);
    return status;
}

static void test_command(void)
{
    char *const command[] = {"true", NULL};
    int exit_code = 0, status = -1;
    pid_t pid = 0;

    tap_ok(start(command, &pid, &exit_code, NULL) == 0 && getpgid(pid) == pid &&
               waitpid(pid, &status, 0) == pid && status == 0,
           "a command runs as the leader of its own process group");
}

static void test_refusals(void)
{
    char *const missing[] = {"/nonexistent/command", NULL};
    char *const folder[] = {"/", NULL};
    struct hvd_error err = {0};
    int exit_code = 0;
    pid_t pid;

    tap_ok(start(missing, &pid, &exit_code, &err) == HVD_ERR_SYS && exit_code == 127 &&
               strstr(err.text, "cannot run /nonexistent/command") != NULL,
           "a command that does not exist returns 127, as in a shell");
    tap_ok(start(folder, &pid, &exit_code, &err) == HVD_ERR_SYS && exit_code == 126,
           "a command that cannot be run returns 126");
}

/* Tries to start a script as if it were a program. Returns whether the error proposes
 * python. */
static bool proposes_python(char *word, int expected)
{
    char *const command[] = {word, NULL};
    struct hvd_error err = {0};
    char proposal[64];
    int exit_code = 0;
    pid_t pid;

    snprintf(proposal, sizeof(proposal), "; to run it with Python, write python3 %s",
             word);
    return start(command, &pid, &exit_code, &err) == HVD_ERR_SYS &&
           exit_code == expected && strstr(err.text, proposal) != NULL;
}

static void test_scripts(void)
{
    char directory[] = "/tmp/hvd-start.XXXXXX";
    FILE *script = mkdtemp(directory) != NULL && chdir(directory) == 0
                       ? fopen("train.py", "w")
                       : NULL;

    if (script != NULL) {
        fputs("import sys\n", script);
        fclose(script);
    }
    tap_ok(proposes_python("train.py", 127), "a script that is not in PATH is named");
    tap_ok(proposes_python("./train.py", 126), "a script that is not executable, too");
    (void)chmod("train.py", 0700);
    tap_ok(proposes_python("./train.py", 126), "a script without #! is not run by sh");
    tap_ok(!proposes_python("other.py", 127), "no script is proposed that is not there");
    (void)unlink("train.py");
    (void)!chdir("/");
    (void)rmdir(directory);
}

/* A child starts a rank, `sleep 60`, and exits. This process then inherits the rank and
 * sees that a signal kills it at once. */
static void test_end_of_parent(void)
{
    char *const command[] = {"sleep", "60", NULL};
    int status = 0, exit_code;
    pid_t pid = 0, parent;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    parent = fork();
    if (parent == 0) {
        _exit(start(command, &pid, &exit_code, NULL) == 0 ? 0 : 1);
    }
    tap_ok(waitpid(parent, &status, 0) == parent && status == 0, "a rank is started");
    tap_ok(waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status) &&
               WTERMSIG(status) == SIGKILL,
           "the rank is killed when the process that started it ends");
}

int main(void)
{
    test_command();
    test_refusals();
    test_scripts();
    test_end_of_parent();
    return tap_done();
}
