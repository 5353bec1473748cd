/* SPDX-License-Identifier: Apache-2.0 */
/* The file descriptors on which this rank's threads sleep, and how they are woken. */
#include "collectives/core/wakeup.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/shm.h"
#include "gpu_binding/base/clock.h"

static int add_to_epoll(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int hvd_wakeup_open(struct hvd_wakeup *wakeup, struct hvd_error *err)
{
    *wakeup = (struct hvd_wakeup){
        .inner = epoll_create1(EPOLL_CLOEXEC),
        .outer = epoll_create1(EPOLL_CLOEXEC),
        .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .local_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .thread_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    pthread_mutex_init(&wakeup->muting, NULL);
    if (wakeup->inner < 0 || wakeup->outer < 0 || wakeup->wake < 0 ||
        wakeup->local_event < 0 || wakeup->thread_event < 0 ||
        add_to_epoll(wakeup->inner, wakeup->wake) != 0 ||
        add_to_epoll(wakeup->inner, wakeup->local_event) != 0 ||
        add_to_epoll(wakeup->outer, wakeup->inner) != 0 ||
        add_to_epoll(wakeup->outer, wakeup->thread_event) != 0) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot open descriptors (limit: ulimit -n): %m");
    }
    return 0;
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

void hvd_wakeup_close(struct hvd_wakeup *wakeup)
{
    for (int i = 0; i < wakeup->peer_count; i++) {
        close_fd(wakeup->peers[i]);
    }
    free(wakeup->peers);
    close_fd(wakeup->inner);
    close_fd(wakeup->outer);
    close_fd(wakeup->wake);
    close_fd(wakeup->local_event);
    close_fd(wakeup->thread_event);
    pthread_mutex_destroy(&wakeup->muting);
}

int hvd_wakeup_expect_peers(struct hvd_wakeup *wakeup, int local_size,
                            struct hvd_error *err)
{
    wakeup->peers = malloc((size_t)local_size * sizeof(wakeup->peers[0]));
    if (wakeup->peers == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the eventfds of %d ranks",
                        local_size);
    }
    wakeup->peer_count = local_size;
    for (int i = 0; i < local_size; i++) {
        wakeup->peers[i] = -1;
    }
    return 0;
}

int hvd_wakeup_own(const struct hvd_wakeup *wakeup)
{
    return wakeup->local_event;
}

int *hvd_wakeup_peers(struct hvd_wakeup *wakeup)
{
    return wakeup->peers;
}

void hvd_wakeup_join(struct hvd_wakeup *wakeup, struct hvd_shm *shm)
{
    wakeup->shm = shm;
}

int hvd_wakeup_watch(struct hvd_wakeup *wakeup, int fd, const char *what,
                     struct hvd_error *err)
{
    return add_to_epoll(wakeup->inner, fd) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_SYS, "cannot watch %s: %m", what);
}

int hvd_wakeup_watch_net(struct hvd_wakeup *wakeup, int fd, struct hvd_error *err)
{
    wakeup->net_fd = fd;
    return hvd_wakeup_watch(wakeup, fd, "the network", err);
}

void hvd_wakeup_notify(struct hvd_wakeup *wakeup)
{
    eventfd_write(wakeup->wake, 1);
    /* set after the write, so that a thread that sees the flag finds a count to drain */
    atomic_store(&wakeup->was_rung, true);
}

void hvd_wakeup_notify_thread(struct hvd_wakeup *wakeup)
{
    eventfd_write(wakeup->thread_event, 1);
}

void hvd_wakeup_suppress(struct hvd_wakeup *wakeup, bool is_muted)
{
    struct epoll_event event = {.events = is_muted ? 0 : EPOLLIN,
                                .data.fd = wakeup->inner};

    pthread_mutex_lock(&wakeup->muting);
    if (wakeup->is_muted != is_muted) {
        epoll_ctl(wakeup->outer, EPOLL_CTL_MOD, wakeup->inner, &event);
        wakeup->is_muted = is_muted;
    }
    pthread_mutex_unlock(&wakeup->muting);
}

/* Tells the other local ranks, if any, whether this rank sleeps. A rank that has just
 * seen this rank asleep may signal the eventfd after this call: due_rings counts such
 * signals. */
static void tell_local_ranks(struct hvd_wakeup *wakeup, bool is_asleep)
{
    eventfd_t rings = 0;

    wakeup->says_asleep = is_asleep;
    wakeup->due_rings += hvd_shm_set_asleep(wakeup->shm, is_asleep) ? 1 : 0;
    if (!is_asleep && wakeup->due_rings > 0 &&
        eventfd_read(wakeup->local_event, &rings) == 0) {
        wakeup->due_rings -= rings;
    }
}

void hvd_wakeup_announce_sleep(struct hvd_wakeup *wakeup, bool is_timed)
{
    atomic_store(&wakeup->asleep, !is_timed);
    if (wakeup->peer_count > 1) {
        tell_local_ranks(wakeup, true);
    }
}

bool hvd_wakeup_arm_net(struct hvd_wakeup *wakeup, struct hvd_net *net, bool is_ignored)
{
    struct epoll_event event = {.events = is_ignored ? 0 : EPOLLIN,
                                .data.fd = wakeup->net_fd};

    if (wakeup->ignores_net != is_ignored) {
        epoll_ctl(wakeup->inner, EPOLL_CTL_MOD, wakeup->net_fd, &event);
        wakeup->ignores_net = is_ignored;
    }
    return !is_ignored && hvd_net_arm(net) != 0;
}

bool hvd_wakeup_ignore_net(const struct hvd_wakeup *wakeup)
{
    return wakeup->ignores_net;
}

/* Usually nothing has been announced or signalled, so the loads come first, which are
 * cheaper than exchanges. Only the driver, which calls this, announces sleep. A signal
 * that is not visible yet is drained by a later call. */
void hvd_wakeup_end_sleep(struct hvd_wakeup *wakeup)
{
    eventfd_t rings;

    if (atomic_load(&wakeup->asleep)) {
        atomic_store(&wakeup->asleep, false);
    }
    if (atomic_load(&wakeup->was_rung) && atomic_exchange(&wakeup->was_rung, false)) {
        eventfd_read(wakeup->wake, &rings);
    }
    if (wakeup->says_asleep || wakeup->due_rings > 0) {
        tell_local_ranks(wakeup, false);
    }
}

/* Returns true if the descriptor is readable. */
static bool sleep_on(int fd, int64_t until_ns)
{
    const int64_t second = 1000000000;
    struct pollfd event = {.fd = fd, .events = POLLIN};
    int64_t left = until_ns - hvd_clock_ns();
    struct timespec timeout = {0};

    if (left > 0) {
        timeout.tv_sec = (time_t)(left / second);
        timeout.tv_nsec = (long)(left % second);
    }
    return ppoll(&event, 1, until_ns < 0 ? NULL : &timeout, NULL) > 0;
}

void hvd_wakeup_drain(struct hvd_wakeup *wakeup)
{
    eventfd_t rings;

    atomic_store(&wakeup->was_rung, false);
    eventfd_read(wakeup->wake, &rings);
}

void hvd_wakeup_sleep(struct hvd_wakeup *wakeup, int64_t until_ns)
{
    if (sleep_on(wakeup->inner, until_ns)) {
        hvd_wakeup_drain(wakeup);
    }
}

void hvd_wakeup_sleep_idle(struct hvd_wakeup *wakeup, int64_t until_ns)
{
    eventfd_t thread_events;

    if (sleep_on(wakeup->outer, until_ns)) {
        eventfd_read(wakeup->thread_event, &thread_events);
    }
}
