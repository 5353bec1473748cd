/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a job on this machine, starts its ranks, supervises them, and cleans up. */
#include "pmix_boot/hvdrun/local.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/binding.h"
#include "pmix_boot/held_port.h"
#include "pmix_boot/hvdrun/elastic.h"
#include "pmix_boot/hvdrun/rank_environment.h"
#include "pmix_boot/hvdrun/service.h"
#include "pmix_boot/hvdrun/start.h"
#include "pmix_boot/hvdrun/streams.h"
#include "pmix_boot/hvdrun/supervise.h"
#include "pmix_boot/hvdrun/taken_port.h"
#include "pmix_boot/hvdrun/watchdog.h"
#include "pmix_boot/sock/socket.h"

/* Everything that a job owns. A closed descriptor is -1. plan.rows is NULL if there is no
 * binding plan. */
struct job {
    const struct hvdrun_options *options;
    const char *host;
    char python[PATH_MAX]; /* directory of the front end; empty: none */
    struct hvdrun_watchdog watchdog;
    /* file of pmix_boot/cause.h; not used in elastic jobs */
    char cause[PATH_MAX + sizeof("/cause")];
    /* host of the rendezvous service, or the path of its socket */
    char service_host[PATH_MAX + sizeof("/ranks")];
    /* not used in elastic jobs, which have their own */
    struct hvd_rendezvous_service service;
    sigset_t signal_mask; /* the mask that ranks start with */
    int signal_fd;
    int port_fd; /* reserves `port` for torch.distributed */
    uint16_t port;
    struct hvd_plan plan;
    struct hvdrun_rank *ranks; /* [slots] */
    int slots; /* largest number of ranks */
    bool is_elastic;
    struct hvdrun_elastic elastic;
};

/* Closes a descriptor unless it is negative. */
static void close_open(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* --- preparing ---------------------------------------------------------------------- */

/* Plans the binding. Without a plan the job only runs slower, so a failure is just
 * logged. */
static void plan_binding(struct job *job)
{
    struct hvd_topology topology = {0};
    struct hvd_cpuset own;
    struct hvd_binding_step step = {
        .rank_count = job->slots,
        .cpus = &own,
        .visible_devices = getenv(HVD_ENV_CUDA_VISIBLE_DEVICES),
        .options.mode = job->options->bind,
    };
    struct hvd_error err = {0};
    int status = hvd_affinity_get(&own, &err);

    if (status == 0) {
        status = hvd_topology_load(&topology, &(struct hvd_topology_source){0}, &err);
    }
    if (status == 0) {
        status = hvd_binding_plan(&topology, &step, &job->plan, &err);
    }
    if (status < 0) {
        hvd_log(HVD_LOG_WARN, "ranks are not bound to cpus: %s", err.text);
    } else if (job->options->is_verbose) {
        hvd_picture_print(&topology, &job->plan, job->host, stderr);
        fputc('\n', stderr);
        hvd_table_print(&topology, &job->plan, stderr);
        hvd_notes_print(&job->plan, stderr);
    }
    hvd_topology_finish(&topology);
}

/* Reserves a port. Only scripts that use torch.distributed need one, so a failure is just
 * logged. */
static void hold_port(struct job *job)
{
    struct hvd_error err = {0};

    struct hvd_port_range ports;

    if (hvd_port_range_parse(getenv(HVD_ENV_PORT_RANGE), &ports, &err) < 0 ||
        hvd_held_port_open(ports, &job->port_fd, &job->port, &err) < 0) {
        hvd_log(HVD_LOG_WARN, "no port for torch.distributed: %s", err.text);
    }
}

/* Starts the rendezvous service on a Unix socket in the job's directory, which needs no
 * port. If the path is too long or relative because of TMPDIR, the service uses TCP. */
static int start_service(struct job *job, struct hvd_error *err)
{
    struct hvd_rendezvous_rules rules = {.np = job->options->ranks, .is_here = true};
    char path[sizeof(job->service_host)];

    snprintf(path, sizeof(path), "%s/ranks", job->watchdog.directory);
    if (hvd_socket_path_fits(path)) {
        snprintf(job->service_host, sizeof(job->service_host), "%s", path);
        rules.path = job->service_host;
    }
    return hvdrun_service_start(&rules, &job->service, err);
}

/* Blocks the signals before it starts the watchdog, and starts the watchdog before the
 * service, whose socket is in the watchdog's directory. */
static int prepare_job(struct job *job, struct hvd_error *err)
{
    size_t count = (size_t)job->slots;
    int status;

    job->ranks = calloc(count, sizeof(*job->ranks));
    if (job->ranks == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %zu ranks", count);
    }
    for (size_t rank = 0; rank < count; rank++) {
        for (int i = 0; i < HVDRUN_STREAMS; i++) {
            job->ranks[rank].streams[i].fd = -1;
            job->ranks[rank].streams[i].lines.copy = -1;
        }
    }
    job->signal_fd = hvdrun_supervise_signals(&job->signal_mask, err);
    if (job->signal_fd < 0) {
        return job->signal_fd;
    }
    status = hvdrun_watchdog_start(&job->watchdog, err);
    if (status == 0) {
        snprintf(job->cause, sizeof(job->cause), "%s/cause", job->watchdog.directory);
        plan_binding(job);
        hold_port(job);
        hvdrun_python_directory(job->python, sizeof(job->python));
        status = job->is_elastic ? hvdrun_elastic_begin(&job->elastic, err)
                                 : start_service(job, err);
    }
    return status;
}

/* --- starting ----------------------------------------------------------------------- */

static int make_environment(const struct job *job, int rank,
                            struct hvdrun_string_list *out, struct hvd_error *err)
{
    const struct hvdrun_rank_environment all = {
        .inherited = (const char *const *)environ,
        .settings = &job->options->settings,
        .ranks = job->options->ranks,
        .host = job->host,
        .python_directory = job->python[0] != '\0' ? job->python : NULL,
        .plan = job->plan.rows != NULL ? &job->plan : NULL,
        .has_terminal = isatty(STDERR_FILENO) && !job->options->has_prefix &&
                        job->options->output_directory == NULL,
        .cause = job->is_elastic ? NULL : job->cause,
        .master_port = job->port,
        .service_host = job->service_host,
        .service = job->is_elastic ? job->elastic.service.address : job->service.address,
        .is_elastic = job->is_elastic,
    };
    int status = hvdrun_rank_environment_make(&all, rank, out, err);

    if (status == 0 && job->options->is_verbose && rank == 0) {
        status =
            hvdrun_string_list_set_variable(out, HVD_ENV_LOG_LEVEL, "info", false, err);
    }
    return status;
}

static int run_command(const struct job *job, int rank, int input,
                       const int rank_ends[HVDRUN_STREAMS], pid_t *pid, int *exit_code,
                       struct hvd_error *err)
{
    struct hvdrun_string_list environment = {0};
    const struct hvdrun_start start = {
        .rank = rank,
        .command = job->options->command,
        .environment = &environment,
        .plan = job->plan.rows != NULL ? &job->plan : NULL,
        .signal_mask = &job->signal_mask,
        .input = input,
        .output = rank_ends[HVDRUN_STDOUT],
        .error = rank_ends[HVDRUN_STDERR],
    };
    int status = make_environment(job, rank, &environment, err);

    if (status == 0) {
        status = hvdrun_start(&start, pid, exit_code, err);
    }
    hvdrun_string_list_finish(&environment);
    return status;
}

static int start_rank(struct job *job, int rank, int *exit_code, struct hvd_error *err)
{
    struct hvdrun_rank *started = &job->ranks[rank];
    int rank_ends[HVDRUN_STREAMS] = {-1, -1};
    int input = hvdrun_streams_input(rank, err);
    pid_t pid = 0;
    int status = input < 0 ? input
                           : hvdrun_streams_open(job->options, rank, started->streams,
                                                 rank_ends, err);

    if (status == 0) {
        status = run_command(job, rank, input, rank_ends, &pid, exit_code, err);
    }
    if (status == 0) {
        started->pid = pid;
        hvdrun_watchdog_add(&job->watchdog, pid);
    }
    if (status == 0 && job->is_elastic) {
        hvdrun_elastic_on_start(&job->elastic, rank);
    }
    close_open(input);
    for (int i = 0; i < HVDRUN_STREAMS; i++) {
        close_open(rank_ends[i]);
    }
    return status;
}

/* Starts a rank during the job, in a slot that is unused or whose rank has ended. */
static int start_again(void *context, int slot, struct hvd_error *err)
{
    struct job *job = context;
    struct hvdrun_rank *rank = &job->ranks[slot];
    int exit_code;

    if (rank->pid > 0) {
        kill(-rank->pid, SIGKILL); /* processes that the ended rank left behind */
        (void)waitpid(rank->pid, NULL, 0);
        hvdrun_streams_close(rank->streams);
    }
    rank->pid = 0;
    rank->is_over = false;
    return start_rank(job, slot, &exit_code, err);
}

static int start_and_watch(struct job *job, struct hvd_error *err)
{
    struct hvdrun_watch watch = {
        .ranks = job->ranks,
        .count = job->slots,
        .signal_fd = job->signal_fd,
        .service = &job->service,
        .cause = job->cause,
        .elastic = job->is_elastic ? &job->elastic : NULL,
    };
    int exit_code = EXIT_FAILURE;

    for (int rank = 0; rank < job->options->ranks; rank++) {
        if (start_rank(job, rank, &exit_code, err) < 0) {
            hvdrun_supervise_end(&watch);
            return exit_code;
        }
    }
    return hvdrun_supervise(&watch, err);
}

/* Returns whether ranks use the user's own MASTER_PORT. A port of an outer launch is
 * replaced (rank_environment.c). */
static bool has_own_port(void)
{
    return getenv(HVD_ENV_MASTER_PORT) != NULL && getenv(HVD_ENV_LAUNCH) == NULL;
}

/* Explains why a script failed with "address already in use" when it wanted to serve the
 * store of torch.distributed. */
static void tell_taken_port(const struct job *job)
{
    struct hvd_error err = {0};

    if (job->port != 0 && !has_own_port() &&
        hvdrun_taken_port_check(job->port_fd, job->port, &err) < 0) {
        hvd_log(HVD_LOG_WARN, "%s", err.text);
    }
}

/* --- cleaning up -------------------------------------------------------------------- */

static void clean_up(struct job *job)
{
    for (int rank = 0; job->ranks != NULL && rank < job->slots; rank++) {
        hvdrun_streams_close(job->ranks[rank].streams);
    }
    free(job->ranks);
    hvd_rendezvous_stop(&job->service);
    hvdrun_elastic_end(&job->elastic);
    hvdrun_watchdog_stop(&job->watchdog);
    hvd_plan_finish(&job->plan);
    close_open(job->port_fd);
    close_open(job->signal_fd);
}

int hvdrun_local_run(const struct hvdrun_options *options, const char *host,
                     struct hvd_error *err)
{
    struct job job = {
        .options = options,
        .host = host,
        .service_host = "127.0.0.1",
        .signal_fd = -1,
        .port_fd = -1,
        .slots = options->ranks,
        .is_elastic = hvdrun_options_is_elastic(options),
        .elastic = {.options = options, .start = start_again, .job = &job},
    };
    int exit_code = EXIT_FAILURE;

    if (job.is_elastic) {
        job.slots = options->elastic.max;
    }
    if (prepare_job(&job, err) == 0) {
        exit_code = start_and_watch(&job, err);
        if (exit_code != EXIT_SUCCESS) {
            tell_taken_port(&job);
        }
    }
    clean_up(&job);
    return exit_code;
}
