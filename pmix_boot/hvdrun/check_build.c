/* SPDX-License-Identifier: Apache-2.0 */
/* --check-build: only what was looked up, in horovodrun's form. */
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmix_boot/hvdrun/help.h"
#include "pmix_boot/hvdrun/python.h"

/* Our module for each is horovod.MODULE. */
static const struct {
    const char *name;
    const char *module; /* of Python */
} frameworks[] = {
    {"TensorFlow", "tensorflow"},
    {"PyTorch", "torch"},
    {"MXNet", "mxnet"},
};

static void print_box(FILE *out, bool is_there, const char *name)
{
    fprintf(out, "    [%c] %s\n", is_there ? 'X' : ' ', name);
}

/* Without importing it, which takes seconds. */
static bool has_module(const char *module)
{
    char command[256];

    snprintf(command, sizeof(command),
             "python3 -c 'import importlib.util, sys; "
             "sys.exit(importlib.util.find_spec(\"%s\") is None)' 2>/dev/null",
             module);
    return system(command) == 0;
}

/* In the directory that ranks get; in a wheel there is none, and Python knows where it is. */
static bool has_front(const char *python, const char *module)
{
    char front[64];
    char path[PATH_MAX];

    if (python[0] == '\0') {
        snprintf(front, sizeof(front), "horovod.%s", module);
        return has_module(front);
    }
    return snprintf(path, sizeof(path), "%s/horovod/%s/__init__.py", python, module) <
               (int)sizeof(path) &&
           access(path, R_OK) == 0;
}

/* hvd_gpu.so lies beside hvd-boot. */
static bool has_gpu_module(void)
{
    return access(HVD_MODULE_DIR "/hvd_gpu.so", R_OK) == 0;
}

void hvdrun_build_print(FILE *out)
{
    char python[PATH_MAX];

    hvdrun_python_directory(python, sizeof(python));
    fprintf(out, "hvd v%s:\n\nAvailable Frameworks:\n", HVD_VERSION);
    for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++) {
        print_box(out,
                  has_module(frameworks[i].module) &&
                      has_front(python, frameworks[i].module),
                  frameworks[i].name);
    }
    fprintf(out, "\nAvailable Controllers:\n");
    print_box(out, false, "MPI");
    print_box(out, false, "Gloo");
    print_box(out, true, "hvd (ranks through PMIx)");
    fprintf(out, "\nAvailable Tensor Operations:\n");
    print_box(out, has_gpu_module(), "NCCL");
    print_box(out, false, "DDL");
    print_box(out, false, "CCL");
    print_box(out, false, "MPI");
    print_box(out, false, "Gloo");
    print_box(out, true, "hvd shared memory, within a node");
    print_box(out, HVD_HAVE_UCX, "hvd UCX, between nodes");
}
