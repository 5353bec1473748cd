/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all options, for the command line, the configuration file and --help. */
#ifndef HVDRUN_OPTION_TABLE_H
#define HVDRUN_OPTION_TABLE_H

#include <stddef.h>

enum hvdrun_option_kind {
    HVDRUN_OPTION_TEXT, /* a text that is not empty */
    HVDRUN_OPTION_FILE, /* a file that rank 0 writes */
    HVDRUN_OPTION_WORD, /* one of `words` */
    HVDRUN_OPTION_CPUS, /* a list of CPUs, such as 0,8 */
    HVDRUN_OPTION_COUNT, /* a whole number from `least` to `most` */
    HVDRUN_OPTION_NUMBER, /* a number from `least` to `most` */
    HVDRUN_OPTION_MEBIBYTES, /* given in MiB, passed to ranks in bytes */
    HVDRUN_OPTION_ON, /* takes no value; sets 1 */
    HVDRUN_OPTION_OFF, /* takes no value; sets 0 */
    /* prints something instead of running a command; `least` is the action */
    HVDRUN_OPTION_ACTION,
    HVDRUN_OPTION_OWN, /* has a function of its own in options.c */
    HVDRUN_OPTION_IDLE, /* accepted without effect; `text` says why */
    HVDRUN_OPTION_REFUSED, /* not accepted; `text` says what to do */
};

struct hvdrun_option {
    const char *name; /* without dashes; empty: `text` is the title of a group */
    /* further names, with a space between them; NULL: none. --help shows the first */
    const char *aliases;
    /* name of the value for --help, with a space if the option takes two values; NULL:
     * takes no value */
    const char *argument;
    enum hvdrun_option_kind kind;
    /* environment variable of the ranks; NULL: the option sets `field` */
    const char *variable;
    size_t field; /* offset in struct hvdrun_options of a text, an int or a bool */
    double least, most; /* range that libhvd accepts */
    const char *const *words; /* accepted words, in any case; ends with NULL */
    const char *text; /* help text; or why the option has no effect or is not accepted */
};

/* Ends with a NULL name. */
extern const struct hvdrun_option hvdrun_option_table[];

/* Finds an option by its name or alias; NULL: there is none. */
const struct hvdrun_option *hvdrun_option_find(const char *name);

#endif
