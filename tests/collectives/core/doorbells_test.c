/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors on which threads sleep, of a rank that is alone on its node. Prints TAP. */
#include "collectives/core/doorbells.h"

#include <poll.h>

#include "gpu_binding/base/clock.h"
#include "tests/tap.h"

static struct hvd_doorbells bells;

static bool is_readable(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};

    return poll(&at, 1, 0) == 1;
}

static void test_ring(void)
{
    hvd_doorbells_ring(&bells);
    tap_ok(is_readable(bells.inner) && is_readable(bells.outer),
           "a ring wakes the driver and the progress thread");
    hvd_doorbells_wake_up(&bells);
    tap_ok(!is_readable(bells.inner) && !is_readable(bells.outer),
           "who wakes up silences it");
}

static void test_sleeper(void)
{
    hvd_doorbells_ring_sleeper(&bells);
    tap_ok(!is_readable(bells.inner), "nobody rings for a driver that is awake");
    hvd_doorbells_say_asleep(&bells, true);
    hvd_doorbells_ring_sleeper(&bells);
    tap_ok(!is_readable(bells.inner), "nor for one that dozes");
    hvd_doorbells_say_asleep(&bells, false);
    hvd_doorbells_ring_sleeper(&bells);
    tap_ok(is_readable(bells.inner), "a submission rings for one that sleeps");
    hvd_doorbells_wake_up(&bells);
    hvd_doorbells_ring_sleeper(&bells);
    tap_ok(!is_readable(bells.inner), "and not again once it has woken");
}

static void test_kick(void)
{
    hvd_doorbells_kick(&bells);
    tap_ok(!is_readable(bells.inner) && is_readable(bells.outer),
           "a kick wakes the progress thread alone");
    hvd_doorbells_sleep_idle(&bells, -1);
    tap_ok(!is_readable(bells.outer), "which has heard it once it has slept");
}

static void test_muting(void)
{
    hvd_doorbells_mute(&bells, true);
    hvd_doorbells_ring(&bells);
    tap_ok(is_readable(bells.inner) && !is_readable(bells.outer),
           "what wakes the driver does not wake a thread that is muted");
    hvd_doorbells_mute(&bells, false);
    tap_ok(is_readable(bells.outer), "unmuted, the thread sees what is there");
    hvd_doorbells_wake_up(&bells);
}

static void test_sleep(void)
{
    const int64_t begin_ns = hvd_clock_ns(), span_ns = 2000000;

    hvd_doorbells_sleep(&bells, begin_ns + span_ns);
    tap_ok(hvd_clock_ns() - begin_ns >= span_ns, "sleeps until a time");
    hvd_doorbells_ring(&bells);
    hvd_doorbells_sleep(&bells, -1);
    tap_ok(true, "or until somebody rings");
}

int main(void)
{
    if (!tap_ok(hvd_doorbells_open(&bells, NULL) == 0 &&
                    hvd_doorbells_expect_peers(&bells, 1, NULL) == 0,
                "the descriptors open")) {
        return tap_done();
    }
    test_ring();
    test_sleeper();
    test_kick();
    test_muting();
    test_sleep();
    hvd_doorbells_close(&bells);
    return tap_done();
}
