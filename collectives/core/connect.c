/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to the job. */
#include "collectives/core/connect.h"

#include <stdlib.h>
#include <unistd.h>

#include "collectives/core/card.h"
#include "collectives/core/engine_state.h"
#include "collectives/core/memory.h"
#include "collectives/core/network.h"
#include "collectives/core/open_files.h"
#include "collectives/transport/control/control.h"
#include "collectives/transport/control/uplink.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/mail.h"
#include "collectives/transport/shm/shm.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/boot.h"
#include "pmix_boot/cause.h"

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

/* The rank that ends first is often one that has noticed another's failure. */
static void tell_cause(const struct hvd_engine *engine, const struct hvd_error *err)
{
    const int culprit = hvd_control_culprit(engine->control);

    if (culprit >= 0 && culprit != engine->boot->rank) {
        hvd_cause_tell(culprit, engine->boot->rank, err->text);
    }
}

static int connect_control(struct hvd_engine *engine, int *segment, struct hvd_error *err)
{
    const struct hvd_boot *job = engine->boot;
    size_t size = (size_t)job->size;
    const void **cards = calloc(size, sizeof(cards[0]));
    size_t *card_bytes = calloc(size, sizeof(card_bytes[0]));
    int status = HVD_ERR_NOMEM;

    for (size_t i = 0; cards != NULL && card_bytes != NULL && i < size; i++) {
        cards[i] = hvd_card_address(&job->peers[i], &card_bytes[i]);
    }
    if (cards != NULL && card_bytes != NULL) {
        status = hvd_control_connect(engine->control, job, cards, card_bytes,
                                     engine->settings.start_timeout_ms, segment,
                                     hvd_wakeup_own(&engine->wakeup),
                                     hvd_wakeup_peers(&engine->wakeup), err);
        if (status != 0) {
            tell_cause(engine, err);
        }
    } else {
        hvd_fail(err, status, "no memory for the addresses of %zu ranks", size);
    }
    free(cards);
    free(card_bytes);
    return status;
}

/* Step 3: the tree, then the shared memory that it hands around. */
static int connect_node(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_layout *layout = &engine->boot->layout;
    int local_rank = layout->local_rank[engine->boot->rank];
    int local_size = hvd_layout_local_size(layout, layout->node[engine->boot->rank]);
    const struct hvd_shm_sizes sizes = {
        .local_size = local_size,
        .extra_bytes = sizeof(struct hvd_cpu_board) + hvd_mail_extra_bytes(local_size),
        .reserved_bytes = hvd_mail_reserved_bytes(local_size),
        .geometry = engine->geometry,
        .reaches = engine->settings.single_copy,
    };
    int segment = -1;
    int status = hvd_wakeup_expect_peers(&engine->wakeup, local_size, err);

    if (status == 0 && local_rank == 0) {
        segment = hvd_shm_open(&sizes, err);
        status = segment < 0 ? segment : 0;
    }
    if (status == 0) {
        status = connect_control(engine, &segment, err);
    }
    if (status == 0) {
        status = hvd_shm_create(segment, local_rank, &sizes,
                                hvd_wakeup_peers(&engine->wakeup), &engine->shm, err);
        hvd_wakeup_join(&engine->wakeup, engine->shm);
        return status;
    }
    if (segment >= 0) {
        close(segment);
    }
    return status;
}

/* Before many are opened: without one UCX ends the process. */
static int provide_open_files(const struct hvd_engine *engine, bool is_tcp,
                              struct hvd_error *err)
{
    const struct hvd_boot *boot = engine->boot;

    return hvd_open_files_provide(
        hvd_open_files_needed(&boot->layout, boot->rank, is_tcp), err);
}

static bool has_no_rdma(const struct hvd_engine *engine)
{
    char obstacle[128];

    return hvd_net_choice_has_no_rdma(engine->settings.net, obstacle, sizeof(obstacle));
}

static int open_uplink(struct hvd_engine *engine, struct hvd_error *err)
{
    struct hvd_cpu_board *board = (void *)hvd_shm_extra(engine->shm);
    struct hvd_uplink_config config = {
        .control = engine->control,
        .layout = &engine->boot->layout,
        .rank = engine->boot->rank,
    };
    int status = hvd_mail_create(engine->shm, board + 1, &engine->mail, err);

    if (status == 0) {
        config.mail = engine->mail;
        status = hvd_uplink_create(&config, &engine->uplink, err);
    }
    hvd_addresses_init(&engine->addresses, engine->uplink, engine->boot->rank,
                       engine->boot->size);
    hvd_oversubscription_join(
        &engine->oversubscription, board,
        hvd_layout_local_size(&engine->boot->layout,
                              engine->boot->layout.node[engine->boot->rank]));
    return status;
}

static int boot_job(struct hvd_engine *engine, struct hvd_boot_query *query,
                    struct hvd_error *err)
{
    const struct hvd_card_stamp stamp = {
        .algorithms = hvd_algorithms_digest(&engine->algorithms),
        .memory_limit = engine->settings.memory_limit,
    };
    int status = hvd_card_boot(&stamp, engine->control, query, &engine->boot, err);

    if (status == 0) {
        hvd_engine_settings_name_rank(&engine->settings, engine->boot->rank);
    }
    return status;
}

int hvd_connect_job(struct hvd_engine *engine, struct hvd_boot_query *query,
                    struct hvd_error *err)
{
    int status = hvd_control_create(&engine->control, err);

    if (status != 0) {
        return status;
    }
    query->timeout_ms = engine->settings.start_timeout_ms;
    status = boot_job(engine, query, err);
    if (status != 0) {
        return status;
    }
    status = hvd_card_check(engine->boot, err);
    if (status != 0) {
        return status;
    }
    status = hvd_algorithms_compare(&engine->algorithms, engine->boot, err);
    if (status != 0) {
        return status;
    }
    status = plan_memory(engine, err);
    if (status != 0) {
        return status;
    }
    status = provide_open_files(engine, has_no_rdma(engine), err);
    if (status != 0) {
        return status;
    }
    status = connect_node(engine, err);
    if (status != 0) {
        return status;
    }
    status = hvd_wakeup_watch(&engine->wakeup, hvd_control_fd(engine->control),
                              "the control sockets", err);
    if (status != 0) {
        return status;
    }
    return open_uplink(engine, err);
}

/* --- the network --- */

int hvd_connect_open_net(struct hvd_engine *engine, struct hvd_error *err)
{
    int status;

    if (engine->boot->layout.nodes == 1) {
        return 0;
    }
    status = hvd_net_create(engine->settings.net, &engine->net, err);
    if (status == 0) {
        hvd_network_open(engine);
    }
    return status;
}

static bool has_addresses(const void *arg)
{
    const struct hvd_engine *engine = arg;

    return hvd_failure_has_come(&engine->failure) ||
           hvd_addresses_are_complete(&engine->addresses);
}

_Static_assert(HVD_NET_SECRET_BYTES == HVD_SECRET_BYTES, "the net uses the job secret");

static int tell_net(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_boot *boot = engine->boot;
    const struct hvd_net_job job = {
        .rank = boot->rank,
        .size = boot->size,
        .node = boot->layout.node,
        .host = boot->peers[boot->rank].host,
        .secret = boot->secret,
        .addresses = hvd_addresses_all(&engine->addresses),
        .bytes = hvd_addresses_bytes(&engine->addresses),
    };

    return hvd_net_connect(engine->net, &job, err);
}

static int exchange(struct hvd_engine *engine, struct hvd_error *err)
{
    const int timeout_ms = engine->settings.start_timeout_ms;
    const struct hvd_error *failure = hvd_failure_error(&engine->failure);
    struct hvd_error cause = {0};
    const void *address;
    size_t bytes;
    int status;

    hvd_net_address(engine->net, &address, &bytes);
    status = hvd_addresses_begin(&engine->addresses, address, bytes, &cause);
    if (status != 0) {
        hvd_failure_end_job(engine, engine->boot->rank, status, cause.text);
    }
    if (!hvd_progress_drive(engine, has_addresses, engine,
                            hvd_clock_ns() + (int64_t)timeout_ms * 1000000)) {
        return hvd_fail(err, HVD_ERR_TIMEOUT,
                        "network addresses of all %d ranks did not come within %d s",
                        engine->boot->size, timeout_ms / 1000);
    }
    if (failure->status != 0) {
        return hvd_fail(err, failure->status, "%s", failure->text);
    }
    return tell_net(engine, err);
}

int hvd_connect_net(struct hvd_engine *engine, struct hvd_error *err)
{
    int status;

    if (engine->net == NULL) {
        return 0;
    }
    status = exchange(engine, err);
    hvd_addresses_end(&engine->addresses);
    if (status == 0 && !hvd_net_is_ucx(engine->net) && !has_no_rdma(engine)) {
        status = provide_open_files(engine, true, err);
    }
    return status != 0
               ? status
               : hvd_wakeup_watch_net(&engine->wakeup, hvd_net_fd(engine->net), err);
}
