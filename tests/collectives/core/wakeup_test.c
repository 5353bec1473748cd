/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors on which threads sleep, of a rank that is alone on its node. Prints TAP. */
#include "collectives/core/wakeup.h"

#include <poll.h>

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
           "a ring wakes the driver and the progress thread");
    hvd_wakeup_end_sleep(&wakeup);
    tap_ok(!is_readable(wakeup.inner) && !is_readable(wakeup.outer),
           "who wakes up silences it");
}

static void test_sleeper(void)
{
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(!is_readable(wakeup.inner), "nobody rings for a driver that is awake");
    hvd_wakeup_announce_sleep(&wakeup, true);
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(!is_readable(wakeup.inner), "nor for one that dozes");
    hvd_wakeup_announce_sleep(&wakeup, false);
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(is_readable(wakeup.inner), "a submission rings for one that sleeps");
    hvd_wakeup_end_sleep(&wakeup);
    hvd_wakeup_notify_sleeper(&wakeup);
    tap_ok(!is_readable(wakeup.inner), "and not again once it has woken");
}

static void test_kick(void)
{
    hvd_wakeup_notify_thread(&wakeup);
    tap_ok(!is_readable(wakeup.inner) && is_readable(wakeup.outer),
           "a kick wakes the progress thread alone");
    hvd_wakeup_sleep_idle(&wakeup, -1);
    tap_ok(!is_readable(wakeup.outer), "which has heard it once it has slept");
}

static void test_muting(void)
{
    hvd_wakeup_suppress(&wakeup, true);
    hvd_wakeup_notify(&wakeup);
    tap_ok(is_readable(wakeup.inner) && !is_readable(wakeup.outer),
           "what wakes the driver does not wake a thread that is muted");
    hvd_wakeup_suppress(&wakeup, false);
    tap_ok(is_readable(wakeup.outer), "unmuted, the thread sees what is there");
    hvd_wakeup_end_sleep(&wakeup);
}

static void test_sleep(void)
{
    const int64_t begin_ns = hvd_clock_ns(), span_ns = 2000000;

    hvd_wakeup_sleep(&wakeup, begin_ns + span_ns);
    tap_ok(hvd_clock_ns() - begin_ns >= span_ns, "sleeps until a time");
    hvd_wakeup_notify(&wakeup);
    hvd_wakeup_sleep(&wakeup, -1);
    tap_ok(true, "or until somebody rings");
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
    hvd_wakeup_close(&wakeup);
    return tap_done();
}
