/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the InfiniBand and RoCE adapters of a node. */
#include "collectives/transport/net/rdma.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

/* UCX 1.13.1 registers its receive buffers of rc_verbs and ud_verbs. With a limit of
 * 40 MiB it hung, with 64 MiB all collectives ran (tests/rdma). */
static const size_t least_locked = (size_t)64 << 20;

/* Whether the port is up, according to its file in the folder `ports`: "4: ACTIVE". */
static bool is_up(const char *ports, const char *port)
{
    char path[512], text[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "%s/%.64s/state", ports, port);
    file = fopen(path, "re");
    if (file != NULL) {
        (void)!fgets(text, sizeof(text), file);
        fclose(file);
    }
    return text[0] == '4';
}

static bool is_active(const char *root, const char *name)
{
    const struct dirent *port;
    bool is_found = false;
    char path[384];
    DIR *ports;

    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.64s/ports", root, name);
    ports = opendir(path);
    while (ports != NULL && !is_found && (port = readdir(ports)) != NULL) {
        is_found = port->d_name[0] != '.' && is_up(path, port->d_name);
    }
    if (ports != NULL) {
        closedir(ports);
    }
    return is_found;
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

static bool has_module(const char *root, const char *module)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/sys/module/%s", root, module);
    return access(path, F_OK) == 0;
}

void hvd_rdma_find(const char *root, struct hvd_rdma_devices *devices)
{
    struct dirent **names = NULL;
    char path[512];
    size_t used = 0;
    int count;

    *devices = (struct hvd_rdma_devices){0};
    devices->has_peermem =
        has_module(root, "nvidia_peermem") || has_module(root, "nv_peer_mem");
    snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
    count = scandir(path, &names, NULL, by_name);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;

        if (name[0] != '.' && is_active(root, name) &&
            used + strlen(name) + 3 < sizeof(devices->names)) {
            used += (size_t)snprintf(devices->names + used, sizeof(devices->names) - used,
                                     "%s%s", used > 0 ? ", " : "", name);
        }
        free(names[i]);
    }
    free(names);
}

/* --- variables --- */

static bool name_variable(const char *name, const char *value, char *text, size_t size)
{
    snprintf(text, size, "%s=%.64s", name, value);
    return true;
}

bool hvd_rdma_nccl_obstacle(hvd_look_up *look_up, char *text, size_t size)
{
    const char *disable = look_up(HVD_ENV_NCCL_IB_DISABLE);
    const char *net = look_up(HVD_ENV_NCCL_NET);

    if (disable != NULL && strcmp(disable, "1") == 0) {
        return name_variable(HVD_ENV_NCCL_IB_DISABLE, disable, text, size);
    }
    return net != NULL && strcmp(net, "Socket") == 0 &&
           name_variable(HVD_ENV_NCCL_NET, net, text, size);
}

/* Whether the list has a word that is a wanted one, or continues it after ':' or '_'. */
static bool has_word(const char *list, const char *const *wanted)
{
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        size_t length = strcspn(at, ",");

        for (int i = 0; wanted[i] != NULL; i++) {
            size_t bytes = strlen(wanted[i]);

            if (length >= bytes && strncmp(at, wanted[i], bytes) == 0 &&
                (length == bytes || strchr("_:", at[bytes]) != NULL)) {
                return true;
            }
        }
        at += length;
    }
    return false;
}

/* Whether `devices`, such as "mlx5_0:1,...", has the name of an adapter in `names`, such
 * as "mlx5_0, mlx5_1", or is "all". */
static bool names_a_card(const char *devices, const char *names)
{
    for (const char *at = names; *at != '\0';) {
        size_t length = strcspn(at, ",");
        char name[64];
        const char *const wanted[] = {name, "all", NULL};

        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        if (has_word(devices, wanted)) {
            return true;
        }
        at += length;
        at += strspn(at, ", ");
    }
    return false;
}

bool hvd_rdma_ucx_obstacle(hvd_look_up *look_up, const char *names, char *text,
                           size_t size)
{
    static const char *const transports[] = {"all", "ib",  "rc",  "ud",
                                             "dc",  "srd", "gga", NULL};
    const char *tls = look_up(HVD_ENV_UCX_TLS);
    const char *devices = look_up(HVD_ENV_UCX_NET_DEVICES);

    if (tls != NULL && tls[0] != '\0' && tls[0] != '^' && !has_word(tls, transports)) {
        return name_variable(HVD_ENV_UCX_TLS, tls, text, size);
    }
    if (tls != NULL && tls[0] == '^' &&
        has_word(tls + 1, (const char *const[]){"ib", NULL})) {
        return name_variable(HVD_ENV_UCX_TLS, tls, text, size);
    }
    return devices != NULL && devices[0] != '\0' && devices[0] != '^' &&
           !names_a_card(devices, names) &&
           name_variable(HVD_ENV_UCX_NET_DEVICES, devices, text, size);
}

static const char *in_environment(const char *name)
{
    return getenv(name);
}

bool hvd_rdma_is_unusable(char *text, size_t size)
{
    struct hvd_rdma_devices devices;

    hvd_rdma_find("", &devices);
    if (devices.names[0] == '\0') {
        snprintf(text, size, "no RDMA adapter is active");
        return true;
    }
    return hvd_rdma_ucx_obstacle(in_environment, devices.names, text, size);
}

/* --- locked memory --- */

int hvd_rdma_check_memlock(struct hvd_error *err)
{
    struct rlimit limit = {0};
    void *probe;
    int error = 0;

    /* The kernel judges this request as it judges those of UCX, with regard to the limit
     * and to CAP_IPC_LOCK, but no page is filled. */
    probe = mmap(NULL, least_locked, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        return 0;
    }
    if (mlock2(probe, least_locked, MLOCK_ONFAULT) != 0) {
        error = errno;
    }
    munmap(probe, least_locked);
    if (error != ENOMEM && error != EPERM) {
        return 0;
    }
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur >= least_locked) {
        return 0;
    }
    return hvd_fail(
        err, HVD_ERR_SYS,
        "a rank may lock only %zu KiB of memory, and UCX needs %zu KiB for an "
        "RDMA adapter: raise the limit (ulimit -l unlimited; in Slurm also "
        "LimitMEMLOCK=infinity for slurmd)",
        (size_t)limit.rlim_cur >> 10, least_locked >> 10);
}
