/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of hvdrun, once: for reading, for the configuration file, and for --help. */
#ifndef HVDRUN_OPTION_TABLE_H
#define HVDRUN_OPTION_TABLE_H

#include <stddef.h>

enum hvdrun_option_kind {
    HVDRUN_OPTION_OWN, /* hvdrun itself acts on it: see options.c */
    HVDRUN_OPTION_TEXT, /* variable = value, which is not empty */
    HVDRUN_OPTION_FILE, /* the same; value is a file that rank 0 writes */
    HVDRUN_OPTION_WORD, /* the same; value is one of words */
    HVDRUN_OPTION_CPUS, /* the same; value is a list of cpus, as 0,8 */
    HVDRUN_OPTION_COUNT, /* the same; value is a whole number, least to most */
    HVDRUN_OPTION_NUMBER, /* the same; value is a number, least to most */
    HVDRUN_OPTION_MEBIBYTES, /* the same; value is given in MiB, handed on in bytes */
    HVDRUN_OPTION_ON, /* variable = 1; takes no value */
    HVDRUN_OPTION_OFF, /* variable = 0; takes no value */
    HVDRUN_OPTION_ELASTIC, /* hvdrun itself acts on it: see options.c */
    HVDRUN_OPTION_IDLE, /* accepted without effect; text says why */
    HVDRUN_OPTION_REFUSED, /* not accepted; text says what to do */
};

struct hvdrun_option {
    const char *name; /* without dashes; empty: text is the title of a group */
    const char *alias; /* another name; NULL: none */
    const char *argument; /* what the value is called, two if with a space; NULL: none */
    enum hvdrun_option_kind kind;
    const char *variable; /* that the ranks get; NULL: none */
    double least, most; /* as the library takes them */
    const char *const *words; /* whatever their case; ends with NULL */
    const char *text; /* what it does, or why not, for people */
};

/* Ends with a NULL name. */
extern const struct hvdrun_option hvdrun_option_table[];

/* By name or alias; NULL when there is none. */
const struct hvdrun_option *hvdrun_option_find(const char *name);

#endif
