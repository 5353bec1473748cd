/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/early_end.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/number.h"
#include "pmix_boot/launch_env.h"
#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/rendezvous/missing.h"

enum {
    /* A start by PMIx takes less, unless ranks call init at different times. Then each
     * waiting rank opens a connection to the service. */
    QUIET_MS = 1000,
    /* how long to try to reach the service, which a firewall may prevent */
    REACH_MS = 2000
};

static atomic_bool has_called_init;

/* Returns the address of the service of a static job, or NULL if there is none. */
static const char *find_service(void)
{
    enum hvd_launch_kind launch = HVD_LAUNCH_SINGLE;

    /* without PMIx, so that a job that has both counts, too */
    if (hvd_launch_decide((const char *const *)environ, false, &launch, NULL) < 0 ||
        launch != HVD_LAUNCH_RENDEZVOUS) {
        return NULL;
    }
    return getenv(HVD_ENV_RENDEZVOUS);
}

/* --- the rank that ends --- */

static bool is_task(void)
{
    return hvd_number_of_variable(HVD_ENV_SLURM_TASK_PID) == getpid();
}

static void tell_end(int status, void *unused)
{
    struct hvd_missing_end end = {.rank = hvd_number_of_variable(HVD_ENV_RANK),
                                  .wait_status = W_EXITCODE(status & 0xff, 0)};
    const struct hvd_channel_message message = {HVD_RENDEZVOUS_ENDED, &end, sizeof(end)};
    struct hvd_channel_message answer;
    struct hvd_rendezvous_call *call = NULL;
    const char *address;

    (void)unused;
    if (atomic_load(&has_called_init) || !is_task() ||
        (address = find_service()) == NULL) {
        return;
    }
    gethostname(end.host, sizeof(end.host) - 1);
    if (hvd_rendezvous_call_begin(address, REACH_MS, &call, NULL) == 0) {
        /* after the answer, nothing is lost if the kernel discards this connection */
        (void)hvd_rendezvous_call_ask(call, &message, REACH_MS, &answer, NULL);
        hvd_rendezvous_call_end(call);
    }
}

HVD_CONSTRUCTOR static void watch_own_end(void)
{
    if (is_task() && hvd_number_of_variable(HVD_ENV_RANK) >= 0 &&
        find_service() != NULL) {
        (void)on_exit(tell_end, NULL);
    }
}

void hvd_early_end_forget(void)
{
    atomic_store(&has_called_init, true);
}

/* --- a rank that waits --- */

static struct hvd_channel *open_watch(const char *address)
{
    struct hvd_rendezvous_call *call = NULL;
    struct hvd_channel *channel;

    if (hvd_rendezvous_call_begin(address, REACH_MS, &call, NULL) < 0) {
        return NULL;
    }
    channel = hvd_rendezvous_call_release(call);
    if (hvd_channel_send(channel, HVD_RENDEZVOUS_WATCH, NULL, 0) < 0) {
        hvd_channel_destroy(channel);
        return NULL;
    }
    return channel;
}

static bool is_awaited(const struct hvd_modex_query *query, int rank)
{
    for (int i = 0; i < query->count; i++) {
        if (query->ranks[i] == rank) {
            return true;
        }
    }
    return query->ranks == NULL;
}

/* Takes what the service has told. Returns HVD_INPROGRESS if that changes nothing, 0 if
 * it will tell nothing more, or HVD_ERR_PEER. */
static int take_ends(struct hvd_channel *channel, const struct hvd_modex_query *query,
                     struct hvd_error *err)
{
    const int alive = hvd_channel_progress(channel);
    struct hvd_channel_message message;
    struct hvd_missing_end end;

    while (hvd_channel_next(channel, &message) == 0) {
        if (message.type != HVD_RENDEZVOUS_ENDED || message.bytes != sizeof(end)) {
            return 0;
        }
        memcpy(&end, message.data, sizeof(end));
        if (is_awaited(query, end.rank)) {
            return hvd_missing_fail_end(&end, query->ranks != NULL, err);
        }
    }
    return alive < 0 ? 0 : HVD_INPROGRESS;
}

/* Waits for one of two descriptors, or one if other is -1. Returns whether fd is ready,
 * or the time is up. */
static bool wait_for(int fd, int other, int64_t deadline_ms)
{
    struct pollfd polls[] = {{.fd = fd, .events = POLLIN},
                             {.fd = other, .events = POLLIN}};
    const int64_t left_ms = deadline_ms - hvd_clock_ms();

    if (left_ms <= 0) {
        return true;
    }
    return poll(polls, 2, (int)left_ms) > 0 && polls[0].revents != 0;
}

static bool is_ready(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, 0) > 0;
}

int hvd_early_end_wait(int fd, const struct hvd_modex_query *query, struct hvd_error *err)
{
    const int64_t begin_ms = hvd_clock_ms();
    const char *address = find_service();
    struct hvd_channel *channel = NULL;
    int status = HVD_INPROGRESS;

    while (!wait_for(fd, -1, begin_ms + QUIET_MS)) {
    }
    if (!is_ready(fd) && address != NULL) {
        channel = open_watch(address);
    }
    while (channel != NULL && status == HVD_INPROGRESS &&
           !wait_for(fd, hvd_channel_fd(channel), begin_ms + query->timeout_ms)) {
        status = take_ends(channel, query, err);
    }
    hvd_channel_destroy(channel);
    return status == HVD_ERR_PEER ? status : 0;
}
