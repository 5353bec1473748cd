/* SPDX-License-Identifier: Apache-2.0 */
/* hvd_init in a process that torchrun has started under srun --hvd: it takes the cpus,
 * memory node and network card that HVD_AGENT_PLAN has for it. Prints TAP. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/hvd.h"
#include "tests/tap.h"

static int first_cpu;
static char all_cpus[256]; /* of this process, as the kernel writes them */

/* Copies the line of a thread's status file that begins with `name`, without the name. */
static void read_status(const char *thread, const char *name, char *value, size_t size)
{
    char path[64];
    char line[4096];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
    file = fopen(path, "r");
    value[0] = '\0';
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            snprintf(value, size, "%.250s", line + strlen(name));
            value[strcspn(value, "\n")] = '\0';
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool has_cpus(pid_t thread, const char *wanted)
{
    char number[16];
    char cpus[256];

    snprintf(number, sizeof(number), "%d", (int)thread);
    read_status(number, "Cpus_allowed_list:\t", cpus, sizeof(cpus));
    if (strcmp(cpus, wanted) != 0) {
        fprintf(stderr, "cpus %s, expected %s\n", cpus, wanted);
    }
    return strcmp(cpus, wanted) == 0;
}

static pthread_barrier_t barrier;
static pid_t helper;

static void *run_helper(void *unused)
{
    helper = gettid();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

/* One process of torchrun. NULL: the variable is unset. */
struct rank {
    const char *plan; /* %a: all cpus of this process, %f: the first of them */
    const char *run; /* TORCHELASTIC_RUN_ID */
    const char *local_size;
    const char *nic; /* UCX_NET_DEVICES of the user */
    bool is_placed; /* the user has bound the process to its last cpu */
    int status; /* of hvd_init */
    bool is_bound; /* to its first cpu */
    const char *found_nic; /* UCX_NET_DEVICES afterwards */
    const char *card; /* HVD_NIC afterwards */
    const char *error; /* a part of the error of hvd_init */
};

static void write_plan(const char *format, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");

    for (; *format != '\0'; format++) {
        if (format[0] != '%') {
            fputc(*format, out);
        } else if (*++format == 'a') {
            fputs(all_cpus, out);
        } else {
            fprintf(out, "%d", first_cpu);
        }
    }
    fclose(out);
}

static void set(const char *name, const char *value)
{
    if (value != NULL) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

static void enter(const struct rank *rank)
{
    char plan[1024];

    write_plan(rank->plan, plan, sizeof(plan));
    set("HVD_AGENT_PLAN", plan);
    set("TORCHELASTIC_RUN_ID", rank->run);
    set("LOCAL_RANK", "0");
    set("LOCAL_WORLD_SIZE", rank->local_size);
    set("UCX_NET_DEVICES", rank->nic);
    set("SLURM_JOB_ID", "7");
    set("SLURM_STEP_ID", "0");
    set("SLURM_NTASKS", "1");
}

/* Binds this thread to the highest cpu that it may use, and writes its number. */
static void take_last_cpu(char *text, size_t size)
{
    cpu_set_t cpus;
    int last = CPU_SETSIZE - 1;

    sched_getaffinity(0, sizeof(cpus), &cpus);
    while (!CPU_ISSET(last, &cpus)) {
        last--;
    }
    CPU_ZERO(&cpus);
    CPU_SET(last, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    snprintf(text, size, "%d", last);
}

static bool is_unset_or(const char *name, const char *wanted)
{
    const char *value = getenv(name);

    return wanted == NULL ? value == NULL : value != NULL && strcmp(value, wanted) == 0;
}

static bool ends_as_wanted(const struct rank *rank)
{
    char wanted[256];
    struct hvd_error err = {0};
    pthread_t thread;
    bool good;
    int status;

    snprintf(wanted, sizeof(wanted), "%s", all_cpus);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, run_helper, NULL);
    pthread_barrier_wait(&barrier);
    if (rank->is_bound) {
        snprintf(wanted, sizeof(wanted), "%d", first_cpu);
    } else if (rank->is_placed) {
        take_last_cpu(wanted, sizeof(wanted));
    }
    status = hvd_init(&err);
    good = status == rank->status && has_cpus(gettid(), wanted) &&
           (rank->is_placed || has_cpus(helper, wanted)) &&
           is_unset_or("UCX_NET_DEVICES", rank->found_nic) &&
           is_unset_or("HVD_NIC", rank->card) &&
           (rank->error == NULL || strstr(err.text, rank->error) != NULL);
    if (!good) {
        fprintf(stderr, "status %d: %s\n", status, err.text);
    }
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    hvd_shutdown();
    return good;
}

static void process(const struct rank *rank, const char *promise)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        enter(rank);
        _exit(ends_as_wanted(rank) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", promise);
}

/* A process binds itself once: afterwards the user may bind it otherwise. */
static bool is_bound_once(void)
{
    const struct rank rank = {.plan = "7.0 %a;%f - -", .run = "x", .local_size = "1"};
    cpu_set_t all;
    bool good;

    enter(&rank);
    sched_getaffinity(0, sizeof(all), &all);
    good = hvd_init(NULL) == 0 && getenv("HVD_AGENT_PLAN") == NULL;
    hvd_shutdown();
    sched_setaffinity(0, sizeof(all), &all);
    good = good && hvd_init(NULL) == 0 && has_cpus(gettid(), all_cpus);
    hvd_shutdown();
    return good;
}

static void test_once(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit(is_bound_once() ? 0 : 1);
    }
    waitpid(child, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "a second hvd_init leaves the cpus alone");
}

int main(void)
{
    static const char plan[] = "7.0 %a;%f - mlx5_3:1";
    char number[16];
    cpu_set_t cpus;

    snprintf(number, sizeof(number), "%d", (int)getpid());
    read_status(number, "Cpus_allowed_list:\t", all_cpus, sizeof(all_cpus));
    sched_getaffinity(0, sizeof(cpus), &cpus);
    while (!CPU_ISSET(first_cpu, &cpus)) {
        first_cpu++;
    }
    if (CPU_COUNT(&cpus) < 2) {
        printf("1..0 # SKIP needs two cpus\n");
        return 0;
    }
    process(&(struct rank){.plan = plan,
                           .run = "x",
                           .local_size = "1",
                           .is_bound = true,
                           .found_nic = "mlx5_3:1",
                           .card = "mlx5_3:1"},
            "a rank of torchrun has the cpus and the network card of its row, in all "
            "threads");
    process(&(struct rank){.plan = plan,
                           .run = "x",
                           .local_size = "1",
                           .nic = "mlx5_9:1",
                           .is_bound = true,
                           .found_nic = "mlx5_9:1",
                           .card = "mlx5_3:1"},
            "a network card that the user set stays");
    process(&(struct rank){.plan = plan,
                           .run = "x",
                           .local_size = "1",
                           .is_placed = true,
                           .found_nic = "mlx5_3:1",
                           .card = "mlx5_3:1"},
            "cpus that the user chose stay");
    process(&(struct rank){.plan = plan, .local_size = "1"},
            "a process that torchrun has not started is not bound");
    process(&(struct rank){.plan = "7.1 %a;%f - mlx5_3:1", .run = "x", .local_size = "1"},
            "neither is one of another step");
    process(&(struct rank){.plan = "7.0 %a;%f - -;%f - -", .run = "x", .local_size = "1"},
            "nor a rank of a torchrun with another number of ranks");
    process(
        &(struct rank){
            .plan = "7.0 0-8191;%f - -", .run = "x", .local_size = "1", .card = ""},
        "nor a rank whose cpus are not those of its torchrun");
    process(&(struct rank){.plan = "7.0 %a;all - -",
                           .run = "x",
                           .local_size = "1",
                           .status = HVD_ERR_ARG,
                           .error = "HVD_AGENT_PLAN has 'all - -' for local rank 0"},
            "a text that is no plan is an error that names it");
    test_once();
    return tap_done();
}
