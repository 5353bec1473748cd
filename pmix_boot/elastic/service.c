/* SPDX-License-Identifier: Apache-2.0 */
/* One thread, one poll loop: connections bring events to the roster, the roster says what to do. */
#include "pmix_boot/elastic/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/log.h"
#include "pmix_boot/elastic/message.h"
#include "pmix_boot/elastic/service_state.h"
#include "pmix_boot/elastic/sockets.h"

/* Who has not proven in time that it has the key is a stranger. */
static const int64_t greeting_ms = 10000;

/* --- what members say --- */

static int take_join(struct hvd_service *service, struct hvd_connection *connection,
                     const struct hvd_channel_message *message)
{
    struct hvd_elastic_join head;
    const char *data = message->data;
    void *card;

    if (message->bytes < sizeof(head)) {
        return HVD_ERR_NET;
    }
    memcpy(&head, data, sizeof(head));
    if (head.host_bytes >= HVD_SERVICE_HOST_BYTES ||
        message->bytes - sizeof(head) < head.host_bytes ||
        message->bytes - sizeof(head) - head.host_bytes != head.card_bytes) {
        return HVD_ERR_NET;
    }
    card = malloc(head.card_bytes + 1);
    if (card == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(card, data + sizeof(head) + head.host_bytes, head.card_bytes);
    free(connection->card);
    connection->card = card;
    connection->card_bytes = head.card_bytes;
    snprintf(connection->host, sizeof(connection->host), "%.*s", (int)head.host_bytes,
             data + sizeof(head));
    hvd_roster_join(&service->roster, hvd_channel_fd(connection->channel), head.slot,
                    hvd_elastic_now_ms());
    return 0;
}

static int take_message(struct hvd_service *service, struct hvd_connection *connection,
                        const struct hvd_channel_message *message)
{
    switch (message->type) {
    case HVD_ELASTIC_JOIN:
        return take_join(service, connection, message);
    case HVD_ELASTIC_READY:
        hvd_roster_ready(&service->roster, hvd_channel_fd(connection->channel));
        return 0;
    default:
        return HVD_ERR_NET;
    }
}

static int admit(struct hvd_service *service, struct hvd_connection *connection)
{
    if (connection->is_member || !hvd_channel_is_open(connection->channel)) {
        return 0;
    }
    connection->is_member = true;
    return hvd_roster_add(&service->roster, hvd_channel_fd(connection->channel));
}

static void serve(struct hvd_service *service, struct hvd_connection *connection)
{
    struct hvd_channel_message message;
    int alive = hvd_channel_progress(connection->channel);
    int status = admit(service, connection);

    while (status == 0 &&
           (status = hvd_channel_next(connection->channel, &message)) == 0) {
        status = take_message(service, connection, &message);
    }
    connection->is_over = connection->is_over || alive < 0 || status < 0;
}

/* --- who comes and goes --- */

static int accept_one(struct hvd_service *service)
{
    int fd =
        accept4(service->config->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct hvd_connection *grown;
    struct pollfd *polls;

    if (fd < 0) {
        return 0;
    }
    grown = realloc(service->connections, (service->count + 1) * sizeof(*grown));
    service->connections = grown != NULL ? grown : service->connections;
    polls = realloc(service->polls, (service->count + 3) * sizeof(*polls));
    service->polls = polls != NULL ? polls : service->polls;
    if (grown == NULL || polls == NULL) {
        close(fd);
        return HVD_ERR_NOMEM;
    }
    hvd_elastic_keep_alive(fd);
    grown[service->count] = (struct hvd_connection){.since_ms = hvd_elastic_now_ms()};
    if (hvd_channel_create(fd, HVD_CHANNEL_SERVICE, service->config->key,
                           &grown[service->count].channel) < 0) {
        close(fd);
        return HVD_ERR_NOMEM;
    }
    service->count++;
    return 0;
}

static void bury(struct hvd_service *service, struct hvd_connection *connection)
{
    int32_t rank = -1;

    if (connection->is_member) {
        rank = hvd_roster_remove(&service->roster, hvd_channel_fd(connection->channel),
                                 hvd_elastic_now_ms());
    }
    if (rank >= 0) {
        hvd_service_say(service, HVD_ELASTIC_LOST, &rank, sizeof(rank));
        hvd_log(HVD_LOG_INFO, "elastic: rank %d on %s is gone", (int)rank,
                connection->host);
    }
    hvd_channel_destroy(connection->channel);
    free(connection->card);
    *connection = service->connections[--service->count];
}

static void remove_dead(struct hvd_service *service)
{
    int64_t now = hvd_elastic_now_ms();
    size_t i = 0;

    while (i < service->count) {
        struct hvd_connection *connection = &service->connections[i];

        if (connection->is_over ||
            (!connection->is_member && now - connection->since_ms > greeting_ms)) {
            bury(service, connection);
            i = 0; /* telling the others may have shown that one of them is gone too */
        } else {
            i++;
        }
    }
}

/* --- the launcher's orders --- */

static void take_order(struct hvd_service *service, const char *line)
{
    int expected;

    if (sscanf(line, "expect %d", &expected) == 1) {
        hvd_roster_expect(&service->roster, expected);
    }
}

static void read_orders(struct hvd_service *service)
{
    char *free_part = service->order + service->order_bytes;
    ssize_t bytes = read(service->config->orders, free_part,
                         sizeof(service->order) - 1 - service->order_bytes);
    char *end;

    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (bytes <= 0) {
        service->is_over = true;
        return;
    }
    service->order_bytes += (size_t)bytes;
    service->order[service->order_bytes] = '\0';
    while ((end = strchr(service->order, '\n')) != NULL) {
        *end = '\0';
        take_order(service, service->order);
        service->order_bytes -= (size_t)(end + 1 - service->order);
        memmove(service->order, end + 1, service->order_bytes + 1);
    }
}

/* --- the loop --- */

static size_t fill_polls(struct hvd_service *service)
{
    struct pollfd *polls = service->polls;

    polls[0] = (struct pollfd){.fd = service->config->listening, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = service->config->orders, .events = POLLIN};
    for (size_t i = 0; i < service->count; i++) {
        struct hvd_channel *channel = service->connections[i].channel;

        polls[2 + i] = (struct pollfd){.fd = hvd_channel_fd(channel), .events = POLLIN};
        polls[2 + i].events |= hvd_channel_is_pending(channel) ? POLLOUT : 0;
    }
    return 2 + service->count;
}

static int wait_ms(const struct hvd_service *service, int64_t again_ms)
{
    int64_t left = again_ms >= 0 ? again_ms - hvd_elastic_now_ms() : -1;
    bool has_stranger = false;

    for (size_t i = 0; i < service->count; i++) {
        has_stranger = has_stranger || !service->connections[i].is_member;
    }
    if (again_ms >= 0 && left < 0) {
        left = 0;
    }
    if (has_stranger && (left < 0 || left > greeting_ms)) {
        left = greeting_ms;
    }
    return left > 3600000 ? 3600000 : (int)left;
}

static int run_once(struct hvd_service *service, int64_t again_ms)
{
    size_t count = fill_polls(service);
    int status = 0;

    if (poll(service->polls, (nfds_t)count, wait_ms(service, again_ms)) < 0) {
        return 0;
    }
    for (size_t i = 0; i + 2 < count; i++) {
        if (service->polls[2 + i].revents != 0) {
            serve(service, &service->connections[i]);
        }
    }
    if (service->polls[1].revents != 0) {
        read_orders(service);
    }
    if (service->polls[0].revents != 0) {
        status = accept_one(service);
    }
    remove_dead(service);
    return status;
}

int hvd_service_run(const struct hvd_service_config *config)
{
    struct hvd_service service = {.config = config};
    int64_t again_ms = -1;
    int status = 0;

    hvd_roster_init(&service.roster, &config->rules);
    service.polls = calloc(2, sizeof(*service.polls));
    status = service.polls != NULL ? 0 : HVD_ERR_NOMEM;
    while (status == 0 && !service.is_over) {
        status = run_once(&service, again_ms);
        status = status != 0 ? status : hvd_service_act(&service, &again_ms);
    }
    for (size_t i = 0; i < service.count; i++) {
        hvd_channel_destroy(service.connections[i].channel);
        free(service.connections[i].card);
    }
    free(service.connections);
    free(service.polls);
    hvd_roster_finish(&service.roster);
    return status;
}
