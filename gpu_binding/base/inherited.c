/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_binding/base/inherited.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Kernel headers older than Linux 5.9 do not define it. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
    /* how many descriptors to close one by one before Linux 5.9 */
    MOST_DESCRIPTORS = 1024
};

void hvd_inherited_close(void)
{
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) != 0) {
        for (int fd = STDERR_FILENO + 1; fd < MOST_DESCRIPTORS; fd++) {
            close(fd);
        }
    }
}
