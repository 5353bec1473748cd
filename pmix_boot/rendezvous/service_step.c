/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/service_step.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/number.h"
#include "pmix_boot/rendezvous/service.h"
#include "pmix_boot/rendezvous/slurm_kill.h"

/* --- messages to ranks --- */

static struct hvd_connection *find_connection(struct hvd_service *service, int id)
{
    for (size_t i = 0; i < service->count; i++) {
        if (hvd_channel_fd(service->connections[i].channel) == id) {
            return &service->connections[i];
        }
    }
    return NULL;
}

void hvd_service_send(struct hvd_service *service, int id, uint32_t type,
                      const void *data, size_t bytes)
{
    struct hvd_connection *connection = find_connection(service, id);

    if (connection != NULL &&
        hvd_channel_send(connection->channel, type, data, bytes) < 0) {
        connection->is_over = true;
    }
}

static void send_to_running(struct hvd_service *service, uint32_t type, const void *data,
                            size_t bytes)
{
    for (int i = 0; i < service->roster.count; i++) {
        if (service->roster.members[i].state == HVD_MEMBER_RUNNING) {
            hvd_service_send(service, service->roster.members[i].id, type, data, bytes);
        }
    }
}

/* Removes a member. Returns its rank in the running generation, or -1. */
static int32_t remove_member(struct hvd_service *service,
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

void hvd_service_remove(struct hvd_service *service, struct hvd_connection *connection)
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
static void send_event(const struct hvd_service *service, const char *event, int slot)
{
    char line[32];
    const int bytes = snprintf(line, sizeof(line), "%s %d\n", event, slot);

    (void)!write(service->config->events, line, (size_t)bytes);
}

/* --- messages to the members of a step --- */

/* Makes the message FORMED with the cards of all members; ids has the members in the
 * order of their ranks. The caller fills in the rank of each receiver. NULL if memory
 * runs out. */
static char *make_formed(struct hvd_service *service, const int *ids, int size,
                         size_t *bytes)
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

/* Keeps the answer that the members have got, and takes over its data. */
static void keep_answer(struct hvd_service *service, const struct hvd_roster_step *step,
                        char *data, size_t bytes)
{
    struct hvd_answer answer = {
        .data = data,
        .bytes = bytes,
        .ranks = calloc((size_t)step->count, sizeof(*answer.ranks)),
        .numbers = calloc((size_t)step->count, sizeof(*answer.numbers)),
        .count = step->count,
    };

    if (answer.ranks == NULL || answer.numbers == NULL) {
        free(answer.data);
        free(answer.ranks);
        free(answer.numbers);
        return;
    }
    for (int i = 0; i < step->count; i++) {
        answer.ranks[i] = hvd_roster_find(&service->roster, step->ids[i])->slot;
        answer.numbers[i] = find_connection(service, step->ids[i])->join_number;
    }
    hvd_answers_keep(&service->answers, &answer);
}

bool hvd_service_repeat(struct hvd_service *service,
                        const struct hvd_connection *connection,
                        const struct hvd_rendezvous_join *head)
{
    const struct hvd_answer *answer =
        hvd_answers_find(&service->answers, head->index, head->number);

    if (answer == NULL || head->count != answer->count) {
        return false;
    }
    ((struct hvd_rendezvous_formed *)answer->data)->rank = head->index;
    hvd_service_send(service, hvd_channel_fd(connection->channel), HVD_RENDEZVOUS_FORMED,
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

static int form_generation(struct hvd_service *service,
                           const struct hvd_roster_step *step)
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
        hvd_service_send(service, step->ids[rank], HVD_RENDEZVOUS_FORMED, data, bytes);
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

void hvd_service_refuse(struct hvd_service *service, int id,
                        const struct hvd_roster_failure *failure)
{
    struct hvd_rendezvous_refused head = {.status = failure->error.status,
                                          .culprit = failure->culprit};
    char data[sizeof(head) + sizeof(failure->error.text)];
    size_t length = strlen(failure->error.text);

    memcpy(data, &head, sizeof(head));
    memcpy(data + sizeof(head), failure->error.text, length);
    hvd_service_send(service, id, HVD_RENDEZVOUS_REFUSED, data, sizeof(head) + length);
}

static void refuse_members(struct hvd_service *service,
                           const struct hvd_roster_step *step)
{
    for (int i = 0; i < step->count; i++) {
        hvd_service_refuse(service, step->ids[i], &step->failure);
    }
}

static void tell_changes(struct hvd_service *service, uint32_t changes)
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
static void note_dropped(struct hvd_service *service,
                         const struct hvd_rendezvous_process *process)
{
    struct hvd_rendezvous_process *grown =
        realloc(service->dropped, (service->dropped_count + 1) * sizeof(*grown));

    if (grown != NULL) {
        grown[service->dropped_count++] = *process;
        service->dropped = grown;
    }
}

bool hvd_service_has_dropped(const struct hvd_service *service,
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

static void drop_members(struct hvd_service *service, const struct hvd_roster_step *step)
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
        hvd_service_remove(service, connection);
    }
}

/* Logs the failure of an elastic job. Ranks of a static job print the failure
 * themselves. */
static void log_failure(const struct hvd_service *service,
                        const struct hvd_roster_step *step)
{
    if (service->roster.rules.is_elastic) {
        hvd_log(HVD_LOG_WARN, "elastic: %s", step->failure.error.text);
    }
}

int hvd_service_act(struct hvd_service *service, int64_t *again_ms)
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
