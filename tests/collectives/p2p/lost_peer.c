/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank is killed while the others exchange messages: lost_peer VICTIM
 * HOW.
 *
 *   HOW   receive   the others wait for a message from the victim
 *         send      the others send it large messages that it does not receive
 *         exchange  all ranks send large messages around a ring
 *
 * The others print, in the format of victim.c:
 *
 *   pending N: STATUS SECONDS TEXT   the call that was under way, SECONDS after its start
 *   next N: STATUS TEXT              the call after that */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/survivor.h"

enum {
    BYTES = 4 << 20,
    DELAY_US = 30000,
};

static char in[BYTES], out[BYTES];
static int rank, size;

static void *end_later(void *unused)
{
    usleep(DELAY_US);
    kill(getpid(), SIGKILL);
    return unused;
}

static struct hvd_tensor tensor_of(int64_t *bytes)
{
    return (struct hvd_tensor){.input = out,
                               .output = in,
                               .shape = bytes,
                               .ndim = 1,
                               .dtype = HVD_UINT8,
                               .device = HVD_DEVICE_CPU};
}

static int receive(int source, int64_t bytes, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    const struct hvd_tensor tensor = tensor_of(&bytes);
    int status = hvd_recv_start(&tensor, source, 7, 0, &request, err);

    return survivor_wait(status, request, err);
}

static int send(int dest, int64_t bytes, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    const struct hvd_tensor tensor = tensor_of(&bytes);
    int status = hvd_send_start(&tensor, dest, 7, 0, &request, err);

    return survivor_wait(status, request, err);
}

static int exchange(struct hvd_error *err)
{
    int64_t bytes = BYTES;
    const struct hvd_tensor tensor = tensor_of(&bytes);
    struct hvd_request *request = NULL;
    int status = hvd_send_start(&tensor, (rank + 1) % size, 7, 0, &request, err);
    struct hvd_error ignored;

    if (status == 0) {
        status = receive((rank + size - 1) % size, BYTES, err);
        survivor_wait(0, request, status == 0 ? err : &ignored);
    }
    return status;
}

static int call(const char *how, int victim, struct hvd_error *err)
{
    if (strcmp(how, "receive") == 0) {
        return receive(victim, 1, err);
    }
    return strcmp(how, "send") == 0 ? send(victim, BYTES, err) : exchange(err);
}

int main(int argc, char **argv)
{
    const int victim = argc > 1 ? atoi(argv[1]) : 0;
    const char *how = argc > 2 ? argv[2] : "exchange";
    struct hvd_error err = {0};
    double started;
    pthread_t thread;
    int status;

    rank = survivor_init();
    size = hvd_size();
    status = exchange(&err); /* connects all ranks */
    if (rank == victim) {
        if (pthread_create(&thread, NULL, end_later, NULL) != 0 ||
            strcmp(how, "exchange") != 0) {
            pause();
        }
    }
    do {
        started = survivor_now();
        if (status == 0) {
            status = call(how, victim, &err);
        }
    } while (status == 0);
    survivor_pending(started, status, &err);
    status = call(how, victim, &err);
    return survivor_next(status, &err);
}
