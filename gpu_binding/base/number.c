/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_binding/base/number.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

long hvd_number_parse(const char *text, long most)
{
    long number;

    /* strtol would also accept blanks and signs */
    if (text == NULL || text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') {
        return -1;
    }
    errno = 0;
    number = strtol(text, NULL, 10);
    return errno != 0 || number > most ? -1 : number;
}

int hvd_number_of_variable(const char *name)
{
    return (int)hvd_number_parse(getenv(name), INT_MAX);
}

const char *hvd_number_plural(long count)
{
    return count == 1 ? "" : "s";
}
