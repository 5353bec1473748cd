/* SPDX-License-Identifier: Apache-2.0 */
/* One connection per process, hence one record.
 *
 * A fork takes the lock, so it is not held while this rank waits for the service or for other
 * ranks, which may be as long as the elastic timeout. */
#include "pmix_boot/elastic/member.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/fork_close.h"
#include "pmix_boot/elastic/address.h"
#include "pmix_boot/elastic/channel.h"
#include "pmix_boot/elastic/message.h"
#include "pmix_boot/wire/socket.h"

static struct {
    pthread_mutex_t lock;
    struct hvd_channel *channel; /* NULL: not connected */
    bool watches_forks;
    bool meets; /* a thread is in hvd_member_meet: the channel is its alone */
    unsigned forks; /* so far, of this process */
    bool is_ready; /* has told the service that it has the state */
    bool has_updates;
    int lost;
} member = {.lock = PTHREAD_MUTEX_INITIALIZER, .lost = -1};

/* --- a forked child is no rank: it must not keep its parent alive in the service's eyes --- */

static void before_fork(void)
{
    pthread_mutex_lock(&member.lock);
}

static void after_fork_in_parent(void)
{
    member.forks++;
    pthread_mutex_unlock(&member.lock);
}

/* fork_close.c has closed the connection; the memory stays: freeing is not safe here. */
static void after_fork_in_child(void)
{
    member.channel = NULL;
    member.meets = false;
    pthread_mutex_unlock(&member.lock);
}

static void watch_forks(void)
{
    if (!member.watches_forks) {
        member.watches_forks = true;
        hvd_fork_close_watch();
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}

/* --- connecting, with the lock held --- */

/* Gives the lock up meanwhile. */
static bool wait_for_channel(int64_t deadline_ms)
{
    const int fd = hvd_channel_fd(member.channel);
    const bool is_pending = hvd_channel_is_pending(member.channel);
    bool is_ready;

    pthread_mutex_unlock(&member.lock);
    is_ready = hvd_socket_wait(fd, is_pending ? POLLIN | POLLOUT : POLLIN, deadline_ms);
    pthread_mutex_lock(&member.lock);
    return is_ready;
}

static int greet(struct hvd_channel *channel, int64_t deadline_ms)
{
    while (!hvd_channel_is_open(channel)) {
        if (hvd_channel_progress(channel) < 0) {
            return HVD_ERR_NET;
        }
        if (!hvd_channel_is_open(channel) && !wait_for_channel(deadline_ms)) {
            return HVD_ERR_TIMEOUT;
        }
    }
    return 0;
}

/* Gives the lock up meanwhile. A child that was forked then has the socket and does not know it:
 * this rank connects anew. */
static int connect_service(const struct hvd_elastic_address *address, int64_t deadline_ms,
                           struct hvd_error *err)
{
    struct hvd_error cause;

    for (;;) {
        const unsigned forks = member.forks;
        int fd;

        pthread_mutex_unlock(&member.lock);
        fd = hvd_socket_connect_host(address->host, address->port, deadline_ms, &cause);
        pthread_mutex_lock(&member.lock);
        if (fd < 0) {
            return hvd_fail(err, HVD_ERR_NET,
                            "cannot reach the elastic service: %s; is the srun or hvdrun "
                            "that started the job still running?",
                            cause.text);
        }
        if (member.forks == forks) {
            return fd;
        }
        shutdown(fd, SHUT_RDWR);
        close(fd);
    }
}

static int open_channel(const struct hvd_member_query *query, struct hvd_error *err)
{
    int64_t deadline_ms = hvd_clock_ms() + query->timeout_ms;
    struct hvd_elastic_address address;
    int status = hvd_elastic_address_parse(query->address, &address, err);
    int fd;

    watch_forks();
    fd = status < 0 ? status : connect_service(&address, deadline_ms, err);
    if (fd < 0) {
        return fd;
    }
    status = hvd_channel_create(fd, HVD_CHANNEL_RANK, address.key, &member.channel);
    if (status < 0) {
        return hvd_fail(err, status, "no memory for a connection");
    }
    if (greet(member.channel, deadline_ms) < 0) {
        hvd_channel_destroy(member.channel);
        member.channel = NULL;
        return hvd_fail(
            err, HVD_ERR_NET,
            "the server on %s port %s is not the elastic service of this job, or "
            "runs another version of hvd",
            address.host, address.port);
    }
    return 0;
}

/* --- meeting --- */

static int send_join(const struct hvd_member_query *query)
{
    struct hvd_elastic_join head = {
        .slot = query->slot,
        .host_bytes = (uint32_t)strlen(query->host),
        .card_bytes = query->card_bytes,
    };
    size_t bytes = sizeof(head) + head.host_bytes + query->card_bytes;
    char *data = malloc(bytes);
    int status;

    if (data == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(data, &head, sizeof(head));
    memcpy(data + sizeof(head), query->host, head.host_bytes);
    memcpy(data + sizeof(head) + head.host_bytes, query->card, query->card_bytes);
    status = hvd_channel_send(member.channel, HVD_ELASTIC_JOIN, data, bytes);
    free(data);
    return status;
}

static void free_cards(struct hvd_member_card *cards, int count)
{
    for (int i = 0; cards != NULL && i < count; i++) {
        free(cards[i].data);
    }
    free(cards);
}

static int take_cards(const char *data, size_t bytes, struct hvd_member_card *cards,
                      int size)
{
    for (int i = 0; i < size; i++) {
        uint64_t card_bytes;

        if (bytes < sizeof(card_bytes)) {
            return HVD_ERR_NET;
        }
        memcpy(&card_bytes, data, sizeof(card_bytes));
        data += sizeof(card_bytes);
        bytes -= sizeof(card_bytes);
        if (bytes < card_bytes) {
            return HVD_ERR_NET;
        }
        cards[i].data = malloc(card_bytes > 0 ? card_bytes : 1);
        if (cards[i].data == NULL) {
            return HVD_ERR_NOMEM;
        }
        memcpy(cards[i].data, data, card_bytes);
        cards[i].bytes = card_bytes;
        data += card_bytes;
        bytes -= card_bytes;
    }
    return 0;
}

static int take_formed(const struct hvd_channel_message *message,
                       struct hvd_member_meeting *meeting, struct hvd_error *err)
{
    struct hvd_elastic_formed head = {0};
    struct hvd_member_card *cards;
    int status;

    if (message->bytes >= sizeof(head)) {
        memcpy(&head, message->data, sizeof(head));
    }
    cards = head.size > 0 ? calloc((size_t)head.size, sizeof(*cards)) : NULL;
    status = cards != NULL ? take_cards((const char *)message->data + sizeof(head),
                                        message->bytes - sizeof(head), cards, head.size)
                           : HVD_ERR_NOMEM;
    if (status < 0) {
        free_cards(cards, head.size);
        return hvd_fail(err, status, "no memory for the cards of %d ranks", head.size);
    }
    *meeting = (struct hvd_member_meeting){head.generation, head.rank, head.size, cards};
    return 0;
}

static int take_refusal(const struct hvd_channel_message *message, struct hvd_error *err)
{
    struct hvd_elastic_refused head = {.status = HVD_ERR_STATE};
    int length = (int)(message->bytes - sizeof(head));

    if (message->bytes < sizeof(head)) {
        return hvd_fail(err, HVD_ERR_STATE, "the elastic service refused this rank");
    }
    memcpy(&head, message->data, sizeof(head));
    return hvd_fail(err, head.status < 0 ? head.status : HVD_ERR_STATE, "%.*s", length,
                    (const char *)message->data + sizeof(head));
}

/* What is not an answer to a question. */
static void note(const struct hvd_channel_message *message)
{
    if (message->type == HVD_ELASTIC_UPDATED) {
        member.has_updates = true;
    } else if (message->type == HVD_ELASTIC_LOST && message->bytes == sizeof(int32_t)) {
        memcpy(&member.lost, message->data, sizeof(int32_t));
    }
}

static int fail_gone(struct hvd_error *err)
{
    hvd_channel_destroy(member.channel);
    member.channel = NULL;
    return hvd_fail(err, HVD_ERR_NET,
                    "the elastic service closed the connection: the srun or hvdrun that "
                    "started the job is gone");
}

/* HVD_INPROGRESS: the answer is not there yet. */
static int take_answer(struct hvd_member_meeting *meeting, struct hvd_error *err)
{
    struct hvd_channel_message message;
    int status;

    (void)hvd_channel_progress(member.channel);
    while ((status = hvd_channel_next(member.channel, &message)) == 0) {
        if (message.type == HVD_ELASTIC_FORMED) {
            return take_formed(&message, meeting, err);
        }
        if (message.type == HVD_ELASTIC_REFUSED) {
            return take_refusal(&message, err);
        }
        note(&message);
    }
    return status == HVD_INPROGRESS ? status : fail_gone(err);
}

static int ask(const struct hvd_member_query *query, struct hvd_member_meeting *meeting,
               struct hvd_error *err)
{
    int status = send_join(query);

    if (status < 0) {
        return hvd_fail(err, status, "no memory for this rank's card");
    }
    while ((status = take_answer(meeting, err)) == HVD_INPROGRESS) {
        (void)wait_for_channel(-1);
    }
    return status;
}

/* A link that was cut for a while has ended the connection: this rank comes again, as a new one
 * that has the state. */
static int ask_again(const struct hvd_member_query *query,
                     struct hvd_member_meeting *meeting, struct hvd_error *err)
{
    int status = open_channel(query, err);

    if (status == 0 && member.is_ready) {
        status = hvd_channel_send(member.channel, HVD_ELASTIC_READY, NULL, 0);
    }
    return status == 0 ? ask(query, meeting, err) : status;
}

int hvd_member_meet(const struct hvd_member_query *query,
                    struct hvd_member_meeting *meeting, struct hvd_error *err)
{
    bool was_open;
    int status = 0;

    pthread_mutex_lock(&member.lock);
    member.meets = true;
    was_open = member.channel != NULL;
    if (!was_open) {
        status = open_channel(query, err);
    }
    if (status == 0) {
        status = ask(query, meeting, err);
    }
    if (was_open && member.channel == NULL) {
        status = ask_again(query, meeting, err);
    }
    /* What was told before the answer was about the generation before. */
    member.has_updates = false;
    member.lost = -1;
    member.meets = false;
    pthread_mutex_unlock(&member.lock);
    return status;
}

void hvd_member_ready(void)
{
    pthread_mutex_lock(&member.lock);
    if (member.channel != NULL && !member.meets) {
        (void)hvd_channel_send(member.channel, HVD_ELASTIC_READY, NULL, 0);
        member.is_ready = true;
    }
    pthread_mutex_unlock(&member.lock);
}

static void read_notes(void)
{
    struct hvd_channel_message message;

    if (member.channel != NULL && !member.meets) {
        (void)hvd_channel_progress(member.channel);
        while (hvd_channel_next(member.channel, &message) == 0) {
            note(&message);
        }
    }
}

bool hvd_member_has_updates(void)
{
    bool has_updates;

    pthread_mutex_lock(&member.lock);
    read_notes();
    has_updates = member.has_updates;
    pthread_mutex_unlock(&member.lock);
    return has_updates;
}

int hvd_member_lost(void)
{
    int lost;

    pthread_mutex_lock(&member.lock);
    read_notes();
    lost = member.lost;
    pthread_mutex_unlock(&member.lock);
    return lost;
}
