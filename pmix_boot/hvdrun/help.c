/* SPDX-License-Identifier: Apache-2.0 */
/* --help, from the table of options. */
#include "pmix_boot/hvdrun/help.h"

#include <string.h>

#include "pmix_boot/hvdrun/option_table.h"

/* Where the texts of options begin. */
#define TEXT_COLUMN 42

static const char usage[] =
    "Usage: hvdrun -np N [options] command [arguments]\n"
    "\n"
    "Starts a command N times, as the ranks of one job. In a Slurm allocation it "
    "becomes\n"
    "`srun --hvd`; with -H and other hosts it hands over to mpirun or prterun; else the\n"
    "ranks run on this machine. When one fails, the others are ended and its exit code "
    "is\n"
    "returned. Rank 0 reads hvdrun's standard input if that is a file or a pipe.\n";

/* "  -np N, --num-proc N"; returns its length. */
static int print_names(const struct hvdrun_option *option, FILE *out)
{
    const char *space = option->argument != NULL ? " " : "";
    const char *argument = option->argument != NULL ? option->argument : "";
    int length = 2;

    fputs("  ", out);
    if (option->alias != NULL && strncmp(option->alias, "no-", 3) != 0) {
        length += fprintf(out, "-%s%s%s, ", option->alias, space, argument);
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
