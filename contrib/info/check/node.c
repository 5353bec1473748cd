/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/node.h"

#include <dirent.h>
#include <glob.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "contrib/info/check/values.h"
#include "gpu_binding/affinity.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/cpulist.h"

static const double mib = 1024.0 * 1024.0;

/* Reads a word of a file of sysfs. Returns whether there is one. */
static bool read_word(const char *path, char word[64])
{
    FILE *file = fopen(path, "re");
    bool is_found = file != NULL && fscanf(file, "%63s", word) == 1;

    if (file != NULL) {
        fclose(file);
    }
    return is_found;
}

static double read_number(const char *path)
{
    char word[64];
    double number;

    return read_word(path, word) && sscanf(word, "%lf", &number) == 1 ? number : NAN;
}

/* Returns the rate of the fastest active port in Gb/s, or NAN. */
static double read_rdma(void)
{
    glob_t found = {0};
    char state[64], path[512];
    double most = NAN;

    glob("/sys/class/infiniband/*/ports/*", 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        snprintf(path, sizeof(path), "%s/state", found.gl_pathv[i]);
        if (read_word(path, state) && strncmp(state, "4:", 2) == 0) {
            snprintf(path, sizeof(path), "%s/rate", found.gl_pathv[i]);
            most = fmax(most, read_number(path));
        }
    }
    globfree(&found);
    return most;
}

static double read_memlock(bool has_rdma)
{
    struct rlimit limit;

    if (!has_rdma || getrlimit(RLIMIT_MEMLOCK, &limit) < 0) {
        return NAN;
    }
    return limit.rlim_cur == RLIM_INFINITY ? INFINITY : (double)limit.rlim_cur / mib;
}

/* Counts the cpus that the plugin has planned for this rank, and that it may not use. */
static double count_lost(hvd_info_lookup lookup)
{
    const char *text = lookup(HVD_ENV_CPUS);
    struct hvd_cpuset planned, found;
    double lost = 0;

    if (text == NULL || hvd_cpulist_parse(text, &planned, NULL) < 0 ||
        hvd_affinity_get(&found, NULL) < 0) {
        return NAN;
    }
    for (int cpu = 0; cpu < HVD_CPUSET_SIZE; cpu++) {
        lost += hvd_cpuset_has(&planned, cpu) && !hvd_cpuset_has(&found, cpu);
    }
    return lost;
}

/* Prints the interfaces that are up, except the loopback: "network: eth0, 10000 Mb/s, MTU
 * 1500". Returns the speed of the fastest one, or NAN. */
static double print_interfaces(FILE *out)
{
    double most = NAN;
    DIR *folder = opendir("/sys/class/net");
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[512], state[64];
        double speed, mtu;

        snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", entry->d_name);
        if (!read_word(path, state) || strcmp(state, "up") != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "/sys/class/net/%s/speed", entry->d_name);
        speed = read_number(path);
        snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", entry->d_name);
        mtu = read_number(path);
        fprintf(out, "network: %s, ", entry->d_name);
        if (speed > 0) {
            fprintf(out, "%.0f Mb/s, ", speed);
            most = fmax(most, speed);
        }
        fprintf(out, "MTU %.0f\n", mtu);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return most;
}

/* Prints the governor of the first cpu: a job on nodes with different ones is as slow as
 * the slowest. */
static void print_governor(FILE *out)
{
    char word[64];

    if (read_word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", word)) {
        fprintf(out, "cpu governor: %s\n", word);
    }
}

void hvd_info_node_read(hvd_info_lookup lookup, double *values, FILE *out)
{
    struct statvfs shm;
    struct utsname system;

    values[HVD_INFO_CORES] = (double)sysconf(_SC_NPROCESSORS_ONLN);
    values[HVD_INFO_MEMORY_GIB] =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / mib / 1024;
    values[HVD_INFO_SHM_MIB] = statvfs("/dev/shm", &shm) == 0
                                   ? (double)shm.f_bavail * (double)shm.f_frsize / mib
                                   : 0;
    values[HVD_INFO_RDMA_GBITS] = read_rdma();
    values[HVD_INFO_MEMLOCK_MIB] = read_memlock(!isnan(values[HVD_INFO_RDMA_GBITS]));
    values[HVD_INFO_CPUS_LOST] = count_lost(lookup);
    if (uname(&system) == 0) {
        fprintf(out, "kernel: %s\n", system.release);
    }
    fprintf(out, "node: %.0f cpus, %.0f GiB of memory\n", values[HVD_INFO_CORES],
            values[HVD_INFO_MEMORY_GIB]);
    print_governor(out);
    values[HVD_INFO_ETHERNET_MBITS] = print_interfaces(out);
}

double hvd_info_node_clock(void)
{
    char path[128];
    int cpu = sched_getcpu();
    double now, most;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq",
             cpu);
    now = read_number(path);
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq",
             cpu);
    most = read_number(path);
    return 100 * now / most;
}
