/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to the job. */
#include "collectives/core/connect.h"

#include <stdlib.h>
#include <unistd.h>

#include "collectives/core/card.h"
#include "collectives/core/job_state.h"
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

/* Uses the strictest limit of all ranks, so that the geometry is the same on all. */
static int plan_memory(struct hvd_job *job, struct hvd_error *err)
{
    int64_t strictest = 0;

    for (int i = 0; i < job->boot->size; i++) {
        strictest = hvd_memory_stricter(strictest,
                                        hvd_card_of(&job->boot->peers[i]).memory_limit);
    }
    return hvd_memory_plan(strictest, job->boot->layout.nodes, &job->geometry, err);
}

/* Reports the rank to blame if the control network knows one that failed: the rank that
 * ends first has often only noticed the failure of another. */
static void tell_cause(const struct hvd_job *job, const struct hvd_error *err)
{
    const int culprit = hvd_control_culprit(job->control);

    if (culprit >= 0 && culprit != job->boot->rank) {
        hvd_cause_tell(culprit, job->boot->rank, err->text);
    }
}

static int connect_control(struct hvd_job *job, int *segment, struct hvd_error *err)
{
    const struct hvd_boot *boot = job->boot;
    size_t size = (size_t)boot->size;
    const void **cards = calloc(size, sizeof(cards[0]));
    size_t *card_bytes = calloc(size, sizeof(card_bytes[0]));
    int status = HVD_ERR_NOMEM;

    for (size_t i = 0; cards != NULL && card_bytes != NULL && i < size; i++) {
        cards[i] = hvd_card_address(&boot->peers[i], &card_bytes[i]);
    }
    if (cards != NULL && card_bytes != NULL) {
        status = hvd_control_connect(
            job->control, boot, cards, card_bytes, job->settings.start_timeout_ms,
            segment, hvd_wakeup_own(&job->wakeup), hvd_wakeup_peers(&job->wakeup), err);
        if (status != 0) {
            tell_cause(job, err);
        }
    } else {
        hvd_fail(err, status, "no memory for the addresses of %zu ranks", size);
    }
    free(cards);
    free(card_bytes);
    return status;
}

/* Step 3: connects the tree, then maps the shared memory that it passes around. */
static int connect_node(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_layout *layout = &job->boot->layout;
    int local_rank = layout->local_rank[job->boot->rank];
    int local_size = hvd_layout_local_size(layout, layout->node[job->boot->rank]);
    const struct hvd_shm_sizes sizes = {
        .local_size = local_size,
        .extra_bytes = sizeof(struct hvd_cpu_board) + hvd_mail_extra_bytes(local_size),
        .reserved_bytes =
            hvd_mail_reserved_bytes(local_size) + hvd_metrics_bytes(local_size),
        .geometry = job->geometry,
        .reaches = job->settings.single_copy,
    };
    int segment = -1;
    int status = hvd_wakeup_expect_peers(&job->wakeup, local_size, err);

    if (status == 0 && local_rank == 0) {
        segment = hvd_shm_open(&sizes, err);
        status = segment < 0 ? segment : 0;
    }
    if (status == 0) {
        status = connect_control(job, &segment, err);
    }
    if (status == 0) {
        status = hvd_shm_create(segment, local_rank, &sizes,
                                hvd_wakeup_peers(&job->wakeup), &job->shm, err);
        hvd_wakeup_join(&job->wakeup, job->shm);
        return status;
    }
    if (segment >= 0) {
        close(segment);
    }
    return status;
}

/* Raises the limit on open files before the connections are opened: UCX ends the process
 * if it cannot open a file. */
static int provide_open_files(const struct hvd_job *job, bool is_tcp,
                              struct hvd_error *err)
{
    const struct hvd_boot *boot = job->boot;

    return hvd_open_files_provide(
        hvd_open_files_needed(&boot->layout, boot->rank, is_tcp), err);
}

static bool has_no_rdma(const struct hvd_job *job)
{
    char obstacle[128];

    return hvd_net_choice_has_no_rdma(job->settings.net, obstacle, sizeof(obstacle));
}

static int open_uplink(struct hvd_job *job, struct hvd_error *err)
{
    struct hvd_cpu_board *board = (void *)hvd_shm_extra(job->shm);
    struct hvd_uplink_config config = {
        .control = job->control,
        .layout = &job->boot->layout,
        .rank = job->boot->rank,
    };
    int status = hvd_mail_create(job->shm, board + 1, &job->mail, err);

    if (status == 0) {
        config.mail = job->mail;
        status = hvd_uplink_create(&config, &job->uplink, err);
    }
    hvd_addresses_init(&job->addresses, job->uplink, job->boot->rank, job->boot->size);
    hvd_oversubscription_join(
        &job->oversubscription, board,
        hvd_layout_local_size(&job->boot->layout,
                              job->boot->layout.node[job->boot->rank]));
    return status;
}

static int boot_job(struct hvd_job *job, struct hvd_boot_query *query,
                    struct hvd_error *err)
{
    const struct hvd_card_stamp stamp = {
        .algorithms = hvd_algorithms_digest(&job->algorithms),
        .memory_limit = job->settings.memory_limit,
        .pid = getpid(),
    };
    int status = hvd_card_boot(&stamp, job->control, query, &job->boot, err);

    if (status == 0) {
        hvd_job_settings_name_rank(&job->settings, job->boot->rank);
    }
    return status;
}

int hvd_connect_job(struct hvd_job *job, struct hvd_boot_query *query,
                    struct hvd_error *err)
{
    int status = hvd_control_create(&job->control, err);

    if (status != 0) {
        return status;
    }
    query->timeout_ms = job->settings.start_timeout_ms;
    status = boot_job(job, query, err);
    if (status != 0) {
        return status;
    }
    status = hvd_card_check(job->boot, err);
    if (status != 0) {
        return status;
    }
    status = hvd_algorithms_compare(&job->algorithms, job->boot, err);
    if (status != 0) {
        return status;
    }
    status = plan_memory(job, err);
    if (status != 0) {
        return status;
    }
    status = provide_open_files(job, has_no_rdma(job), err);
    if (status != 0) {
        return status;
    }
    status = connect_node(job, err);
    if (status != 0) {
        return status;
    }
    status = hvd_wakeup_watch(&job->wakeup, hvd_control_fd(job->control),
                              "the control sockets", err);
    if (status != 0) {
        return status;
    }
    return open_uplink(job, err);
}

/* --- the network --- */

int hvd_connect_open_net(struct hvd_job *job, struct hvd_error *err)
{
    int status;

    if (job->boot->layout.nodes == 1) {
        return 0;
    }
    status = hvd_net_create(job->settings.net, &job->net, err);
    if (status == 0) {
        hvd_network_open(job);
    }
    return status;
}

static bool has_addresses(const void *arg)
{
    const struct hvd_job *job = arg;

    return hvd_failure_has_come(&job->failure) ||
           hvd_addresses_are_complete(&job->addresses);
}

_Static_assert(HVD_NET_SECRET_BYTES == HVD_SECRET_BYTES, "the net uses the job secret");

static int tell_net(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_boot *boot = job->boot;
    const struct hvd_net_job net_job = {
        .rank = boot->rank,
        .size = boot->size,
        .node = boot->layout.node,
        .host = boot->peers[boot->rank].host,
        .secret = boot->secret,
        .addresses = hvd_addresses_all(&job->addresses),
        .bytes = hvd_addresses_bytes(&job->addresses),
    };

    return hvd_net_connect(job->net, &net_job, err);
}

static int gather_addresses(struct hvd_job *job, struct hvd_error *err)
{
    const int timeout_ms = job->settings.start_timeout_ms;
    const struct hvd_error *failure = hvd_failure_error(&job->failure);
    struct hvd_error cause = {0};
    const void *address;
    size_t bytes;
    int status;

    hvd_net_address(job->net, &address, &bytes);
    status = hvd_addresses_begin(&job->addresses, address, bytes, &cause);
    if (status != 0) {
        hvd_failure_end_job(job, job->boot->rank, status, cause.text);
    }
    if (!hvd_progress_drive(job, has_addresses, job,
                            hvd_clock_ns() + (int64_t)timeout_ms * 1000000)) {
        return hvd_fail(err, HVD_ERR_TIMEOUT,
                        "network addresses of all %d ranks did not arrive within %d s",
                        job->boot->size, timeout_ms / 1000);
    }
    if (failure->status != 0) {
        return hvd_fail(err, failure->status, "%s", failure->text);
    }
    return tell_net(job, err);
}

int hvd_connect_net(struct hvd_job *job, struct hvd_error *err)
{
    int status;

    if (job->net == NULL) {
        return 0;
    }
    status = gather_addresses(job, err);
    hvd_addresses_end(&job->addresses);
    if (status == 0 && !hvd_net_is_ucx(job->net) && !has_no_rdma(job)) {
        status = provide_open_files(job, true, err);
    }
    return status != 0 ? status
                       : hvd_wakeup_watch_net(&job->wakeup, hvd_net_fd(job->net), err);
}
