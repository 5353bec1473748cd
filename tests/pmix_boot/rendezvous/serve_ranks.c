/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher without PMIx: starts the rendezvous service and N ranks of a command,
 * reports to the service which of them have ended, and fails if one failed.
 * usage: serve_ranks HVD_RENDEZVOUS N COMMAND [ARGUMENT...] */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmix_boot/rendezvous/start.h"
#include "tests/tap.h"

enum {
    MOST = 256
};

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    setenv(name, text, 1);
}

static pid_t start_rank(int rank, char **command)
{
    pid_t pid = fork();

    if (pid == 0) {
        set_number("HOROVOD_RANK", rank);
        execvp(command[0], command);
        fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

/* Waits until all have ended. Returns whether one failed. */
static int watch(const struct hvd_rendezvous_service *service, const pid_t *pids,
                 int count)
{
    int failed = EXIT_SUCCESS;

    for (int left = count; left > 0;) {
        int status = 0;
        pid_t pid = wait(&status);

        for (int rank = 0; rank < count; rank++) {
            if (pids[rank] == pid) {
                hvd_rendezvous_ended(service, rank, status);
                failed = status != 0 ? EXIT_FAILURE : failed;
                left--;
            }
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    const int count = argc > 3 ? atoi(argv[2]) : 0;
    const struct hvd_rendezvous_rules rules = {.np = count, .is_here = true};
    struct hvd_rendezvous_service service;
    char address[HVD_RENDEZVOUS_START_TEXT_BYTES + 16];
    pid_t pids[MOST];
    struct hvd_error err;
    int status;

    if (count < 1 || count > MOST) {
        return EXIT_FAILURE;
    }
    if (hvd_rendezvous_start(argv[1], &rules, &service, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    snprintf(address, sizeof(address), "127.0.0.1:%s", service.address);
    setenv("HVD_RENDEZVOUS", address, 1);
    set_number("HOROVOD_SIZE", count);
    for (int rank = 0; rank < count; rank++) {
        pids[rank] = start_rank(rank, argv + 3);
    }
    status = watch(&service, pids, count);
    hvd_rendezvous_stop(&service);
    return status;
}
