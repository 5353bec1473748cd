/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that did not start in time, or ended before. */
#include "pmix_boot/rendezvous/missing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

int hvd_missing_hosts_set(struct hvd_missing_hosts *hosts, int rank, const char *host)
{
    if (rank >= hosts->count) {
        const size_t bytes = sizeof(*hosts->host);
        char(*grown)[HVD_MISSING_HOST_BYTES] =
            realloc(hosts->host, ((size_t)rank + 1) * bytes);

        if (grown == NULL) {
            return HVD_ERR_NOMEM;
        }
        memset(grown + hosts->count, 0, (size_t)(rank + 1 - hosts->count) * bytes);
        hosts->host = grown;
        hosts->count = rank + 1;
    }
    snprintf(hosts->host[rank], sizeof(hosts->host[rank]), "%s", host);
    return 0;
}

const char *hvd_missing_hosts_find(const struct hvd_missing_hosts *hosts, int rank)
{
    return rank >= 0 && rank < hosts->count ? hosts->host[rank] : "";
}

void hvd_missing_add(struct hvd_missing *missing, int rank, const char *host)
{
    int at = missing->ranges - 1;

    missing->count++;
    if (at >= 0 && missing->range[at].last == rank - 1 &&
        strncmp(missing->range[at].host, host, HVD_MISSING_HOST_BYTES - 1) == 0) {
        missing->range[at].last = rank;
    } else if (missing->ranges < HVD_MISSING_RANGES) {
        at = missing->ranges++;
        missing->range[at].first = missing->range[at].last = rank;
        snprintf(missing->range[at].host, HVD_MISSING_HOST_BYTES, "%s", host);
    }
}

/* Writes "2, 5-6 (on n2) and 12 more". */
static void list_ranks(const struct hvd_missing *missing, char *text, size_t bytes)
{
    int left = missing->count;
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < missing->ranges; i++) {
        int first = missing->range[i].first, last = missing->range[i].last;
        const char *host = missing->range[i].host;

        left -= last - first + 1;
        used += (size_t)snprintf(text + used, bytes - used,
                                 first == last ? "%s%d" : "%s%d-%d", i > 0 ? ", " : "",
                                 first, last);
        if (host[0] != '\0') {
            used += (size_t)snprintf(text + used, bytes - used, " (on %s)", host);
        }
    }
    if (left > 0) {
        snprintf(text + used, bytes - used, " and %d more", left);
    }
}

int hvd_missing_fail(const struct hvd_missing *missing, int size, int timeout_ms,
                     const char *reason, struct hvd_error *err)
{
    char names[HVD_MISSING_RANGES * (HVD_MISSING_HOST_BYTES + 32) + 32];

    list_ranks(missing, names, sizeof(names));
    return hvd_fail(err, HVD_ERR_TIMEOUT,
                    "%d of %d ranks did not start within %g s: rank%s %s; %s",
                    missing->count, size, timeout_ms / 1000.0,
                    missing->count > 1 ? "s" : "", names, reason);
}

int hvd_missing_fail_end(const struct hvd_missing_end *end, bool is_list,
                         struct hvd_error *err)
{
    const int status = end->wait_status;
    const bool has_host = end->host[0] != '\0';
    char how[80];

    if (WIFSIGNALED(status)) {
        snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(how, sizeof(how), "exited with status %d", WEXITSTATUS(status));
    }
    return hvd_fail(err, HVD_ERR_PEER,
                    "rank %d%s%s %s and did not call init%s: those that wait for it "
                    "cannot start; see its output",
                    (int)end->rank, has_host ? " on " : "", end->host, how,
                    is_list ? " with this list of ranks" : "");
}
