/* SPDX-License-Identifier: Apache-2.0 */
/* Prints --help, from the table of options, and --check-build. */
#include "pmix_boot/hvdrun/help.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmix_boot/hvdrun/launcher.h"
#include "pmix_boot/hvdrun/option_table.h"
#include "pmix_boot/hvdrun/rank_environment.h"

/* Column at which the texts of options begin. */
#define TEXT_COLUMN 42

static const char usage[] =
    "Usage: hvdrun -np N [options] command [arguments]\n"
    "\n"
    "Starts N processes of a command, the ranks of one job. In a Slurm allocation,\n"
    "hvdrun becomes `srun --hvd`; with -H and other hosts, it becomes mpirun or\n"
    "prterun; otherwise the ranks run on this machine. In a job of LSF, PBS or\n"
    "Grid Engine, the job's hosts and slots are the defaults of -H and -np. If a\n"
    "rank fails, hvdrun ends the others and returns the exit code of the first\n"
    "that failed. Rank 0 reads hvdrun's standard input if that is a file or a\n"
    "pipe. Defaults are in parentheses.\n";

/* Prints "  -np N, --num-proc N" and returns its length. */
static int print_names(const struct hvdrun_option *option, FILE *out)
{
    const char *space = option->argument != NULL ? " " : "";
    const char *argument = option->argument != NULL ? option->argument : "";
    int length = 2;

    fputs("  ", out);
    if (option->aliases != NULL && strncmp(option->aliases, "no-", 3) != 0) {
        length += fprintf(out, "-%.*s%s%s, ", (int)strcspn(option->aliases, " "),
                          option->aliases, space, argument);
    }
    return length + fprintf(out, "--%s%s%s", option->name, space, argument);
}

void hvdrun_help_print(FILE *out)
{
    fputs(usage, out);
    for (const struct hvdrun_option *option = hvdrun_option_table; option->name != NULL;
         option++) {
        int length;

        if (option->name[0] == '\0') {
            fprintf(out, "\n%s:\n", option->text);
            continue;
        }
        length = print_names(option, out);
        if (option->text != NULL && length > TEXT_COLUMN - 2) {
            fputc('\n', out);
            length = 0;
        }
        if (option->text != NULL) {
            fprintf(out, "%*s%s", TEXT_COLUMN - length, "", option->text);
        }
        fputc('\n', out);
    }
}

/* --- --check-build, in horovodrun's format --- */

/* hvd's front end for a framework is the Python module horovod.MODULE. */
static const struct {
    const char *name;
    const char *module; /* Python module */
} frameworks[] = {
    {"TensorFlow", "tensorflow"},
    {"PyTorch", "torch"},
    {"MXNet", "mxnet"},
    {"JAX", "jax"},
};

static void print_box(FILE *out, bool is_there, const char *name)
{
    fprintf(out, "    [%c] %s\n", is_there ? 'X' : ' ', name);
}

/* Looks for a Python module without importing it, which would take seconds. python: a
 * program of PATH. */
static bool has_module(const char *python, const char *module)
{
    char command[256];

    snprintf(command, sizeof(command),
             "%s -c 'import importlib.util, sys; "
             "sys.exit(importlib.util.find_spec(\"%s\") is None)' 2>/dev/null",
             python, module);
    return system(command) == 0;
}

/* Looks for a front end in the directory that hvdrun adds to PYTHONPATH. A wheel has no
 * such directory; there, Python looks for the module. */
static bool has_front(const char *python, const char *directory, const char *module)
{
    char front[64];
    char path[PATH_MAX];

    if (directory[0] == '\0') {
        snprintf(front, sizeof(front), "horovod.%s", module);
        return has_module(python, front);
    }
    return snprintf(path, sizeof(path), "%s/horovod/%s/__init__.py", directory, module) <
               (int)sizeof(path) &&
           access(path, R_OK) == 0;
}

/* Looks for a file beside hvd-boot, by its path relative to this program: an installed
 * tree can be moved. */
static bool has_part(const char *file)
{
    char own[PATH_MAX];
    char path[2 * PATH_MAX];

    if (realpath("/proc/self/exe", own) == NULL) {
        return false;
    }
    *strrchr(own, '/') = '\0';
    snprintf(path, sizeof(path), "%s/" HVD_MODULES_FROM_BIN "/%s", own, file);
    return access(path, R_OK) == 0;
}

/* Chooses the Python that a script of the user gets: the first "python" in PATH, else
 * "python3". Returns its name, and writes its path. */
static const char *choose_python(char *path, size_t bytes)
{
    if (hvdrun_find_in_path("python", path, bytes)) {
        return "python";
    }
    if (!hvdrun_find_in_path("python3", path, bytes)) {
        snprintf(path, bytes, "none in PATH");
    }
    return "python3";
}

/* The boxes of MPI, Gloo, CCL and DDL say what mpi_built(), gloo_built(), ccl_built() and
 * ddl_built() of the package horovod return. */
void hvdrun_build_print(FILE *out)
{
    char directory[PATH_MAX], path[PATH_MAX];
    const char *python = choose_python(path, sizeof(path));
    const bool has_mpi = has_module(python, "mpi4py");

    hvdrun_python_directory(directory, sizeof(directory));
    fprintf(out, "hvd v%s:\n\nPython: %s\n\nAvailable Frameworks:\n", HVD_VERSION, path);
    for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++) {
        print_box(out,
                  has_module(python, frameworks[i].module) &&
                      has_front(python, directory, frameworks[i].module),
                  frameworks[i].name);
    }
    fprintf(out, "\nAvailable Controllers:\n");
    print_box(out, has_mpi, "MPI");
    print_box(out, true, "Gloo");
    print_box(out, true, "hvd (ranks through PMIx or hvd-rendezvous)");
    fprintf(out, "\nAvailable Tensor Operations:\n");
    print_box(out, has_part("hvd_gpu.so"), "NCCL");
    print_box(out, false, "DDL");
    print_box(out, false, "CCL");
    print_box(out, has_mpi, "MPI");
    print_box(out, true, "Gloo");
    print_box(out, true, "hvd shared memory, within a node");
    print_box(out, true, "hvd TCP, between nodes");
    print_box(out, has_part("hvd_ucx.so"), "hvd UCX, between nodes");
}
