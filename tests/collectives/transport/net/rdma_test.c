/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which RDMA devices are found in the kernel's files, and which environment
 * variables keep UCX and NCCL from using them. */
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/net/rdma.h"
#include "tests/tap.h"

static char root[64] = "/tmp/hvd-rdma-XXXXXX";

/* Writes a file below root; creates its folders. */
static void put(const char *path, const char *text)
{
    char name[512];
    FILE *file;

    snprintf(name, sizeof(name), "%s/%s", root, path);
    for (char *slash = strchr(name + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(name, 0700);
        *slash = '/';
    }
    file = fopen(name, "w");
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

static void test_cards(void)
{
    struct hvd_rdma_devices devices;

    hvd_rdma_find(root, &devices);
    tap_ok(devices.names[0] == '\0' && !devices.has_peermem,
           "no device is found where there is none");
    put("sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
    put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN\n");
    for (char port = '1'; port <= '3'; port++) {
        char path[] = "sys/class/infiniband/mlx5_3/ports/N/state";

        *strchr(path, 'N') = port;
        put(path, port == '3' ? "4: ACTIVE\n" : "1: DOWN\n");
    }
    put("sys/module/nvidia_peermem/refcnt", "0\n");
    hvd_rdma_find(root, &devices);
    tap_ok(strcmp(devices.names, "mlx5_0, mlx5_1, mlx5_3") == 0,
           "active devices are named: %s", devices.names);
    tap_ok(devices.has_peermem, "GPUDirect is found");
}

/* The only environment variable that is set in a test. */
static const char *variable, *value;

static const char *look_up(const char *name)
{
    return strcmp(name, variable) == 0 ? value : NULL;
}

static const char *obstacle(bool of_ucx, const char *name, const char *text)
{
    static char found[128];

    variable = name;
    value = text;
    found[0] = '\0';
    if (of_ucx) {
        hvd_rdma_ucx_obstacle(look_up, "mlx5_0, mlx5_1", found, sizeof(found));
    } else {
        hvd_rdma_nccl_obstacle(look_up, found, sizeof(found));
    }
    return found;
}

static void ucx(const char *name, const char *text, bool is_kept_off)
{
    const char *found = obstacle(true, name, text);

    tap_ok(is_kept_off ? strstr(found, text) != NULL : found[0] == '\0', "%s=%s %s", name,
           text,
           is_kept_off ? "keeps UCX from InfiniBand"
                       : "does not keep UCX from InfiniBand");
}

static void test_obstacles(void)
{
    tap_ok(strcmp(obstacle(false, "NCCL_IB_DISABLE", "1"), "NCCL_IB_DISABLE=1") == 0,
           "NCCL_IB_DISABLE=1 is an obstacle");
    tap_ok(obstacle(false, "NCCL_IB_DISABLE", "0")[0] == '\0',
           "NCCL_IB_DISABLE=0 is no obstacle");
    tap_ok(strcmp(obstacle(false, "NCCL_NET", "Socket"), "NCCL_NET=Socket") == 0,
           "NCCL_NET=Socket is an obstacle");
    ucx("UCX_TLS", "tcp", true);
    ucx("UCX_TLS", "tcp,cuda_copy", true);
    ucx("UCX_TLS", "^ib", true);
    ucx("UCX_TLS", "rc,tcp", false);
    ucx("UCX_TLS", "rc_mlx5,self", false);
    ucx("UCX_TLS", "all", false);
    ucx("UCX_TLS", "^shm", false);
    ucx("UCX_NET_DEVICES", "eth0", true);
    ucx("UCX_NET_DEVICES", "mlx5_2:1", true);
    ucx("UCX_NET_DEVICES", "eth0,mlx5_1:1", false);
    ucx("UCX_NET_DEVICES", "all", false);
}

/* Gives up CAP_IPC_LOCK, with all other capabilities, and may lock so many bytes. */
static bool limit_locked(rlim_t bytes)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};

    return setrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
           syscall(SYS_capset, &head, none) == 0;
}

enum answer {
    RIGHT,
    WRONG,
    UNASKED, /* this machine does not permit the limit */
};

/* Checks in a child, which has this limit, that it is told whether it may lock enough. */
static int ask_child(rlim_t bytes, bool may_lock)
{
    struct hvd_error err = {0};
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        bool is_right;

        if (!limit_locked(bytes)) {
            _exit(UNASKED);
        }
        is_right = (hvd_rdma_check_memlock(&err) == 0) == may_lock &&
                   (may_lock || strstr(err.text, "only 64 KiB") != NULL);
        _exit(is_right ? RIGHT : WRONG);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : WRONG;
}

static void test_memlock(void)
{
    static const char enough[] = "with 128 MiB it may lock enough";
    int answer = ask_child((rlim_t)128 << 20, true);

    tap_ok(
        ask_child((rlim_t)64 << 10, false) == RIGHT,
        "with ulimit -l 64, a rank may lock too little for UCX, and the error says so");
    if (answer == UNASKED) {
        tap_skip(enough, "the hard limit of ulimit -l is lower");
    } else {
        tap_ok(answer == RIGHT, "%s", enough);
    }
}

int main(void)
{
    char command[128];

    if (mkdtemp(root) == NULL) {
        printf("Bail out! no folder\n");
        return 1;
    }
    test_cards();
    test_obstacles();
    test_memlock();
    snprintf(command, sizeof(command), "rm -rf %s", root);
    tap_ok(system(command) == 0, "the folder of the test can be removed");
    return tap_done();
}
