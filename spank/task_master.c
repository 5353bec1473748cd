/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses MASTER_ADDR and MASTER_PORT, and the address of JAX's coordinator. Rank 0's
 * program inherits the sockets that hold the two ports: while the program lives, the
 * kernel gives these ports to no process that asks for any free port.
 *
 * A process of another user can still ask for these very ports and listen on them
 * first. Then only the script reports it. Unlike hvdrun, the plugin cannot name that user
 * when the task has failed: its later callbacks run as root, and as root it opens no file
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

/* Tells the user why the variables are unset. Without this, a script that does not know
 * hvd would report only that MASTER_ADDR is missing. */
static void tell_failure(const struct hvd_spank_task *task, const struct hvd_error *err)
{
    char host[65] = "";

    gethostname(host, sizeof(host) - 1);
    fprintf(stderr,
            "hvd: rank %d on %s: " HVD_ENV_MASTER_ADDRESS " and " HVD_ENV_MASTER_PORT
            " stay unset: %s\n",
            task->rank, host, err->text);
}

/* Publishes host_port. If it is empty, asks the service for the one that rank 0
 * publishes. */
static int ask_service(const struct hvd_spank_task *task,
                       char host_port[HVD_SPANK_ADDRESS_BYTES], struct hvd_error *err)
{
    char service[640];
    const struct hvd_spank_service_question question = {
        .program = task->plugin->rendezvous_program,
        .service = service,
        .rank = task->rank,
        .timeout_ms = HANG_MS,
    };

    const spank_err_t found =
        spank_getenv(task->spank, HVD_ENV_RENDEZVOUS, service, sizeof(service));

    if (found == ESPANK_NOSPACE) {
        return hvd_fail(err, HVD_ERR_STATE,
                        HVD_ENV_RENDEZVOUS " is longer than %zu bytes",
                        sizeof(service) - 1);
    }
    if (found != ESPANK_SUCCESS) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "Slurm cannot read " HVD_ENV_RENDEZVOUS " of this task: %s",
                        spank_strerror(found));
    }
    return hvd_spank_service_question_ask(&question, host_port, err);
}

/* --- rank 0 --- */

/* Finds the address of this node on the network that leads to srun, which is Slurm's
 * network. If all tasks are on this node, that is 127.0.0.1. */
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

/* Reserves a port with a socket that the program inherits. */
static int hold_port(struct hvd_port_range ports, int *held, uint16_t *port,
                     struct hvd_error *err)
{
    int fd;
    int status = hvd_held_port_open(ports, &fd, port, err);

    if (status < 0) {
        return status;
    }
    *held = fcntl(fd, F_DUPFD, FIRST_HELD);
    if (*held < 0) {
        *held = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
    }
    close(fd);
    return *held >= 0 ? 0
                      : hvd_fail(err, HVD_ERR_SYS, "cannot keep port %u open: %m",
                                 (unsigned)*port);
}

/* Reserves a port for torch and one for JAX, and writes "ADDRESS PORT PORT". If the user
 * limits the range of ports, both share one port: the ranks may need all others. */
static int reserve_ports(const struct hvd_spank_task *task, int held[2],
                         char host_port[HVD_SPANK_ADDRESS_BYTES], struct hvd_error *err)
{
    char address[65];
    char range[64] = "";
    struct hvd_port_range ports = {0};
    uint16_t port = 0;
    uint16_t jax_port;
    int status;

    spank_getenv(task->spank, HVD_ENV_PORT_RANGE, range, sizeof(range));
    status = hvd_port_range_parse(range, &ports, err);
    if (status == 0) {
        status = hold_port(ports, &held[0], &port, err);
    }
    jax_port = port;
    if (status == 0 && range[0] == '\0') {
        status = hold_port(ports, &held[1], &jax_port, err);
    }
    if (status == 0) {
        find_address(task, address, sizeof(address));
        snprintf(host_port, HVD_SPANK_ADDRESS_BYTES, "%s %u %u", address, (unsigned)port,
                 (unsigned)jax_port);
    }
    return status;
}

/* Reserves the ports and publishes them. */
static int offer_ports(const struct hvd_spank_task *task,
                       char host_port[HVD_SPANK_ADDRESS_BYTES], struct hvd_error *err)
{
    int held[2] = {-1, -1};
    int status = reserve_ports(task, held, host_port, err);

    if (status == 0 && task->placement.tasks > 1) {
        status = ask_service(task, host_port, err);
    }
    if (status < 0) {
        close(held[0]);
        close(held[1]);
    }
    return status;
}

/* --- all ranks --- */

/* True if the variables should be set. If there is no service, srun has told the user
 * why. */
static bool is_wanted(const struct hvd_spank_task *task)
{
    const bool has_own = has_variable(task, HVD_ENV_MASTER_ADDRESS) &&
                         has_variable(task, HVD_ENV_MASTER_PORT);

    return !task->plugin->options.is_elastic && !has_own &&
           (task->placement.tasks == 1 || has_variable(task, HVD_ENV_RENDEZVOUS));
}

/* Sets the address of JAX's coordinator. JAX reads JAX_COORDINATOR_PORT only if it has to
 * find the address itself. */
static void export_jax(const struct hvd_spank_task *task, const char *address,
                       const char *port)
{
    char own[16];
    char text[HVD_SPANK_ADDRESS_BYTES];
    const bool is_ipv6 = strchr(address, ':') != NULL;

    if (has_variable(task, HVD_ENV_JAX_ADDRESS)) {
        return;
    }
    if (spank_getenv(task->spank, HVD_ENV_JAX_PORT, own, sizeof(own)) == ESPANK_SUCCESS) {
        port = own;
    }
    snprintf(text, sizeof(text), is_ipv6 ? "[%s]:%s" : "%s:%s", address, port);
    hvd_spank_task_set_default(task, HVD_ENV_JAX_ADDRESS, text);
    hvd_spank_task_set_default(task, HVD_ENV_JAX_PORT, port);
}

void hvd_spank_task_export_master(const struct hvd_spank_task *task)
{
    char host_port[HVD_SPANK_ADDRESS_BYTES] = "";
    struct hvd_error err = {0};
    char *rest = host_port;
    char *address;
    char *port;
    char *jax_port;
    int status;

    if (!is_wanted(task)) {
        return;
    }
    status = task->rank == 0 ? offer_ports(task, host_port, &err)
                             : ask_service(task, host_port, &err);
    address = strsep(&rest, " ");
    port = strsep(&rest, " ");
    jax_port = strsep(&rest, " ");
    if (status == 0 && jax_port == NULL) {
        hvd_fail(&err, HVD_ERR_MISMATCH,
                 "rank 0 published '%.60s': expected its address and two ports", address);
    }
    if (status < 0 || jax_port == NULL) {
        tell_failure(task, &err);
        return;
    }
    export_jax(task, address, jax_port);
    hvd_spank_task_set_default(task, HVD_ENV_MASTER_ADDRESS, address);
    hvd_spank_task_set_default(task, HVD_ENV_MASTER_PORT, port);
}
