/* SPDX-License-Identifier: Apache-2.0 */
/* One report on the wire: "KEY HOST\n", the table, end of stream. */
#include "spank/report_wire.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "spank/report.h"

/* srun and the nodes are up and near each other; longer means that a firewall is between. */
enum {
    WAIT_MS = 2000
};

int hvd_report_key_make(struct hvd_report_key *key, struct hvd_error *err)
{
    unsigned char bytes[(sizeof(key->text) - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot get random bytes: %m");
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(key->text + 2 * i, 3, "%02x", bytes[i]);
    }
    return 0;
}

static int open_listener(int family, int backlog)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    bool is_six = family == AF_INET6;
    int both = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return -1;
    }
    if (is_six) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
    }
    if (bind(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
             is_six ? sizeof(six) : sizeof(four)) != 0 ||
        listen(fd, backlog) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int hvd_report_listen(int backlog, int *listener, int *port, struct hvd_error *err)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    int fd = open_listener(AF_INET6, backlog);

    if (fd < 0) {
        fd = open_listener(AF_INET, backlog);
    }
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        return hvd_fail(err, HVD_ERR_NET, "cannot listen for binding tables: %m");
    }
    /* The port is at the same place in the addresses of both families. */
    *port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    *listener = fd;
    return 0;
}

static int elapsed_ms(const struct timespec *since)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)((now.tv_sec - since->tv_sec) * 1000 +
                 (now.tv_nsec - since->tv_nsec) / 1000000);
}

/* Reads to the end of the stream. Returns the length, or -1. */
static ssize_t read_all(int fd, char *buffer, size_t bytes)
{
    struct timespec start;
    size_t used = 0;

    clock_gettime(CLOCK_MONOTONIC, &start);
    while (used < bytes) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int left = WAIT_MS - elapsed_ms(&start);
        ssize_t got;
        int count = left <= 0 ? 0 : poll(&ready, 1, left);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return -1;
        }
        got = recv(fd, buffer + used, bytes - used, MSG_DONTWAIT);
        if (got <= 0) {
            return got == 0 ? (ssize_t)used : -1;
        }
        used += (size_t)got;
    }
    return -1;
}

/* What came from the network goes to the user's terminal: nothing but text. */
static void make_printable(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        if (*c != '\n' && !isprint((unsigned char)*c)) {
            *c = '?';
        }
    }
}

static int split(char *buffer, const struct hvd_report_key *key,
                 struct hvd_report_message *message)
{
    size_t key_length = strlen(key->text);
    char *host = buffer + key_length + 1;
    char *end = strchr(buffer, '\n');

    if (strncmp(buffer, key->text, key_length) != 0 || buffer[key_length] != ' ' ||
        end == NULL || end - host >= (ssize_t)sizeof(message->host)) {
        return HVD_ERR_NET;
    }
    *end = '\0';
    make_printable(host);
    make_printable(end + 1);
    message->text = strdup(end + 1);
    snprintf(message->host, sizeof(message->host), "%s", host);
    return message->text != NULL ? 0 : HVD_ERR_NOMEM;
}

int hvd_report_receive(int fd, const struct hvd_report_key *key,
                       struct hvd_report_message *message)
{
    size_t bytes = HVD_REPORT_TEXT_BYTES + sizeof(*key) + sizeof(message->host);
    char *buffer = malloc(bytes + 1);
    ssize_t length = buffer != NULL ? read_all(fd, buffer, bytes) : -1;
    int rc = HVD_ERR_NET;

    if (length > (ssize_t)strlen(key->text)) {
        buffer[length] = '\0';
        rc = split(buffer, key, message);
    }
    free(buffer);
    return rc;
}
