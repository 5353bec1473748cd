/* SPDX-License-Identifier: Apache-2.0 */
/* The srun side of the reports: a thread that listens, folds and prints. */
#include "spank/report.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spank/report_wire.h"
#include "spank/shapes.h"

/* Nodes report within milliseconds of each other; who takes longer is printed apart. */
enum {
    QUIET_MS = 3000
};

/* At the end of the step all nodes have written; only the network may still hold it. Who
 * connects without knowing the key cannot hold srun up for ever. */
enum {
    LAST_MS = 200,
    STRANGERS_MAX = 16
};

struct hvd_report {
    int listener;
    int end; /* an eventfd: the step is over */
    int nodes;
    pid_t owner;
    pthread_t thread;
    struct hvd_report_key key;
    struct hvd_shapes waiting; /* in, but not printed */
    int printed; /* nodes */
    int strangers; /* connections that brought no report */
};

static void print_waiting(struct hvd_report *report)
{
    flockfile(stderr);
    hvd_shapes_print(&report->waiting, stderr);
    funlockfile(stderr);
    report->printed += report->waiting.host_count;
    hvd_shapes_finish(&report->waiting);
}

/* Takes one report, or drops what is none. */
static void accept_one(struct hvd_report *report)
{
    int fd = accept4(report->listener, NULL, NULL, SOCK_CLOEXEC);
    struct hvd_report_message message;

    if (fd < 0) {
        return;
    }
    if (hvd_report_receive(fd, &report->key, &message) == 0) {
        hvd_shapes_add(&report->waiting, message.host, message.text);
        free(message.text);
    } else {
        report->strangers++;
    }
    close(fd);
}

static bool is_complete(const struct hvd_report *report)
{
    return report->printed + report->waiting.host_count >= report->nodes;
}

static void *collect(void *argument)
{
    struct hvd_report *report = argument;
    struct pollfd fds[2] = {{.fd = report->listener, .events = POLLIN},
                            {.fd = report->end, .events = POLLIN}};
    bool is_ending = false;

    while (!is_complete(report) && report->strangers < STRANGERS_MAX) {
        int quiet = report->waiting.host_count > 0 ? QUIET_MS : -1;
        int ready = poll(fds, is_ending ? 1 : 2, is_ending ? LAST_MS : quiet);

        if (ready == 0) {
            print_waiting(report);
            if (is_ending) {
                break;
            }
        } else if (ready > 0 && (fds[0].revents & POLLIN) != 0) {
            accept_one(report);
        } else if (ready > 0) {
            is_ending = true;
        }
    }
    print_waiting(report);
    return NULL;
}

/* srun handles its signals in a thread of its own: ours takes none. */
static int start_thread(struct hvd_report *report, struct hvd_error *err)
{
    sigset_t all;
    sigset_t old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&report->thread, NULL, collect, report);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc == 0
               ? 0
               : hvd_fail(err, HVD_ERR_SYS, "cannot start a thread: %s", strerror(rc));
}

static int open_report(struct hvd_report *report, char *address, struct hvd_error *err)
{
    int port = 0;
    int rc = hvd_report_key_make(&report->key, err);

    if (rc == 0) {
        rc = hvd_report_listen(report->nodes, &report->listener, &port, err);
    }
    if (rc != 0) {
        return rc;
    }
    report->end = eventfd(0, EFD_CLOEXEC);
    if (report->end < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create an eventfd: %m");
    }
    snprintf(address, HVD_REPORT_ADDRESS_BYTES, "%d:%s", port, report->key.text);
    return start_thread(report, err);
}

static void free_report(struct hvd_report *report)
{
    if (report->listener >= 0) {
        close(report->listener);
    }
    if (report->end >= 0) {
        close(report->end);
    }
    hvd_shapes_finish(&report->waiting);
    free(report);
}

int hvd_report_create(int nodes, char address[HVD_REPORT_ADDRESS_BYTES],
                      struct hvd_report **report, struct hvd_error *err)
{
    struct hvd_report *made = calloc(1, sizeof(*made));
    int rc;

    if (made == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    made->listener = -1;
    made->end = -1;
    made->nodes = nodes;
    made->owner = getpid();
    rc = open_report(made, address, err);
    if (rc != 0) {
        free_report(made);
        return rc;
    }
    *report = made;
    return 0;
}

void hvd_report_destroy(struct hvd_report *report)
{
    uint64_t one = 1;

    /* A child that srun forked has the memory but not the thread. */
    if (report == NULL || report->owner != getpid()) {
        return;
    }
    if (write(report->end, &one, sizeof(one)) == (ssize_t)sizeof(one)) {
        pthread_join(report->thread, NULL);
    }
    if (report->printed < report->nodes) {
        fprintf(stderr, "hvd: no binding table from %d of %d nodes\n",
                report->nodes - report->printed, report->nodes);
    }
    free_report(report);
}
