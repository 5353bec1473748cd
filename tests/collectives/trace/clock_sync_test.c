/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on "nodes" whose clocks are wrong by hours learn rank 0's time over the tree of
 * ranks. All are processes of this machine, so the right time is known. */
#include "collectives/trace/clock_sync.h"

#include <poll.h>
#include <stdlib.h>

#include "collectives/transport/control/uplink.h"
#include "gpu_binding/base/clock.h"
#include "tests/collectives/job.h"
#include "tests/collectives/transport/shm/mail_data.h"
#include "tests/tap.h"

enum {
    CONNECT_MS = 60000,
    LIMIT_MS = 30000,
    NODES = 10,
};

static struct mail_node nodes[NODES]; /* used by one job after the other */

static const int64_t hour_ns = INT64_C(3600000000000), good_ns = 50000;

/* State of a rank */
static struct {
    struct hvd_control *control;
    struct hvd_uplink *uplink;
    struct mail_rank mail;
    struct hvd_clock_sync sync;
    int64_t skew_ns;
    bool is_over; /* the parent has reported the end */
    int over; /* number of children that have reported the end */
} self;

/* Each node has its own clock, which all its ranks share. */
static int64_t skewed_ns(void)
{
    return hvd_clock_ns() + self.skew_ns;
}

static int64_t skew_of(const struct hvd_boot *boot)
{
    int node = boot->layout.node[boot->rank];

    return node * (hour_ns + 12345678) * (node % 2 == 0 ? 1 : -1);
}

static void handle(void *context, const struct hvd_uplink_event *event)
{
    (void)context;
    if (event->kind != HVD_UPLINK_MESSAGE) {
        return;
    }
    if (event->type == HVD_MESSAGE_CLOCK_ASK) {
        hvd_clock_sync_on_ask(&self.sync, event);
    } else if (event->type == HVD_MESSAGE_CLOCK_ANSWER) {
        hvd_clock_sync_on_answer(&self.sync, event);
    } else if (event->from == HVD_UPLINK_PARENT) {
        self.is_over = true;
    } else {
        self.over++;
    }
}

static void progress(void)
{
    struct pollfd fd = {.fd = hvd_control_fd(self.control), .events = POLLIN};

    hvd_clock_sync_progress(&self.sync);
    if (hvd_uplink_progress_node(self.uplink, handle, NULL) +
            hvd_uplink_progress_sockets(self.uplink, handle, NULL) ==
        0) {
        poll(&fd, 1, 1);
    }
}

static bool is_aligned(void)
{
    int64_t offset_ns, error_ns;

    return hvd_clock_sync_offset(&self.sync, &offset_ns, &error_ns) == HVD_CLOCK_GOOD &&
           error_ns < good_ns;
}

/* Measures until the possible error is small enough; runs more bursts if the machine is
 * busy. */
static void measure(void)
{
    int64_t deadline_ms = hvd_clock_ms() + LIMIT_MS;

    while (!is_aligned() && hvd_clock_ms() < deadline_ms) {
        progress();
    }
}

/* Waits until all ranks have measured. */
static void leave(void)
{
    int count = hvd_uplink_children(self.uplink);

    while (self.over < count) {
        progress();
    }
    if (self.sync.has_parent) {
        hvd_uplink_send_up(self.uplink, 1, NULL, 0);
        while (!self.is_over) {
            progress();
        }
    }
    hvd_control_send_down(self.control, 1, NULL, 0);
    hvd_control_expect_close(self.control);
    hvd_uplink_destroy(self.uplink);
    mail_close_rank(&self.mail);
    hvd_control_destroy(self.control, 5000);
}

static int connect_rank(struct job_rank *rank)
{
    const struct hvd_layout *layout = &rank->boot.layout;
    struct mail_node *node = &nodes[layout->node[rank->boot.rank]];
    struct hvd_uplink_config config = {.layout = layout, .rank = rank->boot.rank};
    const void *address;
    size_t bytes;
    int leader_fd = -1, peer_fds[JOB_MAX_RANKS];

    if (hvd_control_create(&self.control, NULL) != 0) {
        return 1;
    }
    hvd_control_address(self.control, &address, &bytes);
    job_exchange(rank, address, bytes);
    if (hvd_control_connect(self.control, &rank->boot, rank->addresses, rank->bytes,
                            CONNECT_MS, &leader_fd, -1, peer_fds, NULL) != 0) {
        return 1;
    }
    node->size = hvd_layout_local_size(layout, layout->node[rank->boot.rank]);
    mail_open_rank(node, layout->local_rank[rank->boot.rank], NULL, &self.mail);
    config.control = self.control;
    config.mail = self.mail.mail;
    return hvd_uplink_create(&config, &self.uplink, NULL);
}

static int align_clock(struct job_rank *rank, const void *argument)
{
    int64_t offset_ns, error_ns;

    (void)argument;
    self.skew_ns = skew_of(&rank->boot);
    if (connect_rank(rank) != 0) {
        return 1;
    }
    hvd_clock_sync_init(&self.sync, self.uplink, &rank->boot);
    self.sync.now_ns = skewed_ns;
    measure();
    hvd_clock_sync_offset(&self.sync, &offset_ns, &error_ns);
    leave();
    job_say(rank, "%lld %lld", (long long)(offset_ns + self.skew_ns),
            (long long)error_ns);
    return 0;
}

static void clocks_are_aligned(const char *hosts)
{
    struct job job;
    long long worst = 0, limit = 0;
    int beyond = 0, heard = 0;

    for (int i = 0; i < NODES; i++) {
        mail_open_node(&nodes[i], MAIL_MAX_RANKS);
    }
    job_start(&job, hosts, align_clock, NULL);
    job_serve_exchange(&job);
    for (int rank = 0; rank < job.size; rank++) {
        char line[JOB_LINE_BYTES];
        long long error, possible;

        if (!job_hear(&job, rank, 2 * LIMIT_MS, line) ||
            sscanf(line, "%lld %lld", &error, &possible) != 2) {
            continue;
        }
        heard++;
        worst = llabs(error) > worst ? llabs(error) : worst;
        limit = possible > limit ? possible : limit;
        beyond += llabs(error) > possible ? 1 : 0;
    }
    tap_note("%s: at most %.1f us off, limit %.1f us", hosts, (double)worst / 1e3,
             (double)limit / 1e3);
    tap_ok(job_finish(&job) && heard == job.size && worst < good_ns,
           "ranks on %s know rank 0's time within 50 us", hosts);
    tap_ok(beyond == 0, "ranks know the largest possible error of that time");
    for (int i = 0; i < NODES; i++) {
        mail_close_node(&nodes[i]);
    }
}

int main(void)
{
    clocks_are_aligned("a");
    clocks_are_aligned("a a");
    clocks_are_aligned("a b");
    clocks_are_aligned("a a b b c");
    clocks_are_aligned("a b c d e f g h i j j"); /* the tenth node is two levels away */
    return tap_done();
}
