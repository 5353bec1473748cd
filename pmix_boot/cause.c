/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank failed first: "RANK TELLER TEXT" in a file. */
#include "pmix_boot/cause.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/hvd_status.h"

void hvd_cause_tell(int rank, int teller, const char *text)
{
    const char *path = getenv(HVD_ENV_CAUSE);
    int fd = path != NULL
                 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                 : -1;

    if (fd >= 0) {
        dprintf(fd, "%d %d %.*s\n", rank, teller, (int)strcspn(text, "\n"), text);
        close(fd);
    }
}

void hvd_cause_forget(void)
{
    const char *path = getenv(HVD_ENV_CAUSE);

    if (path != NULL) {
        (void)unlink(path);
    }
}

int hvd_cause_read(const char *path, struct hvd_cause *out)
{
    struct hvd_cause cause = {0};
    FILE *file = fopen(path, "re");
    int fields = 0;

    if (file != NULL) {
        fields =
            fscanf(file, "%d %d%*1[ ]%255[^\n]", &cause.rank, &cause.teller, cause.text);
        fclose(file);
    }
    if (fields < 2) {
        return HVD_ERR_SYS;
    }
    *out = cause;
    return 0;
}
