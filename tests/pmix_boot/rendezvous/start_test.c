/* SPDX-License-Identifier: Apache-2.0 */
/* What hvdrun and srun tell the service of an elastic job. */
#include "pmix_boot/rendezvous/start.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

/* What has arrived at the service's end, at most size - 1 bytes. */
static const char *heard(int orders, char *text, size_t size)
{
    ssize_t bytes = read(orders, text, size - 1);

    text[bytes > 0 ? bytes : 0] = '\0';
    return text;
}

int main(void)
{
    int orders[2];
    char text[64];

    if (pipe2(orders, O_NONBLOCK | O_CLOEXEC) != 0) {
        printf("Bail out! no pipe\n");
        return 1;
    }
    hvd_rendezvous_expect(&(struct hvd_rendezvous_service){.pid = 1, .orders = orders[1]},
                          1, 3);
    tap_ok(strcmp(heard(orders[0], text, sizeof(text)), "expect 3 without 1\n") == 0,
           "the service is told how many ranks are still to be expected");
    hvd_rendezvous_expect(&(struct hvd_rendezvous_service){.orders = orders[1]}, 1, 3);
    tap_ok(heard(orders[0], text, sizeof(text))[0] == '\0',
           "one that was not started is told nothing");
    return tap_done();
}
