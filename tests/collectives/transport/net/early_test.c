/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers who connect to UCX before the filter is there are sent away before UCX reads what they
 * say: UCX would end the process.
 *
 * usage: early_test */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/transport/net/net_listeners.h"
#include "gpu_binding/base/clock.h"
#include "tests/collectives/transport/net/net_rank.h"
#include "tests/tap.h"

enum {
    WAIT_MS = 60000,
    STRANGERS = 16, /* at each port */
    NOISE_BYTES = 400,
};

/* Of UCX's wire-up; then come bytes that it does not expect. */
static const uint64_t magic = 0xcafebabe12345678;

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* Returns the descriptor; whatever happens to it later is no failure. */
static int attack(const struct sockaddr_storage *door, unsigned *seed)
{
    unsigned char noise[sizeof(magic) + NOISE_BYTES];
    int fd = socket(door->ss_family, SOCK_STREAM, 0);

    memcpy(noise, &magic, sizeof(magic));
    for (size_t i = sizeof(magic); i < sizeof(noise); i++) {
        noise[i] = (unsigned char)rand_r(seed);
    }
    if (fd < 0 ||
        connect(fd, (const struct sockaddr *)door,
                door->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                           : sizeof(struct sockaddr_in6)) != 0 ||
        send(fd, noise, sizeof(noise), MSG_NOSIGNAL) != (ssize_t)sizeof(noise)) {
        printf("# no connection: %s\n", strerror(errno));
        exit(3);
    }
    return fd;
}

/* As if the filter came later: opens the ports, and lets strangers in. Returns how many UCX has
 * accepted. */
static int let_strangers_in(unsigned seed)
{
    const int64_t end_ms = hvd_clock_ms() + WAIT_MS;
    struct hvd_net_listeners doors;
    int before, attackers = 0, accepted = 0;

    hvd_net_listeners_find(&doors);
    before = count_descriptors();
    for (int i = 0; i < doors.count; i++) {
        struct sockaddr_storage door = {0};
        socklen_t bytes = sizeof(door);
        int ignored = 0;

        setsockopt(doors.fds[i], SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof(ignored));
        getsockname(doors.fds[i], (struct sockaddr *)&door, &bytes);
        for (int k = 0; k < STRANGERS; k++, attackers++) {
            (void)attack(&door, &seed);
        }
    }
    while (accepted < attackers && hvd_clock_ms() < end_ms) {
        usleep(1000);
        accepted = count_descriptors() - before - attackers;
    }
    return accepted;
}

static int talk(struct job_rank *self, const void *argument)
{
    const unsigned seed = *(const unsigned *)argument;
    struct hvd_net *net = net_rank_create();
    int strangers = let_strangers_in(seed);
    struct hvd_net_op ops[2];
    int peer = 1 - self->boot.rank;
    char to = 5, from = 0;
    bool is_good;

    net_rank_meet(self, net);
    net_rank_send(net, peer, 0, &to, 1, &ops[0]);
    net_rank_recv(net, peer, 0, &from, 1, &ops[1]);
    is_good = net_rank_wait(net, ops, 2, WAIT_MS) && ops[1].status == 0 && from == to;
    net_rank_gather(self, net);
    hvd_net_destroy(net);
    return strangers < STRANGERS ? 4 : is_good ? 0 : 2;
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)hvd_clock_ms());
    struct job job;

    job_start(&job, "a b", talk, &seed);
    net_rank_serve_connect(&job);
    job_serve_exchange(&job);
    tap_ok(job_finish(&job),
           "strangers that UCX let in before the filter came do not end the job");
    return tap_done();
}
