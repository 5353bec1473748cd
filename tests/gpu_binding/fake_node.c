/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a node that exists only as files. */
#include "tests/gpu_binding/fake_node.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PCI "sys/bus/pci/devices/"
#define CPU "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"
#define NIC "devices/pci0000:5d/0000:5e:00.0/infiniband/mlx5_0"

static const struct {
    const char *file;
    const char *text;
} files[] = {
    {CPU "online", "0-3\n"},
    {CPU "possible", "0-3\n"},
    {NODE "online", "0-1\n"},
    {NODE "node0/cpumap", "3\n"},
    {NODE "node1/cpumap", "c\n"},
    {NODE "node0/distance", "10 20\n"},
    {NODE "node1/distance", "20 10\n"},
    {NODE "node0/meminfo", "Node 0 MemTotal: 1048576 kB\n"},
    {NODE "node1/meminfo", "Node 1 MemTotal: 1048576 kB\n"},
    {"proc/cpuinfo", "processor : 0\n"},
    {"proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"},
    {"proc/self/cgroup", "0::/step\n"},
    {"sys/fs/cgroup/cgroup.controllers", "cpuset\n"},
    {"sys/fs/cgroup/step/cgroup.controllers", "cpuset\n"},
    {"sys/fs/cgroup/step/cpuset.mems.effective", "0-1\n"},
    {PCI "0000:86:00.0/vendor", "0x10de\n"},
    {PCI "0000:86:00.0/device", "0x1db5\n"},
    {PCI "0000:86:00.0/class", "0x030200\n"},
    {PCI "0000:5e:00.0/vendor", "0x15b3\n"},
    {PCI "0000:5e:00.0/device", "0x1017\n"},
    {PCI "0000:5e:00.0/class", "0x020700\n"},
    {PCI "0000:5e:00.0/local_cpus", "3\n"},
    {"sys/" NIC "/ports/1/state", "4: ACTIVE\n"},
    {"sys/" NIC "/ports/2/state", "1: DOWN\n"},
};

static void give_up(const char *what)
{
    printf("Bail out! cannot make %s\n", what);
    exit(1);
}

void fake_node_write(const char *path, const char *file, const char *text)
{
    char name[512];

    snprintf(name, sizeof(name), "%s/%s", path, file);
    for (char *at = name + strlen(path) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(name, 0755);
        *at = '/';
    }
    FILE *out = fopen(name, "we");
    if (out == NULL || fputs(text, out) < 0 || fclose(out) != 0) {
        give_up(name);
    }
}

static void write_cpu(const char *path, int cpu)
{
    char file[128];
    char text[16];
    static const char topology[] = CPU "cpu%d/topology/%s";

    snprintf(file, sizeof(file), topology, cpu, "physical_package_id");
    snprintf(text, sizeof(text), "%d\n", cpu / 2);
    fake_node_write(path, file, text);
    snprintf(file, sizeof(file), topology, cpu, "core_id");
    snprintf(text, sizeof(text), "%d\n", cpu % 2);
    fake_node_write(path, file, text);
    snprintf(file, sizeof(file), topology, cpu, "core_cpus");
    snprintf(text, sizeof(text), "%x\n", 1U << cpu);
    fake_node_write(path, file, text);
    snprintf(file, sizeof(file), topology, cpu, "package_cpus");
    fake_node_write(path, file, cpu < 2 ? "3\n" : "c\n");
}

static void link_nic(const char *path)
{
    char name[512];

    snprintf(name, sizeof(name), "%s/sys/class", path);
    mkdir(name, 0755);
    snprintf(name, sizeof(name), "%s/sys/class/infiniband", path);
    mkdir(name, 0755);
    snprintf(name, sizeof(name), "%s/sys/class/infiniband/mlx5_0", path);
    if (symlink("../../" NIC, name) < 0) {
        give_up(name);
    }
}

void fake_node_create(const char *local_cpus, const char *step, char *path)
{
    snprintf(path, 64, "/tmp/hvd-fake-node-XXXXXX");
    if (mkdtemp(path) == NULL) {
        give_up(path);
    }
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        fake_node_write(path, files[i].file, files[i].text);
    }
    for (int cpu = 0; cpu < 4; cpu++) {
        write_cpu(path, cpu);
    }
    fake_node_write(path, PCI "0000:86:00.0/local_cpus", local_cpus);
    fake_node_write(path, "sys/fs/cgroup/step/cpuset.cpus.effective", step);
    link_nic(path);
    setenv("HWLOC_FSROOT", path, 1);
    setenv("HWLOC_COMPONENTS", "linux,stop", 1);
}

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

void fake_node_destroy(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
