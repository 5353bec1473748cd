/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses MASTER_ADDR and MASTER_PORT. Rank 0's program inherits the socket that holds
 * the port: while the program lives, the kernel gives this port to no process that asks
 * for any free port.
 *
 * A process of another user can still ask for this very port and listen on it first. Then
 * only the script reports it. Unlike hvdrun, the plugin cannot name that user when the
 * task has failed: its later callbacks run as root, and as root it opens no file
 * (dispatch.c). */
#include "spank/task_master.h"

#include <fcntl.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/held_port.h"
#include "pmix_boot/route.h"
#include "spank/plugin.h"
#include "spank/service_question.h"
#include "spank/task_init.h"
#include "spank/task_variables.h"

enum {
    /* hvd-rendezvous gives up after ten seconds, unless a name server is slow */
    HANG_MS = 20000,
    /* the first descriptor to try for the socket: scripts use those below ten */
    FIRST_HELD = 200
};

static bool has_variable(const struct hvd_spank_task *task, const char *name)
{
    char text[8];

    return spank_getenv(task->spank, name, text, sizeof(text)) != ESPANK_ENV_NOEXIST;
}

/* Tells the user why the variables are unset: a script that does not know hvd would only
 * say that MASTER_ADDR is missing. */
static void tell_failure(const struct hvd_spank_task *task, const struct hvd_error *err)
{
    char host[65] = "";

    gethostname(host, sizeof(host) - 1);
    fprintf(stderr,
            "hvd: rank %d on %s: " HVD_ENV_MASTER_ADDRESS " and " HVD_ENV_MASTER_PORT
            " stay unset: %s\n",
            task->rank, host, err->text);
}

/* Publishes host_port, or asks for it if it is empty. */
static int ask_service(const struct hvd_spank_task *task,
                       char host_port[HVD_SPANK_ADDRESS_BYTES], struct hvd_error *err)
{
    char service[640];
    const struct hvd_spank_service_question question = {
        .program = task->plugin->rendezvous_program,
        .service = service,
        .timeout_ms = HANG_MS,
    };

    if (spank_getenv(task->spank, HVD_ENV_RENDEZVOUS, service, sizeof(service)) !=
        ESPANK_SUCCESS) {
        return hvd_fail(err, HVD_ERR_STATE,
                        HVD_ENV_RENDEZVOUS " is longer than %zu bytes", sizeof(service));
    }
    return hvd_spank_service_question_ask(&question, host_port, err);
}

/* --- rank 0 --- */

/* Finds the address of this node on the network by which it reaches srun, which Slurm
 * uses, too. */
static void find_address(const struct hvd_spank_task *task, char *address, size_t size)
{
    char peer[64] = "";
    struct hvd_route route;

    if (task->placement.tasks == task->placement.local_size) {
        snprintf(address, size, "127.0.0.1");
        return;
    }
    spank_getenv(task->spank, HVD_ENV_SLURM_SRUN_HOST, peer, sizeof(peer));
    if (hvd_route_find(peer, &route, NULL) == 0 && strcmp(route.interface, "lo") != 0) {
        snprintf(address, size, "%s", route.address);
        return;
    }
    address[0] = '\0';
    gethostname(address, size - 1);
    address[size - 1] = '\0';
}

/* Binds a port and publishes it. The socket stays open, so that the program inherits
 * it. */
static int offer_port(const struct hvd_spank_task *task,
                      char host_port[HVD_SPANK_ADDRESS_BYTES], struct hvd_error *err)
{
    char address[65];
    uint16_t port;
    int held;
    int fd;
    char range[64] = "";
    struct hvd_port_range ports = {0};
    int status;

    spank_getenv(task->spank, HVD_ENV_PORT_RANGE, range, sizeof(range));
    status = hvd_port_range_parse(range, &ports, err);
    if (status < 0) {
        return status;
    }
    status = hvd_held_port_open(ports, &fd, &port, err);
    if (status < 0) {
        return status;
    }
    find_address(task, address, sizeof(address));
    snprintf(host_port, HVD_SPANK_ADDRESS_BYTES, "%s %u", address, (unsigned)port);
    status = task->placement.tasks > 1 ? ask_service(task, host_port, err) : 0;
    if (status < 0) {
        close(fd);
        return status;
    }
    held = fcntl(fd, F_DUPFD, FIRST_HELD);
    if (held < 0) {
        held = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
    }
    close(fd);
    return held >= 0 ? 0
                     : hvd_fail(err, HVD_ERR_SYS, "cannot keep port %u open: %m",
                                (unsigned)port);
}

/* --- all ranks --- */

/* Whether to set the variables. If there is no service, srun has told the user why. */
static bool is_wanted(const struct hvd_spank_task *task)
{
    const bool has_own = has_variable(task, HVD_ENV_MASTER_ADDRESS) &&
                         has_variable(task, HVD_ENV_MASTER_PORT);

    return !task->plugin->options.is_elastic && !has_own &&
           (task->placement.tasks == 1 || has_variable(task, HVD_ENV_RENDEZVOUS));
}

void hvd_spank_task_export_master(const struct hvd_spank_task *task)
{
    char host_port[HVD_SPANK_ADDRESS_BYTES] = "";
    struct hvd_error err = {0};
    char *port;
    int status;

    if (!is_wanted(task)) {
        return;
    }
    status = task->rank == 0 ? offer_port(task, host_port, &err)
                             : ask_service(task, host_port, &err);
    port = status == 0 ? strchr(host_port, ' ') : NULL;
    if (status == 0 && port == NULL) {
        hvd_fail(&err, HVD_ERR_MISMATCH,
                 "rank 0 published '%.60s': expected its address and port", host_port);
    }
    if (port == NULL) {
        tell_failure(task, &err);
        return;
    }
    *port++ = '\0';
    hvd_spank_task_set_default(task, HVD_ENV_MASTER_ADDRESS, host_port);
    hvd_spank_task_set_default(task, HVD_ENV_MASTER_PORT, port);
}
