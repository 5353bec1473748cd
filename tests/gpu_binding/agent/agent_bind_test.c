/* SPDX-License-Identifier: Apache-2.0 */
/* Tests agent_bind.h against the kernel of this machine. */
#include "gpu_binding/agent/agent_bind.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/affinity.h"
#include "gpu_binding/topology.h"
#include "tests/tap.h"

static struct hvd_cpuset all; /* the cpus of this process at the start */
static struct hvd_cpuset first; /* the first of them */
static struct hvd_cpuset last;

/* A thread that waits until the test ends. */
struct sleeper {
    pthread_t thread;
    pthread_barrier_t barrier;
    pid_t number;
};

static void *run_sleeper(void *self)
{
    struct sleeper *sleeper = self;

    sleeper->number = gettid();
    pthread_barrier_wait(&sleeper->barrier);
    pthread_barrier_wait(&sleeper->barrier);
    return NULL;
}

static void start_sleeper(struct sleeper *sleeper)
{
    pthread_barrier_init(&sleeper->barrier, NULL, 2);
    pthread_create(&sleeper->thread, NULL, run_sleeper, sleeper);
    pthread_barrier_wait(&sleeper->barrier);
}

static void end_sleeper(struct sleeper *sleeper)
{
    pthread_barrier_wait(&sleeper->barrier);
    pthread_join(sleeper->thread, NULL);
    pthread_barrier_destroy(&sleeper->barrier);
}

static bool has(pid_t thread, const struct hvd_cpuset *cpus)
{
    struct hvd_cpuset now = {{0}};

    return hvd_affinity_get_of(thread, &now) == 0 && hvd_cpuset_is_equal(&now, cpus);
}

static void test_threads(void)
{
    const struct hvd_agent_plan plan = {
        .agent = all, .cpus = first, .memory_node = HVD_NONE};
    struct sleeper free_thread;
    struct sleeper placed_thread;

    start_sleeper(&free_thread);
    start_sleeper(&placed_thread);
    hvd_affinity_set_of(placed_thread.number, &last);
    tap_ok(hvd_agent_is_unbound(&plan),
           "a process with all cpus of its agent is unbound");
    tap_ok(hvd_agent_bind(&plan, NULL) == 0 && has(0, &first), "its row binds it");
    tap_ok(has(free_thread.number, &first), "also its other threads");
    tap_ok(has(placed_thread.number, &last), "but not those that have other cpus");
    tap_ok(!hvd_agent_is_unbound(&plan), "afterwards it is bound");
    hvd_affinity_set_of(0, &all);
    end_sleeper(&free_thread);
    end_sleeper(&placed_thread);
}

static void test_limits(void)
{
    struct hvd_agent_plan plan = {.agent = first, .cpus = all, .memory_node = HVD_NONE};
    struct hvd_error err = {0};

    tap_ok(!hvd_agent_is_unbound(&plan),
           "a process with other cpus than its agent is not unbound");
    hvd_affinity_set_of(0, &first);
    tap_ok(hvd_agent_is_unbound(&plan) && hvd_agent_bind(&plan, NULL) == 0 &&
               has(0, &first),
           "a row with more cpus than the agent has gives none of them");
    plan.cpus = last;
    tap_ok(hvd_agent_bind(&plan, &err) == HVD_ERR_ARG && has(0, &first) &&
               strstr(err.text, "may use only") != NULL,
           "a row with none of the agent's cpus is an error that changes nothing");
    hvd_affinity_set_of(0, &all);
    plan = (struct hvd_agent_plan){.agent = all, .memory_node = HVD_NONE};
    tap_ok(hvd_agent_bind(&plan, NULL) == 0 && has(0, &all),
           "a row without cpus binds nothing");
}

static void test_memory(void)
{
    const struct hvd_agent_plan plan = {.agent = all, .memory_node = 0};

    if (hvd_agent_bind(&plan, NULL) != 0) {
        tap_skip("the row's memory node is preferred", "the kernel refuses");
        return;
    }
    tap_ok(hvd_memory_has_own_policy(), "the row's memory node is preferred");
    tap_ok(!hvd_agent_is_unbound(&plan),
           "a process with a memory policy of its own is not unbound");
}

int main(void)
{
    int highest = -1;

    hvd_affinity_get(&all, NULL);
    hvd_cpuset_add(&first, hvd_cpuset_next(&all, -1));
    for (int cpu = -1; (cpu = hvd_cpuset_next(&all, cpu)) >= 0;) {
        highest = cpu;
    }
    hvd_cpuset_add(&last, highest);
    if (hvd_cpuset_is_equal(&first, &last)) {
        printf("1..0 # SKIP needs two cpus\n");
        return 0;
    }
    test_threads();
    test_limits();
    test_memory();
    return tap_done();
}
