/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the file of --hvd=elastic,meet=FILE. */
#include "spank/rendezvous_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot_read(const char *path, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_SYS,
                    "cannot read the file of --hvd=elastic,meet=%.120s: %m", path);
}

static int distrust(const char *path, const char *reason, struct hvd_error *err)
{
    return hvd_fail(
        err, HVD_ERR_ARG,
        "the file of --hvd=elastic,meet=%.120s %s: remove it, or choose a file in "
        "a directory of yours",
        path, reason);
}

/* Checks the open file itself, because its path may name another file by now. */
static int check_file(int fd, const char *path, struct hvd_error *err)
{
    struct stat file;
    char reason[64];

    if (fstat(fd, &file) != 0) {
        return cannot_read(path, err);
    }
    if (!S_ISREG(file.st_mode)) {
        return distrust(path, "is not a regular file", err);
    }
    if (file.st_uid != geteuid()) {
        snprintf(reason, sizeof(reason), "belongs to another user, uid %u",
                 (unsigned)file.st_uid);
        return distrust(path, reason, err);
    }
    if ((file.st_mode & 077) != 0) {
        snprintf(reason, sizeof(reason), "is open to other users, mode %04o",
                 (unsigned)file.st_mode & 07777);
        return distrust(path, reason, err);
    }
    return 0;
}

int hvd_spank_rendezvous_file_read(const char *path,
                                   char address[HVD_SPANK_RENDEZVOUS_BYTES], bool *found,
                                   struct hvd_error *err)
{
    char line[HVD_SPANK_RENDEZVOUS_BYTES];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t bytes = 0;
    int status;

    if (fd < 0 && errno == ENOENT) {
        *found = false;
        return 0;
    }
    if (fd < 0) {
        return errno == ELOOP ? distrust(path, "is a symbolic link", err)
                              : cannot_read(path, err);
    }
    status = check_file(fd, path, err);
    if (status == 0) {
        bytes = read(fd, line, sizeof(line) - 1);
        status = bytes >= 0 ? 0 : cannot_read(path, err);
    }
    close(fd);
    if (status == 0) {
        line[bytes] = '\0';
        line[strcspn(line, "\n")] = '\0';
        memcpy(address, line, sizeof(line));
        *found = true;
    }
    return status;
}

int hvd_spank_rendezvous_file_write(const char *path, const char *address,
                                    struct hvd_error *err)
{
    char beside[PATH_MAX];
    int length = snprintf(beside, sizeof(beside), "%s.XXXXXX", path);
    int fd = -1;
    bool is_good = false;

    if (length < 0 || (size_t)length >= sizeof(beside)) {
        errno = ENAMETOOLONG;
    } else {
        fd = mkostemp(beside, O_CLOEXEC); /* with mode 0600 */
    }
    if (fd >= 0) {
        is_good = dprintf(fd, "%s\n", address) > 0 && rename(beside, path) == 0;
    }
    if (!is_good) {
        hvd_fail(
            err, HVD_ERR_SYS,
            "cannot write the file of --hvd=elastic,meet=%.120s: %m; choose a file in a "
            "directory of yours",
            path);
    }
    if (fd >= 0 && !is_good) {
        (void)unlink(beside);
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_good ? 0 : HVD_ERR_SYS;
}
