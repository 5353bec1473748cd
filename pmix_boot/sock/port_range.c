/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/sock/port_range.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"

enum {
    LAST_PORT = 65535,
    /* number of attempts if the kernel chooses the port: it looks for a port that is free
     * at the first address, but the port may be in use at another */
    ANY_TRIES = 100
};

static bool parse_number(const char **text, long *out)
{
    char *end;

    if (**text < '0' || **text > '9') {
        return false;
    }
    errno = 0;
    *out = strtol(*text, &end, 10);
    *text = end;
    return errno == 0 && *out >= 1 && *out <= LAST_PORT;
}

int hvd_port_range_parse(const char *text, struct hvd_port_range *out,
                         struct hvd_error *err)
{
    const char *next = text;
    long first;
    long last;

    if (text == NULL || text[0] == '\0') {
        *out = (struct hvd_port_range){0};
        return 0;
    }
    if (!parse_number(&next, &first) || *next++ != '-' || !parse_number(&next, &last) ||
        *next != '\0' || first > last) {
        return hvd_fail(err, HVD_ERR_ARG,
                        HVD_ENV_PORT_RANGE
                        " is '%.60s', but must be two TCP ports, such as 60001-63000",
                        text);
    }
    *out = (struct hvd_port_range){(uint16_t)first, (uint16_t)last};
    return 0;
}

/* Starts at a different port in each process, so that ranks that start together seldom
 * try the same port. */
int hvd_port_range_bind(struct hvd_port_range range, hvd_port_range_binder bind,
                        void *context)
{
    const bool is_any = range.first == 0;
    const unsigned count = is_any ? ANY_TRIES : (unsigned)(range.last - range.first) + 1;
    const unsigned start = (unsigned)(hvd_clock_ns() % count);
    int status = -1;

    for (unsigned i = 0; i < count; i++) {
        const unsigned port = is_any ? 0 : range.first + (start + i) % count;

        status = bind(context, (uint16_t)port);
        if (status == 0 || errno != EADDRINUSE) {
            break;
        }
    }
    return status;
}
