/* SPDX-License-Identifier: Apache-2.0 */
/* The orders that hvdrun and srun send to the service of an elastic job. */
#include "pmix_boot/rendezvous/start.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

/* Reads what has arrived at the service's end, at most size - 1 bytes. */
static const char *heard(int orders, char *text, size_t size)
{
    ssize_t bytes = read(orders, text, size - 1);

    text[bytes > 0 ? bytes : 0] = '\0';
    return text;
}

static void test_orders(void)
{
    int orders[2];
    char text[64];
    struct hvd_rendezvous_service service = {.pid = 1};

    if (pipe2(orders, O_NONBLOCK | O_CLOEXEC) != 0) {
        tap_ok(false, "a pipe");
        return;
    }
    service.orders = orders[1];
    hvd_rendezvous_expect(&service, 1, 3);
    tap_ok(strcmp(heard(orders[0], text, sizeof(text)), "expect 3 without 1\n") == 0,
           "the service is told how many ranks are still expected");
    hvd_rendezvous_leave(&service, 2);
    hvd_rendezvous_stay(&service, 2);
    hvd_rendezvous_done(&service);
    tap_ok(strcmp(heard(orders[0], text, sizeof(text)), "leave 2\nstay 2\ndone\n") == 0,
           "the service is told of removed slots and of the end of the job");
    service.pid = 0;
    hvd_rendezvous_expect(&service, 1, 3);
    hvd_rendezvous_done(&service);
    tap_ok(heard(orders[0], text, sizeof(text))[0] == '\0',
           "a service that was not started gets no orders");
}

static void test_events(void)
{
    static const char lines[] = "begun 3\ndrop 1\nover -1\n";
    struct hvd_rendezvous_service service = {.pid = 1};
    enum hvd_rendezvous_event event;
    int events[2];
    int slot;

    if (pipe2(events, O_NONBLOCK | O_CLOEXEC) != 0 ||
        write(events[1], lines, sizeof(lines) - 1) < 0) {
        tap_ok(false, "a pipe");
        return;
    }
    service.events = events[0];
    tap_ok(hvd_rendezvous_next_event(&service, &event, &slot) == 0 &&
               event == HVD_RENDEZVOUS_BEGUN && slot == 3,
           "the service reports which slot has begun");
    tap_ok(hvd_rendezvous_next_event(&service, &event, &slot) == 0 &&
               event == HVD_RENDEZVOUS_DROPPED && slot == 1,
           "the service reports which slot is dropped");
    tap_ok(hvd_rendezvous_next_event(&service, &event, &slot) == 0 &&
               event == HVD_RENDEZVOUS_OVER,
           "the service reports that the job is over");
    tap_ok(hvd_rendezvous_next_event(&service, &event, &slot) == HVD_INPROGRESS,
           "no event is left");
    close(events[1]);
    tap_ok(hvd_rendezvous_next_event(&service, &event, &slot) == HVD_ERR_NET,
           "the end of the service is noticed");
}

int main(void)
{
    test_orders();
    test_events();
    return tap_done();
}
