/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU that a list gives to a local rank, and the pinning of a thread. */
#include "collectives/core/thread_cpu.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/hvd.h"
#include "tests/tap.h"

static void test_find(void)
{
    tap_ok(hvd_thread_cpu_find("4", 0, 1, NULL) == 4,
           "a list may have one CPU for one rank");
    tap_ok(hvd_thread_cpu_find("0,8,16", 2, 3, NULL) == 16, "each rank gets its own CPU");
    tap_ok(hvd_thread_cpu_find("0,8,16", 1, 2, NULL) == 8,
           "a list may be longer than the node has ranks");
}

static void test_refusals(void)
{
    static const char *const wrong[] = {",",     "1,",  "1,,2", "a",   "1;2",
                                        "1, 2x", "-1",  " 1",   "0-3", "99999999999",
                                        "4096",  "0x1", "1,2,"};
    struct hvd_error err;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        tap_ok(hvd_thread_cpu_find(wrong[i], 0, 1, &err) == HVD_ERR_ARG &&
                   strstr(err.text, "HOROVOD_THREAD_AFFINITY=") != NULL &&
                   strstr(err.text, wrong[i]) != NULL,
               "\"%s\" is refused: %s", wrong[i], err.text);
    }
    tap_ok(hvd_thread_cpu_find("0,1", 0, 3, &err) == HVD_ERR_ARG &&
               strstr(err.text, "2 cpus for the 3 ranks") != NULL,
           "a list that is too short is refused on each rank");
}

static int first_cpu(void)
{
    cpu_set_t cpus;
    int cpu = 0;

    sched_getaffinity(0, sizeof(cpus), &cpus);
    while (!CPU_ISSET(cpu, &cpus)) {
        cpu++;
    }
    return cpu;
}

/* Counts the threads of this process, except the first, that may run on this CPU
 * alone. */
static int threads_on(int cpu)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    cpu_set_t cpus;
    int count = 0;

    while ((task = readdir(tasks)) != NULL) {
        pid_t thread = (pid_t)atoi(task->d_name);

        count += thread > 0 && thread != getpid() &&
                         sched_getaffinity(thread, sizeof(cpus), &cpus) == 0 &&
                         CPU_COUNT(&cpus) == 1 && CPU_ISSET(cpu, &cpus)
                     ? 1
                     : 0;
    }
    closedir(tasks);
    return count;
}

static void test_init(void)
{
    int cpu = first_cpu();
    cpu_set_t before;
    cpu_set_t after;
    char text[16];

    snprintf(text, sizeof(text), "%d", cpu);
    setenv("HOROVOD_THREAD_AFFINITY", text, 1);
    sched_getaffinity(0, sizeof(before), &before);
    tap_ok(hvd_init(NULL) == 0 && threads_on(cpu) == 1, "init pins the progress thread");
    sched_getaffinity(0, sizeof(after), &after);
    tap_ok(CPU_EQUAL(&before, &after), "init changes no other thread");
    hvd_shutdown();
    setenv("HOROVOD_THREAD_AFFINITY", "nowhere", 1);
    tap_ok(hvd_init(NULL) == 0, "init succeeds with a malformed list");
    hvd_shutdown();
}

static void test_pin(void)
{
    int cpu = first_cpu();
    struct hvd_error err;
    cpu_set_t cpus;

    tap_ok(hvd_thread_cpu_pin(pthread_self(), cpu, &err) == 0 &&
               sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1 &&
               CPU_ISSET(cpu, &cpus),
           "a thread is pinned to its CPU");
    tap_ok(hvd_thread_cpu_pin(pthread_self(), CPU_SETSIZE - 1, &err) == HVD_ERR_SYS &&
               strstr(err.text, "cpu 1023") != NULL &&
               sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_ISSET(cpu, &cpus),
           "a thread keeps its CPUs if there is no such CPU: %s", err.text);
}

int main(void)
{
    test_find();
    test_refusals();
    test_init();
    test_pin();
    return tap_done();
}
