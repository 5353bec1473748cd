/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/service.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Paths of the program relative to this one: installed, and in the build tree. */
static const char *const places[] = {HVD_MODULES_FROM_BIN "/hvd-rendezvous",
                                     "../rendezvous/hvd-rendezvous"};

static int find_program(char *path, size_t bytes, struct hvd_error *err)
{
    char own[PATH_MAX];

    if (realpath("/proc/self/exe", own) == NULL) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot find the path of hvdrun: %m");
    }
    *strrchr(own, '/') = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(path, bytes, "%s/%s", own, places[i]);

        if (length > 0 && (size_t)length < bytes && access(path, X_OK) == 0) {
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "cannot find %s/%s: install all parts of hvd", own, places[0]);
}

int hvdrun_service_start(const struct hvd_rendezvous_rules *rules,
                         struct hvd_rendezvous_service *service, struct hvd_error *err)
{
    char program[PATH_MAX];
    int status = find_program(program, sizeof(program), err);

    return status < 0 ? status : hvd_rendezvous_start(program, rules, service, err);
}
