/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors on which this rank's threads sleep, and how they are woken. */
#include "collectives/core/doorbells.h"

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

int hvd_doorbells_open(struct hvd_doorbells *bells, struct hvd_error *err)
{
    *bells = (struct hvd_doorbells){
        .inner = epoll_create1(EPOLL_CLOEXEC),
        .outer = epoll_create1(EPOLL_CLOEXEC),
        .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    pthread_mutex_init(&bells->muting, NULL);
    if (bells->inner < 0 || bells->outer < 0 || bells->wake < 0 || bells->doorbell < 0 ||
        bells->kick < 0 || add_to_epoll(bells->inner, bells->wake) != 0 ||
        add_to_epoll(bells->inner, bells->doorbell) != 0 ||
        add_to_epoll(bells->outer, bells->inner) != 0 ||
        add_to_epoll(bells->outer, bells->kick) != 0) {
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

void hvd_doorbells_close(struct hvd_doorbells *bells)
{
    for (int i = 0; i < bells->peer_count; i++) {
        close_fd(bells->peers[i]);
    }
    free(bells->peers);
    close_fd(bells->inner);
    close_fd(bells->outer);
    close_fd(bells->wake);
    close_fd(bells->doorbell);
    close_fd(bells->kick);
    pthread_mutex_destroy(&bells->muting);
}

int hvd_doorbells_expect_peers(struct hvd_doorbells *bells, int local_size,
                               struct hvd_error *err)
{
    bells->peers = malloc((size_t)local_size * sizeof(bells->peers[0]));
    if (bells->peers == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d doorbells", local_size);
    }
    bells->peer_count = local_size;
    for (int i = 0; i < local_size; i++) {
        bells->peers[i] = -1;
    }
    return 0;
}

int hvd_doorbells_own(const struct hvd_doorbells *bells)
{
    return bells->doorbell;
}

int *hvd_doorbells_peers(struct hvd_doorbells *bells)
{
    return bells->peers;
}

void hvd_doorbells_join(struct hvd_doorbells *bells, struct hvd_shm *shm)
{
    bells->shm = shm;
}

int hvd_doorbells_watch(struct hvd_doorbells *bells, int fd, const char *what,
                        struct hvd_error *err)
{
    return add_to_epoll(bells->inner, fd) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_SYS, "cannot watch %s: %m", what);
}

int hvd_doorbells_watch_net(struct hvd_doorbells *bells, int fd, struct hvd_error *err)
{
    bells->net_fd = fd;
    return hvd_doorbells_watch(bells, fd, "the network", err);
}

void hvd_doorbells_ring(struct hvd_doorbells *bells)
{
    eventfd_write(bells->wake, 1);
    /* After: who sees it finds something to drain. */
    atomic_store(&bells->was_rung, true);
}

void hvd_doorbells_kick(struct hvd_doorbells *bells)
{
    eventfd_write(bells->kick, 1);
}

void hvd_doorbells_mute(struct hvd_doorbells *bells, bool is_muted)
{
    struct epoll_event event = {.events = is_muted ? 0 : EPOLLIN,
                                .data.fd = bells->inner};

    pthread_mutex_lock(&bells->muting);
    if (bells->is_muted != is_muted) {
        epoll_ctl(bells->outer, EPOLL_CTL_MOD, bells->inner, &event);
        bells->is_muted = is_muted;
    }
    pthread_mutex_unlock(&bells->muting);
}

/* If there are others; whoever is about to ring the doorbell may do so only later. */
static void tell_local_ranks(struct hvd_doorbells *bells, bool is_asleep)
{
    eventfd_t rings = 0;

    bells->says_asleep = is_asleep;
    bells->due_rings += hvd_shm_set_asleep(bells->shm, is_asleep) ? 1 : 0;
    if (!is_asleep && bells->due_rings > 0 &&
        eventfd_read(bells->doorbell, &rings) == 0) {
        bells->due_rings -= rings;
    }
}

void hvd_doorbells_say_asleep(struct hvd_doorbells *bells, bool dozes)
{
    atomic_store(&bells->asleep, !dozes);
    if (bells->peer_count > 1) {
        tell_local_ranks(bells, true);
    }
}

bool hvd_doorbells_arm_net(struct hvd_doorbells *bells, struct hvd_net *net,
                           bool is_ignored)
{
    struct epoll_event event = {.events = is_ignored ? 0 : EPOLLIN,
                                .data.fd = bells->net_fd};

    if (bells->ignores_net != is_ignored) {
        epoll_ctl(bells->inner, EPOLL_CTL_MOD, bells->net_fd, &event);
        bells->ignores_net = is_ignored;
    }
    return !is_ignored && hvd_net_arm(net) != 0;
}

bool hvd_doorbells_ignore_net(const struct hvd_doorbells *bells)
{
    return bells->ignores_net;
}

/* Mostly nothing was said and nothing has rung: loads cost less than exchanges. Only the
 * driver, which this is, says that the rank sleeps; a ring that is not seen yet is seen
 * by a later call. */
void hvd_doorbells_wake_up(struct hvd_doorbells *bells)
{
    eventfd_t rings;

    if (atomic_load(&bells->asleep)) {
        atomic_store(&bells->asleep, false);
    }
    if (atomic_load(&bells->was_rung) && atomic_exchange(&bells->was_rung, false)) {
        eventfd_read(bells->wake, &rings);
    }
    if (bells->says_asleep || bells->due_rings > 0) {
        tell_local_ranks(bells, false);
    }
}

/* True: it is readable. */
static bool sleep_on(int fd, int64_t until_ns)
{
    const int64_t second = 1000000000;
    struct pollfd bell = {.fd = fd, .events = POLLIN};
    int64_t left = until_ns - hvd_clock_ns();
    struct timespec timeout = {0};

    if (left > 0) {
        timeout.tv_sec = (time_t)(left / second);
        timeout.tv_nsec = (long)(left % second);
    }
    return ppoll(&bell, 1, until_ns < 0 ? NULL : &timeout, NULL) > 0;
}

void hvd_doorbells_sleep(struct hvd_doorbells *bells, int64_t until_ns)
{
    sleep_on(bells->inner, until_ns);
}

void hvd_doorbells_sleep_idle(struct hvd_doorbells *bells, int64_t until_ns)
{
    eventfd_t kicks;

    if (sleep_on(bells->outer, until_ns)) {
        eventfd_read(bells->kick, &kicks);
    }
}
