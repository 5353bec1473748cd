/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank failed first, as ranks tell hvdrun. */
#include "pmix_boot/cause.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/tap.h"

static bool is_told(const char *path, int rank, int teller, const char *text)
{
    struct hvd_cause cause;

    return hvd_cause_read(path, &cause) == 0 && cause.rank == rank &&
           cause.teller == teller && strcmp(cause.text, text) == 0;
}

int main(void)
{
    char directory[] = "/tmp/hvd-cause.XXXXXX";
    char path[64];
    char lengthy[1000];
    struct hvd_cause cause;

    if (mkdtemp(directory) == NULL) {
        printf("Bail out! no directory\n");
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof(path), "%s/cause", directory);
    unsetenv(HVD_ENV_CAUSE);
    hvd_cause_tell(1, 1, "nobody asks");
    setenv(HVD_ENV_CAUSE, path, 1);
    tap_ok(hvd_cause_read(path, &cause) < 0, "nobody has told anything");
    hvd_cause_tell(1, 1, "ValueError: boom\nand a second line");
    hvd_cause_tell(2, 0, "rank 2 died");
    tap_ok(is_told(path, 1, 1, "ValueError: boom"), "who tells first is believed");
    hvd_cause_forget();
    tap_ok(hvd_cause_read(path, &cause) < 0, "a job that begins anew forgets it");
    hvd_cause_tell(2, 0, "");
    tap_ok(is_told(path, 2, 0, ""), "a failure without a reason");
    hvd_cause_forget();
    memset(lengthy, 'x', sizeof(lengthy) - 1);
    lengthy[sizeof(lengthy) - 1] = '\0';
    hvd_cause_tell(3, 3, lengthy);
    tap_ok(hvd_cause_read(path, &cause) == 0 &&
               strlen(cause.text) == sizeof(cause.text) - 1,
           "a reason that is too long is cut");
    hvd_cause_forget();
    (void)!symlink("/dev/null", path);
    hvd_cause_tell(3, 3, "through a link");
    tap_ok(hvd_cause_read(path, &cause) < 0, "a link is not written through");
    hvd_cause_forget();
    rmdir(directory);
    return tap_done();
}
