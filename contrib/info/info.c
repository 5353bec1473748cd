/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info: shows the binding of a node without binding anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/binding.h"
#include "contrib/info/check/check.h"
#include "contrib/info/job.h"
#include "contrib/info/nccl/nccl.h"
#include "contrib/info/options.h"
#include "contrib/info/python.h"
#include "contrib/info/bug_report/bug_report.h"
#include "contrib/info/slurm/slurm.h"

#define EXIT_USAGE 2

/* The request, and the source of each of its parts. */
struct question {
    const struct hvd_info_options *options;
    const struct hvd_topology *topology;
    struct hvd_info_job job;
    struct hvd_binding_step step;
    struct hvd_cpuset mask; /* the cpus that this process may use */
    const char *rank_source;
    const char *cpu_source;
    const char *gpu_source;
    /* source of the limit of cores per rank; NULL: there is no limit */
    const char *limit_source;
};

static const char *look_up(const char *name)
{
    return getenv(name);
}

static void ask_gpus(struct question *question)
{
    const struct hvd_info_options *options = question->options;

    question->gpu_source = "all of the node";
    if (options->gpus != NULL) {
        question->step.gpu_numbers = options->gpus;
        question->gpu_source = "--gpus";
        return;
    }
    if (question->job.gpu_source != NULL) {
        question->step.gpu_numbers = question->job.gpu_numbers;
        question->step.gpu_count = question->job.gpu_count;
        question->gpu_source = question->job.gpu_source;
    }
    if (question->job.visible_devices != NULL) {
        question->step.visible_devices = question->job.visible_devices;
        if (question->job.gpu_source == NULL) {
            question->gpu_source = HVD_ENV_CUDA_VISIBLE_DEVICES;
        }
    }
}

/* Rejects numbers of --gpus that this node lacks. UUIDs and MIG slices are accepted,
 * because not all of them can be found on PCI. */
static int check_gpus(const struct question *question, struct hvd_error *err)
{
    const struct hvd_topology *topology = question->topology;
    const char *text = question->options->gpus;
    struct hvd_gpu_list list;
    struct hvd_error cause = {0};

    if (text == NULL) {
        return 0;
    }
    if (hvd_gpu_list_parse(topology, text, &list, &cause) < 0) {
        return hvd_fail(err, HVD_ERR_ARG, "--gpus: %.300s", cause.text);
    }
    for (int i = 0; i < list.count && topology->gpu_count > 0; i++) {
        if (list.items[i].gpu == HVD_NONE && text[strspn(text, "0123456789,-")] == '\0') {
            return hvd_fail(err, HVD_ERR_ARG, "--gpus: no gpu %d, expected 0 to %d",
                            list.items[i].number, topology->gpu_count - 1);
        }
    }
    return 0;
}

/* Decides which cpus the ranks may use. In a task that srun bound, the mask of this
 * process shows how srun binds each task; elsewhere it is the limit that ranks started
 * from here would inherit. */
static int ask_cpus(struct question *question, struct hvd_error *err)
{
    bool is_live = question->options->topology_file == NULL;
    int status = is_live ? hvd_affinity_get(&question->mask, err) : 0;

    question->cpu_source = is_live ? "allowed for this process" : "allowed in the file";
    if (status < 0) {
        return status;
    }
    if (question->options->allowed_text != NULL) {
        question->step.cpus = &question->options->allowed;
        question->cpu_source = "--allowed";
    } else if (is_live && !question->job.is_step) {
        question->step.cpus = &question->mask;
    }
    if (is_live && question->job.is_step) {
        question->step.task_mask = &question->mask;
    }
    return 0;
}

static int threads_of_core(const struct hvd_topology *topology)
{
    return topology->cpu_count > topology->core_count
               ? topology->cpu_count / topology->core_count
               : 1;
}

/* Sets the limit of cores per rank. Slurm counts hardware threads in --cpus-per-task, and
 * binds whole cores. */
static void ask_limit(struct question *question)
{
    const struct hvd_info_options *options = question->options;
    int cpus = question->job.cpus_per_task;

    question->step.options = options->plan;
    if (options->plan.cpus_per_rank > 0) {
        question->limit_source = "--cpus-per-rank";
    } else if (cpus > 0 && options->plan.mode == HVD_BIND_AUTO) {
        int threads = threads_of_core(question->topology);

        question->step.options.cpus_per_rank = (cpus + threads - 1) / threads;
        question->limit_source = question->job.cpus_per_task_source;
    }
}

static void ask_ranks(struct question *question)
{
    if (question->options->rank_count > 0) {
        question->step.rank_count = question->options->rank_count;
        question->rank_source = "--ranks";
    } else if (question->job.rank_count > 0) {
        question->step.rank_count = question->job.rank_count;
        question->rank_source = question->job.rank_source;
    }
}

/* If the number of ranks is unknown, makes a plan for one rank and takes one rank per GPU
 * of this plan. */
static int count_ranks_by_gpu(struct question *question, struct hvd_error *err)
{
    struct hvd_plan plan;

    if (question->step.rank_count > 0) {
        return 0;
    }
    question->step.rank_count = 1;
    int status = hvd_binding_plan(question->topology, &question->step, &plan, err);
    if (status < 0) {
        return status;
    }
    question->rank_source =
        plan.gpus.count > 0 ? "one per gpu" : "one, because there are no gpus";
    question->step.rank_count = plan.gpus.count > 0 ? plan.gpus.count : 1;
    hvd_plan_finish(&plan);
    return 0;
}

static int ask_question(struct question *question, struct hvd_error *err)
{
    if (question->options->topology_file == NULL) {
        hvd_info_job_read(look_up, &question->job);
    }
    ask_ranks(question);
    ask_gpus(question);
    ask_limit(question);
    int status = check_gpus(question, err);
    if (status == 0) {
        status = ask_cpus(question, err);
    }
    return status == 0 ? count_ranks_by_gpu(question, err) : status;
}

static void print_gpus(const struct hvd_gpu_list *gpus)
{
    if (gpus->count == 0) {
        printf("none");
    }
    for (int i = 0; i < gpus->count; i++) {
        printf("%s%d", i > 0 ? "," : "", gpus->items[i].number);
    }
}

static const char *say_gpu_source(const struct question *question, int gpu_count)
{
    if (question->topology->gpu_count > 0 || gpu_count > 0) {
        return question->gpu_source;
    }
    return question->topology->foreign_gpu_count > 0
               ? "this node has none that hvd supports"
               : "this node has none";
}

static void print_sources(const struct question *question, const struct hvd_plan *plan)
{
    char cpus[1024];

    hvd_cpulist_format(&plan->allowed, cpus, sizeof(cpus));
    printf("ranks: %d (%s)\n", plan->row_count, question->rank_source);
    printf("cpus: %s (%s)\n", cpus, question->cpu_source);
    if (question->limit_source != NULL) {
        printf("cores per rank: at most %d (%s)\n", question->step.options.cpus_per_rank,
               question->limit_source);
    }
    if (question->job.is_elsewhere) {
        printf("node: this one, which is not part of the job; to see one of the job: "
               "srun -N1 -n1 hvd-info --ranks %d\n",
               plan->row_count);
    }
    printf("gpus: ");
    print_gpus(&plan->gpus);
    printf(" (%s)\n\n", say_gpu_source(question, plan->gpus.count));
}

static void name_host(const char *topology_file, char *host, size_t size)
{
    if (topology_file == NULL) {
        if (gethostname(host, size) < 0) {
            snprintf(host, size, "this node");
        }
        host[size - 1] = '\0';
        return;
    }
    const char *slash = strrchr(topology_file, '/');
    const char *name = slash != NULL ? slash + 1 : topology_file;
    const char *end = strstr(name, ".xml");
    snprintf(host, size, "%.*s", (int)(end != NULL ? end - name : (long)strlen(name)),
             name);
}

static int print_plan(const struct question *question, struct hvd_error *err)
{
    char host[128];
    struct hvd_plan plan;
    int status = hvd_binding_plan(question->topology, &question->step, &plan, err);

    if (status < 0) {
        return status;
    }
    name_host(question->options->topology_file, host, sizeof(host));
    print_sources(question, &plan);
    hvd_picture_print(question->topology, &plan, host, stdout);
    printf("\n");
    hvd_table_print(question->topology, &plan, stdout);
    if (plan.note_count > 0) {
        printf("\n");
        hvd_notes_print(&plan, stdout);
    }
    hvd_plan_finish(&plan);
    return fflush(stdout) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_SYS, "cannot write to standard output: %m");
}

static int show_topology(const struct hvd_info_options *options, struct hvd_error *err)
{
    struct hvd_topology_source source = {.xml_file = options->topology_file};
    struct hvd_topology topology;
    struct hvd_info_job job;
    int status;

    hvd_info_job_read(look_up, &job);
    if (job.is_repeated) {
        return 0;
    }
    status = hvd_topology_load(&topology, &source, err);
    if (status < 0) {
        return status;
    }
    struct question question = {.options = options, .topology = &topology};
    status = ask_question(&question, err);
    if (status == 0) {
        status = print_plan(&question, err);
    }
    hvd_topology_finish(&topology);
    return status;
}

int main(int argc, char **argv)
{
    struct hvd_info_options options;
    struct hvd_error err = {0};
    int status = hvd_info_parse(argc, argv, &options, &err);

    if (status == 0) {
        switch (options.action) {
        case HVD_INFO_HELP:
            hvd_info_usage(stdout);
            break;
        case HVD_INFO_VERSION:
            printf("hvd-info %s\n", HVD_VERSION);
            break;
        case HVD_INFO_CHECK:
            status = hvd_info_check(&options.check, look_up, &err);
            break;
        case HVD_INFO_BUG_REPORT:
            status = hvd_info_report(look_up, options.report, &err);
            break;
        case HVD_INFO_SLURM:
            return hvd_info_slurm(look_up);
        case HVD_INFO_PYTHON:
            status = hvd_info_python(options.python, &err);
            break;
        case HVD_INFO_INTO_VENV:
            status = hvd_info_into_venv(options.venv, &err);
            break;
        case HVD_INFO_OUT_OF_VENV:
            status = hvd_info_out_of_venv(options.venv, &err);
            break;
        case HVD_INFO_NCCL:
            status = hvd_info_nccl(options.nccl, options.live.is_json, &err);
            break;
        case HVD_INFO_LIVE:
            status = hvd_info_live(&options.live, &err);
            break;
        case HVD_INFO_TIMELINE:
            status = hvd_info_timeline(options.timeline, &err);
            break;
        case HVD_INFO_SHOW:
            status = show_topology(&options, &err);
            break;
        }
    }
    if (status < 0) {
        fprintf(stderr, "hvd-info: %s\n", err.text);
    }
    return status == 0 ? EXIT_SUCCESS : status == HVD_ERR_ARG ? EXIT_USAGE : EXIT_FAILURE;
}
