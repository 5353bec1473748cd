/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors on which threads sleep, for a rank that is alone on its node. Prints
 * TAP. */
#include "collectives/core/wakeup.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "gpu_binding/base/clock.h"
#include "tests/tap.h"

static struct hvd_wakeup wakeup;

static bool is_readable(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};

    return poll(&at, 1, 0) == 1;
}

static void test_ring(void)
{
    hvd_wakeup_notify(&wakeup);
    tap_ok(is_readable(wakeup.inner) && is_readable(wakeup.outer),
           "notify wakes the driver and the progress thread");
    hvd_wakeup_end_sleep(&wakeup);
    tap_ok(!is_readable(wakeup.inner) && !is_readable(wakeup.outer),
           "the end of the sleep drains the wake-up");
}

static void test_sleeper(void)
{
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(!is_readable(wakeup.inner),
           "a submission does not signal a driver that is awake");
    hvd_wakeup_announce_sleep(&wakeup, true);
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(!is_readable(wakeup.inner),
           "a submission does not signal a driver in a timed wait");
    hvd_wakeup_announce_sleep(&wakeup, false);
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(is_readable(wakeup.inner), "a submission wakes a driver that sleeps");
    hvd_wakeup_end_sleep(&wakeup);
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(!is_readable(wakeup.inner),
           "a submission signals a sleeping driver only once");
}

static void test_kick(void)
{
    hvd_wakeup_notify_thread(&wakeup);
    tap_ok(!is_readable(wakeup.inner) && is_readable(wakeup.outer),
           "notify_thread wakes the progress thread alone");
    hvd_wakeup_sleep_idle(&wakeup, -1);
    tap_ok(!is_readable(wakeup.outer),
           "the sleep of the progress thread drains its event");
}

static void test_muting(void)
{
    hvd_wakeup_suppress(&wakeup, true);
    hvd_wakeup_notify(&wakeup);
    tap_ok(is_readable(wakeup.inner) && !is_readable(wakeup.outer),
           "an event of the driver does not wake a muted progress thread");
    hvd_wakeup_suppress(&wakeup, false);
    tap_ok(is_readable(wakeup.outer),
           "the progress thread sees earlier events once it is unmuted");
    hvd_wakeup_end_sleep(&wakeup);
}

static void test_sleep(void)
{
    const int64_t begin_ns = hvd_clock_ns(), span_ns = 2000000;

    hvd_wakeup_sleep(&wakeup, begin_ns + span_ns);
    tap_ok(hvd_clock_ns() - begin_ns >= span_ns, "a sleep ends at its deadline");
    hvd_wakeup_notify(&wakeup);
    hvd_wakeup_sleep(&wakeup, -1);
    tap_ok(true, "a sleep ends when the driver is notified");
}

/* Notifies the driver as a thread does that loses its CPU to the thread that it wakes,
 * before it has set was_rung. */
static void notify_in_part(void)
{
    eventfd_write(wakeup.wake, 1);
}

static void test_early_wake(void)
{
    notify_in_part();
    hvd_wakeup_sleep(&wakeup, -1);
    tap_ok(!is_readable(wakeup.inner),
           "a driver that runs before the notifying thread can sleep again");
    notify_in_part();
    hvd_wakeup_drain(&wakeup);
    tap_ok(!is_readable(wakeup.outer), "so can the progress thread, once it has drained");
}

int main(void)
{
    if (!tap_ok(hvd_wakeup_open(&wakeup, NULL) == 0 &&
                    hvd_wakeup_expect_peers(&wakeup, 1, NULL) == 0,
                "the descriptors open")) {
        return tap_done();
    }
    test_ring();
    test_sleeper();
    test_kick();
    test_muting();
    test_sleep();
    test_early_wake();
    hvd_wakeup_close(&wakeup);
    return tap_done();
}
