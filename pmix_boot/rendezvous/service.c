/* SPDX-License-Identifier: Apache-2.0 */
/* One poll loop serves all connections. It passes their events to the roster, which
 * decides what to do. */
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
#include "gpu_binding/base/number.h"
#include "pmix_boot/rendezvous/board.h"
#include "pmix_boot/rendezvous/connection.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/rendezvous/slurm_kill.h"
#include "pmix_boot/sock/socket.h"

/* How long to accept nothing after the process ran out of descriptors. */
static const int64_t full_ms = 100;

enum {
    /* connections without proof, in addition to those of ranks that start at once */
    STRANGERS = 64,
};

/* The last FORMED of a static job. A rank whose connection is reset before it arrives
 * asks again, by the same number. */
struct answer {
    char *data; /* NULL: none */
    size_t bytes;
    uint64_t *numbers; /* [count], by rank */
    int count;
};

struct service {
    const struct hvd_rendezvous_service_config *config;
    struct hvd_roster roster;
    struct hvd_board board;
    struct answer answer;
    struct hvd_connection *connections;
    size_t count;
    uint64_t arrived; /* number of connections so far */
    /* accept nothing until then, for lack of descriptors; 0 while accepting */
    int64_t closed_until_ms;
    bool was_full; /* the lack of descriptors has been logged */
    struct pollfd *polls; /* [count + 2]: listening socket, orders, connections */
    char order[64]; /* an incomplete line */
    size_t order_bytes;
    struct hvd_rendezvous_process *dropped; /* ranks that are being killed */
    size_t dropped_count;
    bool is_over;
};

/* --- messages to ranks --- */

static struct hvd_connection *find_connection(struct service *service, int id)
{
    for (size_t i = 0; i < service->count; i++) {
        if (hvd_channel_fd(service->connections[i].channel) == id) {
            return &service->connections[i];
        }
    }
    return NULL;
}

static void send_to(struct service *service, int id, uint32_t type, const void *data,
                    size_t bytes)
{
    struct hvd_connection *connection = find_connection(service, id);

    if (connection != NULL &&
        hvd_channel_send(connection->channel, type, data, bytes) < 0) {
        connection->is_over = true;
    }
}

static void send_to_running(struct service *service, uint32_t type, const void *data,
                            size_t bytes)
{
    for (int i = 0; i < service->roster.count; i++) {
        if (service->roster.members[i].state == HVD_MEMBER_RUNNING) {
            send_to(service, service->roster.members[i].id, type, data, bytes);
        }
    }
}

/* Removes a member. Returns its rank in the running generation, or -1. */
static int32_t remove_member(struct service *service,
                             const struct hvd_connection *connection)
{
    const int id = hvd_channel_fd(connection->channel);
    const struct hvd_member *member = hvd_roster_find(&service->roster, id);

    if (hvd_roster_is_spare(&service->roster, member)) {
        hvd_log(HVD_LOG_WARN, "elastic: a spare on %s (pid %d) is gone; spares: %d",
                connection->host, (int)connection->process.pid,
                hvd_roster_count_spares(&service->roster) - 1);
    } else if (member->state == HVD_MEMBER_WAITING) {
        hvd_log(HVD_LOG_DEBUG, "rendezvous: rank %d on %s is gone", member->slot,
                connection->host);
    }
    return hvd_channel_was_reset(connection->channel)
               ? hvd_roster_lose(&service->roster, id, connection->host, hvd_clock_ms())
               : hvd_roster_remove(&service->roster, id, connection->host,
                                   hvd_clock_ms());
}

static void remove_connection(struct service *service, struct hvd_connection *connection)
{
    const int32_t rank = connection->is_member ? remove_member(service, connection) : -1;

    if (rank >= 0) {
        send_to_running(service, HVD_RENDEZVOUS_LOST, &rank, sizeof(rank));
        hvd_log(HVD_LOG_INFO, "elastic: rank %d on %s is gone", (int)rank,
                connection->host);
    }
    hvd_connection_finish(connection);
    assert(service->count > 0); /* for analyzers: the connection is one of them */
    *connection = service->connections[--service->count];
}

/* --- events to the launcher --- */

/* Sends an event, which is lost if the launcher does not read it. */
static void send_event(const struct service *service, const char *event, int slot)
{
    char line[32];
    const int bytes = snprintf(line, sizeof(line), "%s %d\n", event, slot);

    (void)!write(service->config->events, line, (size_t)bytes);
}

/* --- messages to the members of a step --- */

/* Makes the message FORMED with the cards of all members; ids has the members in the
 * order of their ranks. The caller fills in the rank of each receiver. NULL if memory
 * runs out. */
static char *make_formed(struct service *service, const int *ids, int size, size_t *bytes)
{
    struct hvd_rendezvous_formed head = {
        .generation = (uint32_t)service->roster.generation, .size = size};
    char *data = NULL;
    FILE *out = open_memstream(&data, bytes);

    if (out == NULL) {
        return NULL;
    }
    fwrite(&head, sizeof(head), 1, out);
    for (int rank = 0; rank < size; rank++) {
        const struct hvd_connection *connection = find_connection(service, ids[rank]);
        uint64_t card_bytes = connection->card_bytes;

        fwrite(&card_bytes, sizeof(card_bytes), 1, out);
        fwrite(connection->card, 1, connection->card_bytes, out);
    }
    if (fclose(out) != 0) {
        free(data);
        return NULL;
    }
    return data;
}

/* Keeps the answer that the members have got, and takes over its data. Keeps none if
 * memory runs out. */
static void keep_answer(struct service *service, const struct hvd_roster_step *step,
                        char *data, size_t bytes)
{
    struct answer *answer = &service->answer;
    uint64_t *numbers = calloc((size_t)step->count, sizeof(*numbers));

    free(answer->data);
    free(answer->numbers);
    *answer = (struct answer){0};
    if (numbers == NULL) {
        free(data);
        return;
    }
    for (int rank = 0; rank < step->count; rank++) {
        numbers[rank] = find_connection(service, step->ids[rank])->join_number;
    }
    *answer = (struct answer){data, bytes, numbers, step->count};
}

/* Repeats the answer to a rank that has not got it. Returns whether there is one. */
static bool repeat_answer(struct service *service,
                          const struct hvd_connection *connection,
                          const struct hvd_rendezvous_join *head)
{
    const struct answer *answer = &service->answer;

    if (answer->data == NULL || head->count != answer->count || head->index < 0 ||
        head->index >= answer->count || answer->numbers[head->index] != head->number) {
        return false;
    }
    ((struct hvd_rendezvous_formed *)answer->data)->rank = head->index;
    send_to(service, hvd_channel_fd(connection->channel), HVD_RENDEZVOUS_FORMED,
            answer->data, answer->bytes);
    return true;
}

/* Logs the first generation only in a job with spares. */
static void log_generation(const struct hvd_roster *roster)
{
    const int spares = hvd_roster_count_spares(roster);

    if (spares > 0 ||
        (roster->rules.is_elastic && roster->rules.np > roster->rules.max)) {
        hvd_log(HVD_LOG_WARN, "elastic: generation %d begins, %d rank%s; spares: %d",
                roster->generation, roster->size, hvd_number_plural(roster->size),
                spares);
    } else if (roster->generation > 1) {
        hvd_log(HVD_LOG_WARN, "elastic: generation %d begins, %d rank%s",
                roster->generation, roster->size, hvd_number_plural(roster->size));
    }
}

static int form_generation(struct service *service, const struct hvd_roster_step *step)
{
    const struct hvd_roster *roster = &service->roster;
    size_t bytes = 0;
    char *data = make_formed(service, step->ids, step->count, &bytes);

    if (data == NULL) {
        return HVD_ERR_NOMEM;
    }
    log_generation(roster);
    for (int rank = 0; rank < step->count; rank++) {
        ((struct hvd_rendezvous_formed *)data)->rank = rank;
        send_to(service, step->ids[rank], HVD_RENDEZVOUS_FORMED, data, bytes);
        if (roster->rules.is_elastic) {
            send_event(service, "begun",
                       hvd_roster_find(&service->roster, step->ids[rank])->slot);
        }
    }
    if (roster->rules.is_elastic) {
        free(data);
    } else {
        keep_answer(service, step, data, bytes);
    }
    return 0;
}

static void send_refusal(struct service *service, int id,
                         const struct hvd_roster_failure *failure)
{
    struct hvd_rendezvous_refused head = {.status = failure->error.status,
                                          .culprit = failure->culprit};
    char data[sizeof(head) + sizeof(failure->error.text)];
    size_t length = strlen(failure->error.text);

    memcpy(data, &head, sizeof(head));
    memcpy(data + sizeof(head), failure->error.text, length);
    send_to(service, id, HVD_RENDEZVOUS_REFUSED, data, sizeof(head) + length);
}

static void refuse_members(struct service *service, const struct hvd_roster_step *step)
{
    for (int i = 0; i < step->count; i++) {
        send_refusal(service, step->ids[i], &step->failure);
    }
}

static void tell_changes(struct service *service, uint32_t changes)
{
    if ((changes & HVD_ROSTER_ADDED) != 0) {
        hvd_log(HVD_LOG_WARN,
                "elastic: new ranks are waiting; they join at the next commit");
    }
    if ((changes & HVD_ROSTER_REMOVED) != 0) {
        hvd_log(HVD_LOG_WARN, "elastic: ranks must leave; they do so at the next commit");
    }
    send_to_running(service, HVD_RENDEZVOUS_UPDATED, &changes, sizeof(changes));
}

/* Remembers a rank that is being killed, so that it is not admitted again. If memory runs
 * out, it can come back before it is killed. */
static void note_dropped(struct service *service,
                         const struct hvd_rendezvous_process *process)
{
    struct hvd_rendezvous_process *grown =
        realloc(service->dropped, (service->dropped_count + 1) * sizeof(*grown));

    if (grown != NULL) {
        grown[service->dropped_count++] = *process;
        service->dropped = grown;
    }
}

static bool was_dropped(const struct service *service,
                        const struct hvd_rendezvous_process *process)
{
    for (size_t i = 0; i < service->dropped_count; i++) {
        const struct hvd_rendezvous_process *one = &service->dropped[i];

        if (one->started != 0 && one->pid == process->pid &&
            one->started == process->started && strcmp(one->node, process->node) == 0) {
            return true;
        }
    }
    return false;
}

static void drop_members(struct service *service, const struct hvd_roster_step *step)
{
    for (int i = 0; i < step->count; i++) {
        const struct hvd_member *member = hvd_roster_find(&service->roster, step->ids[i]);
        struct hvd_connection *connection = find_connection(service, step->ids[i]);

        hvd_log(HVD_LOG_WARN,
                "elastic: rank %d on %s (pid %d) %s; the others go on without it",
                member->rank, connection->host, (int)connection->process.pid,
                step->failure.error.text);
        send_event(service, "drop", member->slot);
        note_dropped(service, &connection->process);
        if (service->config->is_under_srun) {
            hvd_rendezvous_slurm_kill_begin(&connection->process, member->rank);
        }
        remove_connection(service, connection);
    }
}

/* Logs the failure of an elastic job. Ranks of a static job print the failure
 * themselves. */
static void log_failure(const struct service *service, const struct hvd_roster_step *step)
{
    if (service->roster.rules.is_elastic) {
        hvd_log(HVD_LOG_WARN, "elastic: %s", step->failure.error.text);
    }
}

/* Carries out everything that is due. Returns 0 and when to ask the roster again (-1:
 * after an event), or HVD_ERR_NOMEM. */
static int act_on_roster(struct service *service, int64_t *again_ms)
{
    struct hvd_roster_step step;
    int status = 0;

    do {
        hvd_roster_next(&service->roster, hvd_clock_ms(), &step);
        switch (step.act) {
        case HVD_ROSTER_FORM:
            status = form_generation(service, &step);
            break;
        case HVD_ROSTER_REFUSE:
            log_failure(service, &step);
            refuse_members(service, &step);
            break;
        case HVD_ROSTER_DISMISS:
            refuse_members(service, &step);
            break;
        case HVD_ROSTER_DROP:
            drop_members(service, &step);
            break;
        case HVD_ROSTER_TELL:
            tell_changes(service, step.changes);
            break;
        case HVD_ROSTER_OVER:
            send_event(service, "over", -1);
            break;
        case HVD_ROSTER_SHORT:
            log_failure(service, &step);
            break;
        case HVD_ROSTER_WAIT:
            break;
        }
    } while (step.act != HVD_ROSTER_WAIT && status == 0);
    *again_ms = step.again_ms;
    return status;
}

/* --- messages from ranks --- */

/* Adds the connection to the roster when it sends its first message for the roster. */
static int admit_connection(struct service *service, struct hvd_connection *connection)
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
static bool take_place(struct service *service, struct hvd_connection *connection)
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

static int take_join(struct service *service, struct hvd_connection *connection,
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
    if (repeat_answer(service, connection, &head)) {
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
    if (was_dropped(service, &connection->process)) {
        failure.culprit = -1;
        hvd_fail(&failure.error, HVD_ERR_STATE,
                 "this process did not rejoin in time: the others go on without it, and "
                 "it is being ended; a larger HOROVOD_ELASTIC_TIMEOUT waits longer");
        send_refusal(service, id, &failure);
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
        send_refusal(service, id, &failure);
    } else {
        hvd_log(HVD_LOG_DEBUG, "rendezvous: rank %d on %s is here", head.slot,
                connection->host);
    }
    return 0;
}

static int take_ready(struct service *service, struct hvd_connection *connection)
{
    int status = admit_connection(service, connection);

    if (status == 0) {
        hvd_roster_ready(&service->roster, hvd_channel_fd(connection->channel));
    }
    return status;
}

/* Ends the job if a rank of the running generation succeeds. The success of other
 * processes means nothing. */
static void take_done(struct service *service, const struct hvd_connection *connection)
{
    const struct hvd_member *member =
        hvd_roster_find(&service->roster, hvd_channel_fd(connection->channel));

    if (member != NULL && member->state == HVD_MEMBER_RUNNING) {
        hvd_roster_done(&service->roster, hvd_clock_ms());
    }
}

/* Answers all connections that asked for a note that is available now. */
static void answer_asked(struct service *service)
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
            send_to(service, hvd_channel_fd(one->channel), HVD_RENDEZVOUS_NOTE, data,
                    sizeof(head) + note->bytes);
        }
    }
}

static int take_note(struct service *service, struct hvd_connection *connection,
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

static void send_end(struct service *service, int id, const struct hvd_missing_end *end)
{
    send_to(service, id, HVD_RENDEZVOUS_ENDED, end, sizeof(*end));
}

/* Tells the rank itself, which waits for that before it ends, and all that watch. */
static int take_end(struct service *service, const struct hvd_connection *connection,
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

static int take_watch(struct service *service, struct hvd_connection *connection)
{
    const int id = hvd_channel_fd(connection->channel);

    connection->watches = true;
    for (int i = 0; i < service->roster.ended.count; i++) {
        send_end(service, id, &service->roster.ended.all[i].end);
    }
    return 0;
}

static int take_message(struct service *service, struct hvd_connection *connection,
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

static void serve_connection(struct service *service, struct hvd_connection *connection)
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
static bool drop_stranger(struct service *service, size_t most)
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
            remove_connection(service, least);
            return true;
        }
    }
    return false;
}

static void add_connection(struct service *service, int fd)
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
static void rest(struct service *service, int error)
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
static void accept_one(struct service *service)
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

static void remove_dead(struct service *service)
{
    int64_t now = hvd_clock_ms();
    size_t i = 0;

    while (i < service->count) {
        struct hvd_connection *connection = &service->connections[i];

        if (connection->is_over || hvd_connection_is_late(connection, now)) {
            remove_connection(service, connection);
            /* while the others were told, one of them may have turned out to be gone */
            i = 0;
        } else {
            i++;
        }
    }
}

/* --- orders of the launcher --- */

static void end_slot(struct service *service, int slot, int wait_status)
{
    const struct hvd_missing_end end = {.rank = slot, .wait_status = wait_status};

    service->is_over |= hvd_roster_end(&service->roster, &end) < 0;
}

static void take_order(struct service *service, const char *line)
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

static void read_orders(struct service *service)
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

static size_t fill_polls(struct service *service)
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

static int wait_ms(const struct service *service, int64_t again_ms)
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

static void run_once(struct service *service, int64_t again_ms)
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

static int begin_service(struct service *service,
                         const struct hvd_rendezvous_service_config *config)
{
    *service = (struct service){.config = config};
    hvd_roster_init(&service->roster, &config->rules);
    service->polls = calloc(2, sizeof(*service->polls));
    return service->polls != NULL ? 0 : HVD_ERR_NOMEM;
}

static void finish_service(struct service *service)
{
    for (size_t i = 0; i < service->count; i++) {
        hvd_connection_finish(&service->connections[i]);
    }
    free(service->connections);
    free(service->polls);
    free(service->dropped);
    free(service->answer.data);
    free(service->answer.numbers);
    hvd_roster_finish(&service->roster);
}

int hvd_rendezvous_service_run(const struct hvd_rendezvous_service_config *config)
{
    struct service service;
    int64_t again_ms = -1;
    int status = begin_service(&service, config);

    while (status == 0 && !service.is_over) {
        run_once(&service, again_ms);
        status = act_on_roster(&service, &again_ms);
    }
    finish_service(&service);
    return status;
}
