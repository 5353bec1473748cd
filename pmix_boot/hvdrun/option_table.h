/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of hvdrun, once: for reading, for the configuration file, and for
 * --help. */
#ifndef HVDRUN_OPTION_TABLE_H
#define HVDRUN_OPTION_TABLE_H

#include <stddef.h>

enum hvdrun_option_kind {
    HVDRUN_OPTION_TEXT, /* not empty */
    HVDRUN_OPTION_FILE, /* a file that rank 0 writes */
    HVDRUN_OPTION_WORD, /* one of words */
    HVDRUN_OPTION_CPUS, /* a list of cpus, as 0,8 */
    HVDRUN_OPTION_COUNT, /* a whole number, least to most */
    HVDRUN_OPTION_NUMBER, /* a number, least to most */
    HVDRUN_OPTION_MEBIBYTES, /* given in MiB, handed on in bytes */
    HVDRUN_OPTION_ON, /* 1; takes no value */
    HVDRUN_OPTION_OFF, /* 0; takes no value */
    HVDRUN_OPTION_ACTION, /* another action than to run a command: least */
    HVDRUN_OPTION_OWN, /* as no other option: see options.c */
    HVDRUN_OPTION_IDLE, /* accepted without effect; text says why */
    HVDRUN_OPTION_REFUSED, /* not accepted; text says what to do */
};

struct hvdrun_option {
    const char *name; /* without dashes; empty: text is the title of a group */
    const char *alias; /* another name; NULL: none */
    const char *argument; /* of the value, two if with a space; NULL: takes no value */
    enum hvdrun_option_kind kind;
    const char *variable; /* of the ranks, that gets the value; NULL: field does */
    size_t field; /* offset in struct hvdrun_options: of a text, an int or a bool */
    double least, most; /* as the library takes them */
    const char *const *words; /* whatever their case; ends with NULL */
    const char *text; /* what it does, or why not, for people */
};

/* Ends with a NULL name. */
extern const struct hvdrun_option hvdrun_option_table[];

/* By name or alias; NULL when there is none. */
const struct hvdrun_option *hvdrun_option_find(const char *name);

#endif
