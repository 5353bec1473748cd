/* SPDX-License-Identifier: Apache-2.0 */
/* Reads srun's own command line. */
#include "spank/srun_command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spank/launcher.h"

enum {
    TEXT_BYTES = 32768, /* a longer command line is cut */
    PROGRAM_WORDS = 16 /* enough to recognize a program */
};

/* Reads the arguments, each with its terminating zero. Returns their bytes. */
static size_t read_arguments(char text[TEXT_BYTES])
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t length = file != NULL ? fread(text, 1, TEXT_BYTES - 1, file) : 0;

    if (file != NULL) {
        fclose(file);
    }
    text[length] = '\0';
    return length;
}

bool hvd_spank_srun_command_is_interactive(void)
{
    static const char word[] = "--interactive";
    char text[TEXT_BYTES];
    size_t length = read_arguments(text);
    const char *argument = text + strlen(text) + 1;

    while (argument < text + length && argument[0] == '-') {
        if (strcmp(argument, word) == 0) {
            return true;
        }
        argument += strlen(argument) + 1;
    }
    return false;
}

/* True for -n, --ntasks and --ntasks-per-..., which users may abbreviate. */
static bool is_tasks(const char *argument)
{
    return strncmp(argument, "-n", strlen("-n")) == 0 ||
           strncmp(argument, "--nt", strlen("--nt")) == 0;
}

/* srun parses with getopt, so optind is the index of the first argument that is no
 * option: the program. */
void hvd_spank_srun_command_read(struct hvd_spank_srun_command *command)
{
    char text[TEXT_BYTES];
    char *words[PROGRAM_WORDS];
    int count = 0;
    const char *end = text + read_arguments(text);
    int i = 0;

    *command = (struct hvd_spank_srun_command){0};
    for (char *argument = text; argument < end; argument += strlen(argument) + 1) {
        if (i > 0 && i < optind && is_tasks(argument)) {
            command->has_tasks = true;
        } else if (i >= optind && count < PROGRAM_WORDS) {
            words[count++] = argument;
        }
        i++;
    }
    command->launcher = hvd_spank_launcher_of(count, words);
}
