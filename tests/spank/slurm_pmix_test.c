/* SPDX-License-Identifier: Apache-2.0 */
/* Whether Slurm's plugin for PMIx finds its library. */
#include "spank/slurm_pmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

static char folder[] = "/tmp/slurm_pmix.XXXXXX";
static char plugin[64], library[64];

/* Writes a plugin with these two strings between bytes of code. */
static bool works(const char *first, const char *second)
{
    FILE *file = fopen(plugin, "w");

    fprintf(file, "\177ELF%c%s%c%s%cinit%c", 0, first, 0, second, 0, 0);
    fclose(file);
    return hvd_spank_slurm_pmix_works(plugin);
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        tap_ok(false, "there is a folder for the test");
        return tap_done();
    }
    snprintf(plugin, sizeof(plugin), "%s/mpi_pmix.so", folder);
    snprintf(library, sizeof(library), "%s/libpmix.so", folder);
    tap_ok(!hvd_spank_slurm_pmix_works(plugin), "without the plugin there is no PMIx");
    tap_ok(works("libpmix_plug", "libpmix.so.2"),
           "a plugin that opens no library has been linked to it");
    tap_ok(!works("/none/libpmix.so", "text"),
           "a plugin whose library is missing does not work");
    tap_ok(!works(folder, "/none/libpmix.so"),
           "nor does one whose folder lacks the library");
    fclose(fopen(library, "w"));
    tap_ok(works(folder, "/none/libpmix.so"),
           "a plugin works if its folder has the library");
    tap_ok(!works(library, "text"), "a file that cannot be loaded does not count");
    unlink(library);
    unlink(plugin);
    rmdir(folder);
    return tap_done();
}
