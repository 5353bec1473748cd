/* SPDX-License-Identifier: Apache-2.0 */
/* Each process has one connection, hence one static record.
 *
 * Forks take the lock, so it is not held while this rank waits for the service or for
 * other ranks, which may take as long as the elastic timeout. */
#include "pmix_boot/rendezvous/client.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/fork_close.h"
#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/sock/socket.h"

/* How often to join again in one call, if the connection breaks each time. */
static const int most_repeats = 3;

static struct {
    pthread_mutex_t lock;
    struct hvd_channel *channel; /* NULL if not connected */
    bool watches_process; /* handlers of forks and of the process's end are registered */
    /* a thread is in hvd_rendezvous_client_join and alone uses the channel */
    bool is_joining;
    unsigned forks; /* number of forks of this process so far */
    bool is_ready; /* the service knows that this rank has the state of the training */
    struct hvd_rendezvous_notices notices;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .notices.lost = -1};

/* --- a forked child is not a rank: it must not keep its parent's connection open --- */

static void before_fork(void)
{
    pthread_mutex_lock(&client.lock);
}

static void after_fork_in_parent(void)
{
    client.forks++;
    pthread_mutex_unlock(&client.lock);
}

/* fork_close.c has closed the connection. The memory is not freed, because free is not
 * safe in a forked child. */
static void after_fork_in_child(void)
{
    client.channel = NULL;
    client.is_joining = false;
    pthread_mutex_unlock(&client.lock);
}

/* Reports exit(0) to the service. If another thread holds the lock when this one calls
 * exit, that thread will never release it, so this one does not wait. */
static void tell_success(int status, void *unused)
{
    (void)unused;
    if (status == 0 && pthread_mutex_trylock(&client.lock) == 0) {
        if (client.channel != NULL && !client.is_joining) {
            (void)hvd_channel_send(client.channel, HVD_RENDEZVOUS_DONE, NULL, 0);
        }
        pthread_mutex_unlock(&client.lock);
    }
}

static void watch_process(void)
{
    if (!client.watches_process) {
        client.watches_process = true;
        hvd_fork_close_watch();
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        (void)on_exit(tell_success, NULL);
    }
}

/* --- connecting, with the lock held --- */

/* Waits for the service; releases the lock meanwhile. */
static bool wait_for_channel(int64_t deadline_ms)
{
    const int fd = hvd_channel_fd(client.channel);
    const bool is_pending = hvd_channel_is_pending(client.channel);
    bool is_ready;

    pthread_mutex_unlock(&client.lock);
    is_ready = hvd_socket_wait(fd, is_pending ? POLLIN | POLLOUT : POLLIN, deadline_ms);
    pthread_mutex_lock(&client.lock);
    return is_ready;
}

/* Connects; releases the lock meanwhile. A child forked in that time may hold the socket
 * without knowing it: then this rank connects again. */
static int open_channel(const struct hvd_rendezvous_join_query *query,
                        struct hvd_error *err)
{
    const int64_t deadline_ms = hvd_clock_ms() + query->timeout_ms;

    watch_process();
    for (;;) {
        const unsigned forks = client.forks;
        const int64_t left_ms = deadline_ms - hvd_clock_ms();
        struct hvd_rendezvous_call *call = NULL;
        struct hvd_channel *channel;
        int status;

        pthread_mutex_unlock(&client.lock);
        status = hvd_rendezvous_call_begin(query->address, left_ms > 0 ? (int)left_ms : 0,
                                           &call, err);
        pthread_mutex_lock(&client.lock);
        if (status < 0) {
            return status;
        }
        channel = hvd_rendezvous_call_release(call);
        if (client.forks == forks) {
            client.channel = channel;
            return 0;
        }
        shutdown(hvd_channel_fd(channel), SHUT_RDWR);
        hvd_channel_destroy(channel);
    }
}

/* --- generation --- */

/* Handles a notice, which is not an answer to a join. */
static void note_notice(const struct hvd_channel_message *message)
{
    uint32_t changes;

    if (message->type == HVD_RENDEZVOUS_UPDATED && message->bytes == sizeof(changes)) {
        memcpy(&changes, message->data, sizeof(changes));
        client.notices.changes |= changes;
    } else if (message->type == HVD_RENDEZVOUS_LOST &&
               message->bytes == sizeof(int32_t)) {
        memcpy(&client.notices.lost, message->data, sizeof(int32_t));
    }
}

static int fail_gone(struct hvd_error *err)
{
    hvd_channel_destroy(client.channel);
    client.channel = NULL;
    return hvd_fail(
        err, HVD_ERR_NET,
        "the connection to the rendezvous service broke: the srun or hvdrun that started "
        "the job has ended, or the network failed");
}

/* Handles what has arrived. Returns HVD_INPROGRESS if the answer has yet to arrive. */
static int take_answer(struct hvd_rendezvous_generation *generation,
                       struct hvd_error *err)
{
    struct hvd_channel_message message;
    int culprit;
    int status;

    (void)hvd_channel_progress(client.channel);
    while ((status = hvd_channel_next(client.channel, &message)) == 0) {
        if (message.type == HVD_RENDEZVOUS_FORMED ||
            message.type == HVD_RENDEZVOUS_REFUSED) {
            return hvd_rendezvous_join_read(&message, generation, &culprit, err);
        }
        note_notice(&message);
    }
    return status == HVD_INPROGRESS ? status : fail_gone(err);
}

static int ask_service(const struct hvd_rendezvous_join_query *query,
                       struct hvd_rendezvous_generation *generation,
                       struct hvd_error *err)
{
    struct hvd_channel_message question;
    int status = hvd_rendezvous_join_make(query, &question, err);

    if (status < 0) {
        return status;
    }
    status =
        hvd_channel_send(client.channel, question.type, question.data, question.bytes);
    free((void *)question.data);
    if (status < 0) {
        return hvd_fail(err, status, "no memory for this rank's card");
    }
    while ((status = take_answer(generation, err)) == HVD_INPROGRESS) {
        (void)wait_for_channel(-1);
    }
    return status;
}

/* Connects again, as a new rank that has the state: the connection ended because the
 * network was down for a while. */
static int open_again(const struct hvd_rendezvous_join_query *query,
                      struct hvd_error *err)
{
    int status = open_channel(query, err);

    if (status == 0 && client.is_ready) {
        status = hvd_channel_send(client.channel, HVD_RENDEZVOUS_READY, NULL, 0);
    }
    return status;
}

int hvd_rendezvous_client_join(const struct hvd_rendezvous_join_query *query,
                               struct hvd_rendezvous_generation *generation,
                               struct hvd_error *err)
{
    int status = 0;

    pthread_mutex_lock(&client.lock);
    client.is_joining = true;
    if (client.channel == NULL) {
        status = open_channel(query, err);
    }
    for (int i = 0; status == 0; i++) {
        status = ask_service(query, generation, err);
        if (client.channel != NULL || i == most_repeats) {
            break;
        }
        status = open_again(query, err);
    }
    /* Notices before the answer were about the previous generation. */
    client.notices = (struct hvd_rendezvous_notices){.lost = -1};
    client.is_joining = false;
    pthread_mutex_unlock(&client.lock);
    return status;
}

void hvd_rendezvous_client_ready(void)
{
    pthread_mutex_lock(&client.lock);
    if (client.channel != NULL && !client.is_joining) {
        (void)hvd_channel_send(client.channel, HVD_RENDEZVOUS_READY, NULL, 0);
        client.is_ready = true;
    }
    pthread_mutex_unlock(&client.lock);
}

struct hvd_rendezvous_notices hvd_rendezvous_client_notices(void)
{
    struct hvd_rendezvous_notices notices;
    struct hvd_channel_message message;

    pthread_mutex_lock(&client.lock);
    if (client.channel != NULL && !client.is_joining) {
        client.notices.is_cut = hvd_channel_progress(client.channel) < 0;
        while (hvd_channel_next(client.channel, &message) == 0) {
            note_notice(&message);
        }
    }
    notices = client.notices;
    pthread_mutex_unlock(&client.lock);
    return notices;
}
