/* SPDX-License-Identifier: Apache-2.0 */
/* Falling asleep and waking up: which bells ring, and that no event is lost in between.
 *
 * In this order:
 *   1. say so (engine->asleep for submissions, the shared flag for local ranks)
 *   2. look once more at everything that would have rung a bell
 *   3. sleep, until a bell rings or the agreement has something due
 *
 * While the progress thread dozes and no batch is under way, it does not listen to the network:
 * another rank has only begun what this one is about to submit. Woken by that, the thread would
 * fight with the caller for the cpu. */
#include <sys/epoll.h>
#include <unistd.h>

#include "collectives/engine/engine_state.h"

static bool has_fresh(struct hvd_engine *engine)
{
    bool fresh;

    pthread_mutex_lock(&engine->mail);
    fresh = engine->fresh != NULL;
    pthread_mutex_unlock(&engine->mail);
    return fresh;
}

uint64_t hvd_engine_silence(int eventfd)
{
    uint64_t rings = 0;
    ssize_t got = read(eventfd, &rings, sizeof(rings));

    return got == sizeof(rings) ? rings : 0;
}

/* To local ranks; whoever is about to ring the doorbell may do so only later. */
static void say_asleep(struct hvd_engine *engine, bool asleep)
{
    engine->due_rings += hvd_shm_set_asleep(engine->shm, asleep) ? 1 : 0;
    if (!asleep && engine->due_rings > 0) {
        engine->due_rings -= hvd_engine_silence(engine->doorbell);
    }
}

void hvd_engine_wake_up(struct hvd_engine *engine)
{
    atomic_store(&engine->asleep, false);
    if (atomic_exchange(&engine->was_rung, false)) {
        hvd_engine_silence(engine->wake);
    }
    say_asleep(engine, false);
}

static void ignore_net(struct hvd_engine *engine, bool ignored)
{
    struct epoll_event event = {.events = ignored ? 0 : EPOLLIN,
                                .data.fd = hvd_net_fd(engine->net)};

    if (engine->ignores_net != ignored) {
        epoll_ctl(engine->inner, EPOLL_CTL_MOD, event.data.fd, &event);
        engine->ignores_net = ignored;
    }
}

/* Returns true when something is there. */
static bool listen_to_net(struct hvd_engine *engine, bool dozes)
{
    bool ignored;

    if (engine->net == NULL) {
        return false;
    }
    ignored =
        dozes && hvd_teams_are_idle(engine->teams) && !hvd_net_is_sending(engine->net);
    ignore_net(engine, ignored);
    return !ignored && hvd_net_arm(engine->net) != 0;
}

bool hvd_engine_fall_asleep(struct hvd_engine *engine, bool dozes)
{
    atomic_store(&engine->asleep, !dozes);
    say_asleep(engine, true);
    if (has_fresh(engine) || hvd_uplink_has_mail(engine->uplink) ||
        listen_to_net(engine, dozes) || hvd_engine_run_batches(engine)) {
        hvd_engine_wake_up(engine);
        return false;
    }
    return true;
}

void hvd_engine_ring(int fd)
{
    const uint64_t one = 1;
    ssize_t wrote HVD_UNUSED = write(fd, &one, sizeof(one));
}

void hvd_engine_mute(struct hvd_engine *engine, bool is_muted)
{
    struct epoll_event event = {.events = is_muted ? 0 : EPOLLIN,
                                .data.fd = engine->inner};

    pthread_mutex_lock(&engine->muting);
    if (engine->is_muted != is_muted) {
        epoll_ctl(engine->outer, EPOLL_CTL_MOD, engine->inner, &event);
        engine->is_muted = is_muted;
    }
    pthread_mutex_unlock(&engine->muting);
}
