/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that polls the connections of the children. */
#include "contrib/bench/hvd_bench/library_child/hub.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/library_child/pmi.h"
#include "gpu_binding/base/error.h"

/* There is one hub in a process: */
static pthread_t thread;
static bool is_serving;
static const char goodbye[] = "cmd=finalize";

/* One child. */
struct guest {
    int fd;
    bool has_left; /* in good order */
    size_t used;
    char line[BENCH_PMI_LINE]; /* what has come of the next one */
};

struct hub {
    struct bench_pmi *pmi;
    int size;
    int listener;
    char greeting[BENCH_GREETING];
    struct guest *guests; /* [size] */
};

static int listen_anywhere(int *port, struct hvd_error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
        listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        hvd_fail(err, HVD_ERR_SYS, "cannot listen: %m");
        if (fd >= 0) {
            close(fd);
        }
        return HVD_ERR_SYS;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static int send_all(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);

        if (sent <= 0) {
            return HVD_ERR_NET;
        }
        data += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

/* Nothing else tells the others: they are in a call of their library. */
static void end(const char *why)
{
    fprintf(stderr, "hvd-bench: %s\n", why);
    _exit(1);
}

static void answer_line(struct hub *hub, struct guest *guest, const char *line)
{
    char answer[BENCH_PMI_LINE + 1];
    enum bench_pmi_to to = bench_pmi_answer(hub->pmi, line, answer);
    size_t length;

    if (to == BENCH_PMI_NOBODY) {
        return;
    }
    strcat(answer, "\n");
    length = strlen(answer);
    for (int i = 0; i < hub->size; i++) {
        struct guest *one = &hub->guests[i];

        if (to == BENCH_PMI_ALL || one == guest) {
            send_all(one->fd, answer, length); /* who has left is noticed elsewhere */
        }
    }
}

static void hear(struct hub *hub, struct guest *guest)
{
    ssize_t got = recv(guest->fd, guest->line + guest->used,
                       sizeof(guest->line) - 1 - guest->used, 0);
    char *newline;

    if (got <= 0) {
        end("a peer's process died");
    }
    guest->used += (size_t)got;
    guest->line[guest->used] = '\0';
    while ((newline = strchr(guest->line, '\n')) != NULL) {
        newline[0] = '\0';
        guest->has_left = strcmp(guest->line, goodbye) == 0;
        answer_line(hub, guest, guest->line);
        guest->used -= (size_t)(newline + 1 - guest->line);
        memmove(guest->line, newline + 1, guest->used + 1);
    }
    if (guest->used == sizeof(guest->line) - 1) {
        end("a peer's process speaks no PMI");
    }
}

static void *serve(void *argument)
{
    struct hub *hub = argument;
    struct pollfd *all = calloc((size_t)hub->size, sizeof(all[0]));

    if (all == NULL) {
        end("out of memory");
    }
    for (int i = 0; i < hub->size; i++) {
        int fd = accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 || send_all(fd, hub->greeting, sizeof(hub->greeting)) < 0) {
            end("a peer's process died");
        }
        hub->guests[i].fd = fd;
        all[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    close(hub->listener);
    for (int left = 0; left < hub->size;) {
        if (poll(all, (nfds_t)hub->size, -1) < 0 && errno != EINTR) {
            end("poll failed");
        }
        for (int i = 0; i < hub->size; i++) {
            if (all[i].revents != 0) {
                hear(hub, &hub->guests[i]);
            }
            if (all[i].fd >= 0 && hub->guests[i].has_left) {
                all[i].fd = -1;
                left++;
            }
        }
    }
    return NULL;
}

int bench_hub_start(const char *layout, const char greeting[BENCH_GREETING], int *port,
                    struct hvd_error *err)
{
    struct hub *hub = calloc(1, sizeof(*hub)); /* ends with the process */

    if (hub == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    hub->pmi = bench_pmi_create(layout);
    hub->size = hub->pmi != NULL ? bench_pmi_size(hub->pmi) : 0;
    hub->guests = calloc((size_t)hub->size + 1, sizeof(hub->guests[0]));
    hub->listener = listen_anywhere(port, err);
    memcpy(hub->greeting, greeting, sizeof(hub->greeting));
    if (hub->listener < 0) {
        return hub->listener;
    }
    if (hub->size == 0 || hub->guests == NULL ||
        pthread_create(&thread, NULL, serve, hub) != 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "cannot serve the layout %.80s",
                        layout);
    }
    is_serving = true;
    return 0;
}

static int receive_all(int fd, char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = recv(fd, data, bytes, 0);

        if (got <= 0) {
            return HVD_ERR_NET;
        }
        data += got;
        bytes -= (size_t)got;
    }
    return 0;
}

int bench_hub_join(const char *host, int port, char greeting[BENCH_GREETING], int *fd,
                   struct hvd_error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port)};

    *fd = socket(AF_INET, SOCK_STREAM, 0);
    if (*fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        connect(*fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        receive_all(*fd, greeting, BENCH_GREETING) < 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "cannot reach %s port %d: %m", host,
                        port);
    }
    return 0;
}

void bench_hub_leave(int fd)
{
    if (fd >= 0) {
        send_all(fd, goodbye, strlen(goodbye));
        send_all(fd, "\n", 1);
    }
    if (is_serving) {
        pthread_join(thread, NULL);
    }
}
