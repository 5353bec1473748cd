/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/programs.h"

#include <string.h>

#include "contrib/info/process.h"
#include "gpu_binding/base/env.h"

enum {
    LIMIT_MS = 10000, /* Python's libraries may be on a slow file system */
};

/* Reads what is installed, because importing a framework takes seconds. */
static const char script[] =
    "import importlib.metadata as metadata, sys\n"
    "found = []\n"
    "for name in ('torch', 'tensorflow', 'keras', 'mxnet', 'jax', 'numpy'):\n"
    "    try:\n"
    "        found.append(name + ' ' + metadata.version(name))\n"
    "    except metadata.PackageNotFoundError:\n"
    "        pass\n"
    "print('%d.%d.%d' % sys.version_info[:3] + (' with ' if found else '') + ', "
    "'.join(found))\n";

/* Prints "SUBJECT: " and the first line of the program's output, without the word that
 * `prefix` begins. Returns whether the program has answered. */
static bool print_answer(const char *subject, const char *const *argv, const char *prefix,
                         FILE *out)
{
    const struct hvd_info_process process = {.argv = argv, .limit_ms = LIMIT_MS};
    struct hvd_info_output output;
    const char *text;
    bool is_good;

    if (hvd_info_process_run(&process, &output, NULL) != 0) {
        return false;
    }
    is_good = hvd_info_output_is_good(&output) && output.text[0] != '\0';
    if (is_good) {
        text = output.text;
        if (strncmp(text, prefix, strlen(prefix)) == 0) {
            text += strcspn(text, " \n");
            text += strspn(text, " ");
        }
        fprintf(out, "%s: %.*s\n", subject, (int)strcspn(text, "\n"), text);
    }
    hvd_info_output_finish(&output);
    return is_good;
}

void hvd_info_programs_print(hvd_info_lookup lookup, FILE *out)
{
    static const char *const slurm[] = {"scontrol", "--version", NULL};
    static const char *const python[] = {"python", "-c", script, NULL};
    static const char *const python3[] = {"python3", "-c", script, NULL};

    if (lookup(HVD_ENV_SLURM_JOB) != NULL) {
        print_answer("Slurm", slurm, "slurm", out);
    }
    if (!print_answer("Python", python, " ", out)) {
        print_answer("Python", python3, " ", out);
    }
}
