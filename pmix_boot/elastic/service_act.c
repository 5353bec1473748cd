/* SPDX-License-Identifier: Apache-2.0 */
/* The roster's decisions, told to those whom they concern. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "pmix_boot/elastic/message.h"
#include "pmix_boot/elastic/service_state.h"
#include "pmix_boot/elastic/sockets.h"

static struct hvd_connection *find(struct hvd_service *service, int id)
{
    for (size_t i = 0; i < service->count; i++) {
        if (hvd_channel_fd(service->connections[i].channel) == id) {
            return &service->connections[i];
        }
    }
    return NULL;
}

static bool is_running(const struct hvd_member *member)
{
    return member->rank >= 0 && !member->is_waiting;
}

static void say(struct hvd_service *service, const struct hvd_member *member,
                uint32_t type, const void *data, size_t bytes)
{
    struct hvd_connection *connection = find(service, member->id);

    if (connection != NULL &&
        hvd_channel_send(connection->channel, type, data, bytes) < 0) {
        connection->is_over = true;
    }
}

void hvd_service_say(struct hvd_service *service, uint32_t type, const void *data,
                     size_t bytes)
{
    for (int i = 0; i < service->roster.count; i++) {
        if (is_running(&service->roster.members[i])) {
            say(service, &service->roster.members[i], type, data, bytes);
        }
    }
}

/* --- a generation --- */

static const struct hvd_member *member_of_rank(const struct hvd_roster *roster, int rank)
{
    for (int i = 0; i < roster->count; i++) {
        if (is_running(&roster->members[i]) && roster->members[i].rank == rank) {
            return &roster->members[i];
        }
    }
    return NULL;
}

/* The message for all; the rank in it is each one's own. NULL: no memory. */
static char *make_formed(struct hvd_service *service, size_t *bytes)
{
    struct hvd_roster *roster = &service->roster;
    struct hvd_elastic_formed head = {.generation = (uint32_t)roster->generation,
                                      .size = roster->size};
    char *data = NULL;
    FILE *out = open_memstream(&data, bytes);

    if (out == NULL) {
        return NULL;
    }
    fwrite(&head, sizeof(head), 1, out);
    for (int rank = 0; rank < roster->size; rank++) {
        const struct hvd_member *member = member_of_rank(roster, rank);
        const struct hvd_connection *connection = find(service, member->id);
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

static int begin_generation(struct hvd_service *service)
{
    struct hvd_roster *roster = &service->roster;
    size_t bytes = 0;
    char *data = make_formed(service, &bytes);

    if (data == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int rank = 0; rank < roster->size; rank++) {
        ((struct hvd_elastic_formed *)data)->rank = rank;
        say(service, member_of_rank(roster, rank), HVD_ELASTIC_FORMED, data, bytes);
    }
    free(data);
    if (roster->generation > 1) {
        hvd_log(HVD_LOG_WARN, "elastic: generation %d begins, %d ranks",
                roster->generation, roster->size);
    }
    return 0;
}

static void refuse(struct hvd_service *service, const struct hvd_error *reason)
{
    struct hvd_elastic_refused head = {.status = reason->status};
    char data[sizeof(head) + sizeof(reason->text)];
    size_t length = strlen(reason->text);

    memcpy(data, &head, sizeof(head));
    memcpy(data + sizeof(head), reason->text, length);
    hvd_log(HVD_LOG_WARN, "elastic: %s", reason->text);
    for (int i = 0; i < service->roster.count; i++) {
        struct hvd_member *member = &service->roster.members[i];

        if (member->is_waiting) {
            member->is_waiting = false;
            say(service, member, HVD_ELASTIC_REFUSED, data, sizeof(head) + length);
        }
    }
}

int hvd_service_act(struct hvd_service *service, int64_t *again_ms)
{
    struct hvd_roster_step step;
    int status = 0;

    do {
        hvd_roster_next(&service->roster, hvd_elastic_now_ms(), &step);
        switch (step.act) {
        case HVD_ROSTER_FORM:
            status = begin_generation(service);
            break;
        case HVD_ROSTER_REFUSE:
            refuse(service, &step.reason);
            break;
        case HVD_ROSTER_TELL:
            hvd_log(HVD_LOG_WARN,
                    "elastic: new ranks wait; they join when the others commit");
            hvd_service_say(service, HVD_ELASTIC_UPDATED, NULL, 0);
            break;
        case HVD_ROSTER_SHORT:
            hvd_log(HVD_LOG_WARN, "elastic: %s", step.reason.text);
            break;
        case HVD_ROSTER_WAIT:
            break;
        }
    } while (step.act != HVD_ROSTER_WAIT && status == 0);
    *again_ms = step.again_ms;
    return status;
}
