/* SPDX-License-Identifier: Apache-2.0 */
/* Getting connected: from a lone process to a rank that can run collectives.
 *
 *   1. open the control sockets; their addresses are this rank's card
 *   2. boot: ranks, nodes, job secret, everybody's card; all have the same table of algorithms
 *   3. connect the control tree; over it the node's shared memory and doorbells
 *   4. the teams; more than one node: the network, whose addresses go up the tree and come down
 *   5. start the progress thread */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "collectives/engine/card.h"
#include "collectives/engine/descriptors.h"
#include "collectives/engine/engine_state.h"
#include "collectives/engine/memory.h"
#include "collectives/engine/settings.h"
#include "collectives/engine/thread_cpu.h"
#include "collectives/transport/control/mailbox.h"
#include "gpu_binding/base/log.h"

/* Ranks of an elastic job that die one after the other, each while the rest connect. */
static const int most_attempts = 100;

static int add_to_epoll(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int open_bells(struct hvd_engine *engine, struct hvd_error *err)
{
    engine->inner = epoll_create1(EPOLL_CLOEXEC);
    engine->outer = epoll_create1(EPOLL_CLOEXEC);
    engine->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    engine->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    engine->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (engine->inner < 0 || engine->outer < 0 || engine->wake < 0 ||
        engine->doorbell < 0 || engine->kick < 0 ||
        add_to_epoll(engine->inner, engine->wake) != 0 ||
        add_to_epoll(engine->inner, engine->doorbell) != 0 ||
        add_to_epoll(engine->outer, engine->inner) != 0 ||
        add_to_epoll(engine->outer, engine->kick) != 0) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot open descriptors (limit: ulimit -n): %m");
    }
    return 0;
}

static int init_locks(struct hvd_engine *engine, struct hvd_error *err)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);

    failed |= pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed |= pthread_cond_init(&engine->ended, &attributes);
    failed |= pthread_mutex_init(&engine->recording, NULL);
    failed |= pthread_mutex_init(&engine->drive, NULL);
    failed |= pthread_mutex_init(&engine->mail, NULL);
    failed |= pthread_mutex_init(&engine->turn, NULL);
    failed |= pthread_mutex_init(&engine->muting, NULL);
    pthread_condattr_destroy(&attributes);
    return failed == 0 ? 0 : hvd_fail(err, HVD_ERR_SYS, "cannot create locks");
}

static struct hvd_engine *engine_alloc(void)
{
    struct hvd_engine *engine = calloc(1, sizeof(*engine));

    if (engine != NULL) {
        engine->inner = engine->outer = engine->wake = engine->doorbell = engine->kick =
            -1;
        engine->fresh_end = &engine->fresh;
    }
    return engine;
}

/* The same on all ranks, whatever each was told. */
static int plan_memory(struct hvd_engine *engine, struct hvd_error *err)
{
    int64_t strictest = 0;

    for (int i = 0; i < engine->boot->size; i++) {
        strictest = hvd_memory_stricter(
            strictest, hvd_card_of(&engine->boot->peers[i]).memory_limit);
    }
    return hvd_memory_plan(strictest, engine->boot->layout.nodes, &engine->geometry, err);
}

static int connect_control(struct hvd_engine *engine, int timeout_ms, int *segment,
                           struct hvd_error *err)
{
    const struct hvd_boot *job = engine->boot;
    size_t size = (size_t)job->size;
    const void **cards = calloc(size, sizeof(cards[0]));
    size_t *card_bytes = calloc(size, sizeof(card_bytes[0]));
    int status = HVD_ERR_NOMEM;

    for (size_t i = 0; cards != NULL && card_bytes != NULL && i < size; i++) {
        cards[i] = hvd_card_address(&job->peers[i], &card_bytes[i]);
    }
    if (cards != NULL && card_bytes != NULL && engine->peer_bells != NULL) {
        status = hvd_control_connect(engine->control, job, cards, card_bytes, timeout_ms,
                                     segment, engine->doorbell, engine->peer_bells, err);
    } else {
        hvd_fail(err, status, "no memory for the addresses of %zu ranks", size);
    }
    free(cards);
    free(card_bytes);
    return status;
}

/* Step 3: the tree, then the shared memory that it hands around. */
static int join_node(struct hvd_engine *engine, int timeout_ms, struct hvd_error *err)
{
    const struct hvd_layout *layout = &engine->boot->layout;
    int local_rank = layout->local_rank[engine->boot->rank];
    int local_size = hvd_layout_local_size(layout, layout->node[engine->boot->rank]);
    const struct hvd_shm_sizes sizes = {
        .local_size = local_size,
        .extra_bytes = sizeof(*engine->board) + hvd_mailbox_bytes(local_size),
        .geometry = engine->geometry,
        .reaches = engine->settings.single_copy,
    };
    int segment = -1;
    int status = 0;

    engine->peer_bells = malloc((size_t)local_size * sizeof(engine->peer_bells[0]));
    engine->peer_bell_count = engine->peer_bells != NULL ? local_size : 0;
    for (int i = 0; i < engine->peer_bell_count; i++) {
        engine->peer_bells[i] = -1;
    }
    if (local_rank == 0) {
        segment = hvd_shm_open(&sizes, err);
        status = segment < 0 ? segment : 0;
    }
    if (status == 0) {
        status = connect_control(engine, timeout_ms, &segment, err);
    }
    if (status == 0) {
        status = hvd_shm_create(segment, local_rank, &sizes, engine->peer_bells,
                                &engine->shm, err);
        if (status == 0) {
            engine->board = (void *)hvd_shm_extra(engine->shm);
        }
        return status;
    }
    if (segment >= 0) {
        close(segment);
    }
    return status;
}

/* Before many are opened: without one UCX ends the process. */
static int provide_descriptors(const struct hvd_engine *engine, struct hvd_error *err)
{
    return hvd_descriptors_provide(hvd_descriptors_needed(&engine->boot->layout,
                                                          engine->boot->rank,
                                                          hvd_descriptors_are_for_tcp()),
                                   err);
}

static void wake_local_rank(void *context, int local_rank)
{
    struct hvd_engine *engine = context;

    hvd_shm_ring(engine->shm, local_rank);
}

static int open_uplink(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_uplink_config config = {
        .control = engine->control,
        .layout = &engine->boot->layout,
        .rank = engine->boot->rank,
        .memory = engine->board + 1,
        .wake = wake_local_rank,
        .wake_context = engine,
    };

    return hvd_uplink_create(&config, &engine->uplink, err);
}

/* Step 4. The exchange drives the engine, teams included. */
static int open_teams(struct hvd_engine *engine, int timeout_ms, struct hvd_error *err)
{
    bool has_net = engine->boot->layout.nodes > 1;
    int status = has_net ? hvd_net_create(&engine->net, err) : 0;
    const struct hvd_teams_config config = {.boot = engine->boot,
                                            .shm = engine->shm,
                                            .net = engine->net,
                                            .geometry = engine->geometry,
                                            .algorithms = engine->algorithms,
                                            .gpu = engine->gpu};

    status = status != 0 ? status : hvd_teams_create(&config, &engine->teams, err);
    if (status == 0) {
        hvd_teams_watch(engine->teams, hvd_engine_batch_started, engine);
    }
    if (status != 0 || !has_net) {
        return status;
    }
    status = hvd_addresses_exchange(engine, timeout_ms, err);
    if (status == 0 && add_to_epoll(engine->inner, hvd_net_fd(engine->net)) != 0) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot watch the network: %m");
    }
    return status;
}

static int open_report(struct hvd_engine *engine, struct hvd_error *err)
{
    const char *report = engine->settings.report;

    return report == NULL ? 0
                          : hvd_lateness_report_create(engine->boot, engine->uplink,
                                                       report, &engine->report, err);
}

/* Tells the others of the node which cpus this rank may use. */
static void join_crowd(struct hvd_engine *engine)
{
    if (sched_getaffinity(0, sizeof(engine->cpus), &engine->cpus) != 0) {
        CPU_ZERO(&engine->cpus); /* more cpus than a cpu_set_t has: there is room */
    }
    hvd_crowd_add(engine->board, &engine->cpus);
}

static int start_thread(struct hvd_engine *engine, struct hvd_error *err)
{
    int error = pthread_create(&engine->thread, NULL, hvd_engine_thread, engine);

    if (error != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot start the progress thread: %s",
                        strerror(error));
    }
    engine->has_thread = true;
    return 0;
}

/* A thread elsewhere is slower, not wrong: what fails is only said. What is wrong with the
 * list is said by one rank of the node. */
static void place_thread(struct hvd_engine *engine, const char *list)
{
    const struct hvd_layout *layout = &engine->boot->layout;
    int local_rank = layout->local_rank[engine->boot->rank];
    int local_size = hvd_layout_local_size(layout, layout->node[engine->boot->rank]);
    struct hvd_error error = {0};
    int cpu;

    if (list == NULL) {
        return;
    }
    cpu = hvd_thread_cpu_find(list, local_rank, local_size, &error);
    if (cpu < 0) {
        hvd_log(local_rank == 0 ? HVD_LOG_WARN : HVD_LOG_INFO,
                "%s; the progress thread is not moved", error.text);
    } else if (hvd_thread_cpu_pin(engine->thread, cpu, &error) != 0) {
        hvd_log(HVD_LOG_WARN, "%s", error.text);
    }
}

static int join(struct hvd_engine *engine, struct hvd_boot_query *query,
                struct hvd_error *err)
{
    struct hvd_settings *settings = &engine->settings;
    int status = init_locks(engine, err);

    hvd_settings_read(settings);
    hvd_algorithms_read(engine);
    query->timeout_ms = settings->start_timeout_ms;
    hvd_net_behave();
    status = status != 0 ? status : open_bells(engine, err);
    status = status != 0 ? status : hvd_control_create(&engine->control, err);
    status = status != 0 ? status : hvd_card_boot(engine, query, err);
    if (status == 0) {
        hvd_settings_name_rank(settings, engine->boot->rank);
        status = hvd_card_check(engine->boot, err);
        status = status != 0 ? status : hvd_algorithms_compare(engine, err);
        status = status != 0 ? status : plan_memory(engine, err);
        status = status != 0 ? status : provide_descriptors(engine, err);
    }
    if (status == 0) {
        status = join_node(engine, settings->start_timeout_ms, err);
    }
    if (status != 0) {
        return status;
    }
    if (add_to_epoll(engine->inner, hvd_control_fd(engine->control)) != 0) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot watch the control sockets: %m");
    }
    join_crowd(engine);
    status = status != 0 ? status : open_uplink(engine, err);
    status = status != 0 ? status : hvd_engine_open_timeline(engine, err);
    status = status != 0 ? status : hvd_agree_create(engine, err);
    status = status != 0 ? status : hvd_tuning_create(engine, err);
    status = status != 0 ? status : hvd_engine_open_gpu(engine, err);
    status = status != 0 ? status : open_teams(engine, settings->start_timeout_ms, err);
    status = status != 0 ? status : open_report(engine, err);
    status = status != 0 ? status : start_thread(engine, err);
    if (status == 0) {
        place_thread(engine, settings->thread_affinity);
    }
    return status;
}

/* Whether the ranks that are left of an elastic job may begin anew. */
static bool may_begin_anew(const struct hvd_engine *engine, int status)
{
    if (engine->boot == NULL || !engine->boot->is_elastic) {
        return false;
    }
    return status == HVD_ERR_PEER ||
           ((status == HVD_ERR_NET || status == HVD_ERR_TIMEOUT) &&
            hvd_boot_lost(engine->boot) >= 0);
}

/* *again: the failure is another rank's. */
static int try_to_join(struct hvd_boot_query *query, struct hvd_engine **out, bool *again,
                       struct hvd_error *err)
{
    struct hvd_engine *engine = engine_alloc();
    int status;

    *again = false;
    if (engine == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
    }
    status = join(engine, query, err);
    if (status != 0) {
        *again = may_begin_anew(engine, status);
        hvd_engine_destroy(engine);
        return status;
    }
    *out = engine;
    return 0;
}

int hvd_engine_create(const int *ranks, int count, struct hvd_engine **out,
                      struct hvd_error *err)
{
    struct hvd_boot_query query = {.ranks = ranks, .count = count};
    struct hvd_error failure = {0};
    bool again = true;
    int status = 0;

    for (int attempt = 0; again && attempt < most_attempts; attempt++) {
        status = try_to_join(&query, out, &again, &failure);
        if (again) {
            hvd_log(HVD_LOG_INFO, "beginning anew: %s", failure.text);
        }
    }
    return status == 0 ? 0 : hvd_fail(err, status, "%s", failure.text);
}
