/* SPDX-License-Identifier: Apache-2.0 */
/* One poll loop serves all connections. It passes their events to the roster, which
 * decides what to do; service_step.c does it. */
#include "pmix_boot/rendezvous/service.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/rendezvous/service_state.h"
#include "pmix_boot/rendezvous/service_step.h"
#include "pmix_boot/sock/socket.h"

/* How long to accept nothing after the process ran out of descriptors. */
static const int64_t full_ms = 100;

enum {
    /* connections without proof, in addition to those of ranks that start at once */
    STRANGERS = 64,
};

/* --- messages from ranks --- */

/* Adds the connection to the roster when it sends its first message for the roster. */
static int admit_connection(struct hvd_service *service,
                            struct hvd_connection *connection)
{
    if (connection->is_member) {
        return 0;
    }
    if (hvd_roster_add(&service->roster, hvd_channel_fd(connection->channel)) < 0) {
        return HVD_ERR_NOMEM;
    }
    connection->is_member = true;
    return 0;
}

/* Gives a new connection the place of a rank that waits and asks again by the same
 * number: the rank's first connection was reset, which this process has not noticed.
 * Returns whether there is such a rank. */
static bool take_place(struct hvd_service *service, struct hvd_connection *connection)
{
    for (size_t i = 0; i < service->count && !connection->is_member; i++) {
        struct hvd_connection *first = &service->connections[i];
        struct hvd_member *member =
            first->is_member && first->join_number == connection->join_number
                ? hvd_roster_find(&service->roster, hvd_channel_fd(first->channel))
                : NULL;

        if (member != NULL && member->state == HVD_MEMBER_WAITING) {
            member->id = hvd_channel_fd(connection->channel);
            first->is_member = false;
            first->is_over = true;
            connection->is_member = true;
            return true;
        }
    }
    return false;
}

static int take_join(struct hvd_service *service, struct hvd_connection *connection,
                     const struct hvd_channel_message *message)
{
    const int id = hvd_channel_fd(connection->channel);
    const char *data = message->data;
    struct hvd_rendezvous_join head;
    struct hvd_roster_join join;
    struct hvd_roster_failure failure;
    size_t list_bytes;
    int status;

    if (message->bytes < sizeof(head)) {
        return HVD_ERR_NET;
    }
    memcpy(&head, data, sizeof(head));
    list_bytes = head.listed > 0 ? (size_t)head.listed * sizeof(int32_t) : 0;
    if ((head.listed != 0 && head.listed != head.count) ||
        message->bytes - sizeof(head) < list_bytes) {
        return HVD_ERR_NET;
    }
    if (hvd_service_repeat(service, connection, &head)) {
        return 0;
    }
    connection->join_number = head.number;
    status = hvd_connection_take_card(connection, data + sizeof(head) + list_bytes,
                                      message->bytes - sizeof(head) - list_bytes,
                                      head.host_bytes, head.card_bytes);
    if (status == 0 && take_place(service, connection)) {
        return 0;
    }
    if (status == 0) {
        status = admit_connection(service, connection);
    }
    if (status < 0) {
        return status;
    }
    connection->process = head.process;
    connection->process.node[sizeof(head.process.node) - 1] = '\0';
    if (hvd_service_has_dropped(service, &connection->process)) {
        failure.culprit = -1;
        hvd_fail(&failure.error, HVD_ERR_STATE,
                 "this process did not rejoin in time: the others go on without it, and "
                 "it is being ended; a larger HOROVOD_ELASTIC_TIMEOUT waits longer");
        hvd_service_refuse(service, id, &failure);
        return 0;
    }
    join = (struct hvd_roster_join){
        .slot = head.slot,
        .count = head.count,
        .index = head.index,
        /* A message is aligned to 8, as is the size of its head. */
        .ranks = list_bytes > 0 ? (const int32_t *)(data + sizeof(head)) : NULL,
        .timeout_ms = head.timeout_ms,
    };
    if (hvd_roster_join(&service->roster, id, &join, hvd_clock_ms(), &failure) < 0) {
        hvd_service_refuse(service, id, &failure);
    } else {
        hvd_log(HVD_LOG_DEBUG, "rendezvous: rank %d on %s is here", head.slot,
                connection->host);
    }
    return 0;
}

static int take_ready(struct hvd_service *service, struct hvd_connection *connection)
{
    int status = admit_connection(service, connection);

    if (status == 0) {
        hvd_roster_ready(&service->roster, hvd_channel_fd(connection->channel));
    }
    return status;
}

/* Ends the job if a rank of the running generation succeeds. The success of other
 * processes means nothing. */
static void take_done(struct hvd_service *service,
                      const struct hvd_connection *connection)
{
    const struct hvd_member *member =
        hvd_roster_find(&service->roster, hvd_channel_fd(connection->channel));

    if (member != NULL && member->state == HVD_MEMBER_RUNNING) {
        hvd_roster_done(&service->roster, hvd_clock_ms());
    }
}

/* Answers all connections that asked for a note that is available now. */
static void answer_asked(struct hvd_service *service)
{
    char data[sizeof(struct hvd_rendezvous_note) + HVD_BOARD_NOTE_BYTES];

    for (size_t i = 0; i < service->count; i++) {
        struct hvd_connection *one = &service->connections[i];
        const struct hvd_rendezvous_note head = {.subject = one->subject};
        const struct hvd_board_note *note =
            one->has_asked ? hvd_board_find(&service->board, one->subject) : NULL;

        if (note != NULL) {
            memcpy(data, &head, sizeof(head));
            memcpy(data + sizeof(head), note->value, note->bytes);
            one->has_asked = false;
            hvd_service_send(service, hvd_channel_fd(one->channel), HVD_RENDEZVOUS_NOTE,
                             data, sizeof(head) + note->bytes);
        }
    }
}

static int take_note(struct hvd_service *service, struct hvd_connection *connection,
                     const struct hvd_channel_message *message)
{
    struct hvd_rendezvous_note head;
    const char *value = (const char *)message->data + sizeof(head);
    int status = 0;

    if (message->bytes < sizeof(head)) {
        return HVD_ERR_NET;
    }
    memcpy(&head, message->data, sizeof(head));
    head.host[sizeof(head.host) - 1] = '\0';
    status = hvd_roster_locate(&service->roster, head.rank, head.host);
    if (status == 0 && message->type == HVD_RENDEZVOUS_POST) {
        status = hvd_board_post(&service->board, head.subject, value,
                                message->bytes - sizeof(head));
    }
    if (status < 0 || head.subject >= HVD_BOARD_SUBJECTS) {
        return HVD_ERR_NET;
    }
    connection->has_asked = true;
    connection->subject = head.subject;
    answer_asked(service);
    return 0;
}

/* --- ranks of a static job that end before init --- */

static void send_end(struct hvd_service *service, int id,
                     const struct hvd_missing_end *end)
{
    hvd_service_send(service, id, HVD_RENDEZVOUS_ENDED, end, sizeof(*end));
}

/* Tells the rank itself, which waits for that before it ends, and all that watch. */
static int take_end(struct hvd_service *service, const struct hvd_connection *connection,
                    const struct hvd_channel_message *message)
{
    const int id = hvd_channel_fd(connection->channel);
    struct hvd_missing_end end;

    if (service->config->rules.is_elastic || message->bytes != sizeof(end)) {
        return HVD_ERR_NET;
    }
    memcpy(&end, message->data, sizeof(end));
    end.host[sizeof(end.host) - 1] = '\0';
    if (hvd_roster_end(&service->roster, &end) < 0) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < service->count; i++) {
        if (service->connections[i].watches) {
            send_end(service, hvd_channel_fd(service->connections[i].channel), &end);
        }
    }
    send_end(service, id, &end);
    return 0;
}

static int take_watch(struct hvd_service *service, struct hvd_connection *connection)
{
    const int id = hvd_channel_fd(connection->channel);

    connection->watches = true;
    for (int i = 0; i < service->roster.ended.count; i++) {
        send_end(service, id, &service->roster.ended.all[i].end);
    }
    return 0;
}

static int take_message(struct hvd_service *service, struct hvd_connection *connection,
                        const struct hvd_channel_message *message)
{
    switch (message->type) {
    case HVD_RENDEZVOUS_JOIN:
        return take_join(service, connection, message);
    case HVD_RENDEZVOUS_READY:
        return take_ready(service, connection);
    case HVD_RENDEZVOUS_DONE:
        take_done(service, connection);
        return 0;
    case HVD_RENDEZVOUS_POST:
    case HVD_RENDEZVOUS_ASK:
        return take_note(service, connection, message);
    case HVD_RENDEZVOUS_ENDED:
        return take_end(service, connection, message);
    case HVD_RENDEZVOUS_WATCH:
        return take_watch(service, connection);
    default:
        return HVD_ERR_NET;
    }
}

static void serve_connection(struct hvd_service *service,
                             struct hvd_connection *connection)
{
    struct hvd_channel_message message;
    int alive = hvd_channel_progress(connection->channel);
    int status = 0;

    connection->is_proven = hvd_channel_is_open(connection->channel);
    while (status == 0 &&
           (status = hvd_channel_next(connection->channel, &message)) == 0) {
        status = take_message(service, connection, &message);
    }
    connection->is_over = connection->is_over || alive < 0 || status < 0;
}

/* --- connecting and leaving --- */

/* Drops one connection without proof if there are more than `most`. Reads what has
 * arrived from a connection before it drops it: a rank's proof may have arrived after the
 * last poll. Returns whether it dropped one. */
static bool drop_stranger(struct hvd_service *service, size_t most)
{
    struct hvd_connection *least;
    size_t strangers;

    while ((least = hvd_connection_least_stranger(service->connections, service->count,
                                                  &strangers)) != NULL &&
           strangers > most) {
        const bool had_begun = hvd_channel_has_begun(least->channel);

        serve_connection(service, least);
        if (least->is_over ||
            (!least->is_proven && hvd_channel_has_begun(least->channel) == had_begun)) {
            hvd_service_remove(service, least);
            return true;
        }
    }
    return false;
}

static void add_connection(struct hvd_service *service, int fd)
{
    struct hvd_connection *grown =
        realloc(service->connections, (service->count + 1) * sizeof(*grown));
    struct pollfd *polls = realloc(service->polls, (service->count + 3) * sizeof(*polls));

    service->connections = grown != NULL ? grown : service->connections;
    service->polls = polls != NULL ? polls : service->polls;
    if (grown == NULL || polls == NULL) {
        close(fd);
        return;
    }
    grown[service->count] =
        (struct hvd_connection){.since_ms = hvd_clock_ms(), .number = service->arrived++};
    if (hvd_channel_create(fd, HVD_CHANNEL_SERVICE, service->config->key,
                           &grown[service->count].channel) == 0) {
        service->count++;
    }
}

/* Without descriptors the listening socket stays readable: ignores it for a while. */
static void rest(struct hvd_service *service, int error)
{
    service->closed_until_ms = hvd_clock_ms() + full_ms;
    if (!service->was_full) {
        service->was_full = true;
        hvd_log(
            HVD_LOG_WARN,
            "rendezvous: no descriptor is left for another rank (%s): raise ulimit -n",
            strerror(error));
    }
}

/* Accepts one connection per round of the loop, so that others are served in between. */
static void accept_one(struct hvd_service *service)
{
    int fd;

    (void)drop_stranger(service, STRANGERS + (size_t)service->config->rules.np - 1);
    fd = hvd_socket_accept(service->config->listening);
    if (fd >= 0) {
        add_connection(service, fd);
    } else if (hvd_socket_is_out_of_room(errno)) {
        const int error = errno;

        if (!drop_stranger(service, 0)) {
            rest(service, error);
        }
    }
}

static void remove_dead(struct hvd_service *service)
{
    int64_t now = hvd_clock_ms();
    size_t i = 0;

    while (i < service->count) {
        struct hvd_connection *connection = &service->connections[i];

        if (connection->is_over || hvd_connection_is_late(connection, now)) {
            hvd_service_remove(service, connection);
            /* while the others were told, one of them may have turned out to be gone */
            i = 0;
        } else {
            i++;
        }
    }
}

/* --- orders of the launcher --- */

static void end_slot(struct hvd_service *service, int slot, int wait_status)
{
    const struct hvd_missing_end end = {.rank = slot, .wait_status = wait_status};

    service->is_over |= hvd_roster_end(&service->roster, &end) < 0;
}

static void take_order(struct hvd_service *service, const char *line)
{
    int number;
    int slot;
    int wait_status;

    if (sscanf(line, "expect %d without %d", &number, &slot) == 2) {
        hvd_roster_expect(&service->roster, number);
        if (slot >= 0) {
            end_slot(service, slot, 0);
        }
    } else if (sscanf(line, "ended %d %d", &slot, &wait_status) == 2) {
        end_slot(service, slot, wait_status);
    } else if (sscanf(line, "leave %d", &slot) == 1) {
        service->is_over |= hvd_roster_leave(&service->roster, slot) < 0;
    } else if (sscanf(line, "stay %d", &slot) == 1) {
        hvd_roster_stay(&service->roster, slot);
    } else if (strcmp(line, "done") == 0) {
        hvd_roster_done(&service->roster, hvd_clock_ms());
    }
}

static void read_orders(struct hvd_service *service)
{
    char *free_part = service->order + service->order_bytes;
    const size_t room = sizeof(service->order) - 1 - service->order_bytes;
    ssize_t bytes;
    char *end;

    assert(room < sizeof(service->order)); /* for compilers, which cannot know it */
    bytes = read(service->config->orders, free_part, room);
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

    if (service->closed_until_ms <= hvd_clock_ms()) {
        service->closed_until_ms = 0;
    }
    polls[0] = (struct pollfd){
        .fd = service->closed_until_ms == 0 ? service->config->listening : -1,
        .events = POLLIN};
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
    int64_t left = again_ms >= 0 ? again_ms - hvd_clock_ms() : -1;
    bool has_stranger = false;

    for (size_t i = 0; i < service->count; i++) {
        has_stranger = has_stranger || !service->connections[i].is_proven;
    }
    if (again_ms >= 0 && left < 0) {
        left = 0;
    }
    if (has_stranger && (left < 0 || left > HVD_CONNECTION_GREETING_MS)) {
        left = HVD_CONNECTION_GREETING_MS;
    }
    if (service->closed_until_ms > 0 && (left < 0 || left > full_ms)) {
        left = full_ms;
    }
    return left > 3600000 ? 3600000 : (int)left;
}

static void run_once(struct hvd_service *service, int64_t again_ms)
{
    size_t count = fill_polls(service);

    if (poll(service->polls, (nfds_t)count, wait_ms(service, again_ms)) < 0) {
        return;
    }
    for (size_t i = 0; i + 2 < count; i++) {
        if (service->polls[2 + i].revents != 0) {
            serve_connection(service, &service->connections[i]);
        }
    }
    if (service->polls[1].revents != 0) {
        read_orders(service);
    }
    if (service->polls[0].revents != 0) {
        accept_one(service);
    }
    remove_dead(service);
}

static int begin_service(struct hvd_service *service,
                         const struct hvd_rendezvous_service_config *config)
{
    *service = (struct hvd_service){.config = config};
    hvd_roster_init(&service->roster, &config->rules);
    service->polls = calloc(2, sizeof(*service->polls));
    return service->polls != NULL ? 0 : HVD_ERR_NOMEM;
}

static void finish_service(struct hvd_service *service)
{
    for (size_t i = 0; i < service->count; i++) {
        hvd_connection_finish(&service->connections[i]);
    }
    free(service->connections);
    free(service->polls);
    free(service->dropped);
    hvd_answers_finish(&service->answers);
    hvd_roster_finish(&service->roster);
}

int hvd_rendezvous_service_run(const struct hvd_rendezvous_service_config *config)
{
    struct hvd_service service;
    int64_t again_ms = -1;
    int status = begin_service(&service, config);

    while (status == 0 && !service.is_over) {
        run_once(&service, again_ms);
        status = hvd_service_act(&service, &again_ms);
    }
    finish_service(&service);
    return status;
}
