/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the file by which steps of an elastic job find each other, and files that others
 * may put in its place. */
#include "spank/rendezvous_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

static char path[64];

static void put(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 ||
        chmod(path, mode) != 0) {
        printf("Bail out! cannot write %s\n", path);
        exit(EXIT_FAILURE);
    }
}

/* True if the file is refused with a message that contains words. */
static bool is_refused(const char *words)
{
    char address[HVD_SPANK_RENDEZVOUS_BYTES] = "before";
    struct hvd_error err = {0};
    bool found = false;
    int status = hvd_spank_rendezvous_file_read(path, address, &found, &err);

    tap_note("%s", err.text);
    return status < 0 && strstr(err.text, words) != NULL &&
           strcmp(address, "before") == 0;
}

static void test_own(void)
{
    char address[HVD_SPANK_RENDEZVOUS_BYTES];
    struct stat file;
    bool found = true;

    tap_ok(hvd_spank_rendezvous_file_read(path, address, &found, NULL) == 0 && !found,
           "a missing file is reported as not found");
    tap_ok(hvd_spank_rendezvous_file_write(path, "host:1:key", NULL) == 0 &&
               stat(path, &file) == 0 && (file.st_mode & 0777) == 0600,
           "the file is created with mode 0600");
    tap_ok(hvd_spank_rendezvous_file_write(path, "host:2:key", NULL) == 0 &&
               hvd_spank_rendezvous_file_read(path, address, &found, NULL) == 0 &&
               found && strcmp(address, "host:2:key") == 0,
           "a read returns the last address written");
}

static void test_strange(const char *directory)
{
    char other[80];

    put("host:3:key\n", 0644);
    tap_ok(is_refused("mode 0644"), "a file that others can read is refused");
    put("host:3:key\n", 0620);
    tap_ok(is_refused("mode 0620"), "a file that others can write is refused");
    put("host:3:key\n", 0600);
    if (geteuid() == 0 && chown(path, 65534, 65534) == 0) {
        tap_ok(is_refused("belongs to another user, uid 65534"),
               "a file of another user is refused");
    } else {
        tap_skip("a file of another user is refused", "needs root");
    }
    snprintf(other, sizeof(other), "%s/other", directory);
    (void)rename(path, other);
    (void)!symlink(other, path);
    tap_ok(is_refused("symbolic link"), "a symbolic link is refused");
    tap_ok(hvd_spank_rendezvous_file_write(path, "host:4:key", NULL) == 0 &&
               !is_refused("") && access(other, F_OK) == 0,
           "writing replaces a symbolic link and leaves its target alone");
    unlink(path);
    unlink(other);
    tap_ok(mkfifo(path, 0600) == 0 && is_refused("not a regular file"),
           "a pipe is refused without waiting for a writer");
    unlink(path);
    tap_ok(mkdir(path, 0700) == 0 && is_refused("not a regular file"),
           "a directory is refused");
    rmdir(path);
    /* This file passes all checks: it is a regular file of this user with mode 0600. But
     * reading fails, because no page of this process is mapped at address 0. */
    snprintf(path, sizeof(path), "/proc/self/mem");
    tap_ok(is_refused("cannot read the file of --hvd=elastic,meet=/proc/self/mem: Input"),
           "a file that cannot be read is an error, not an empty address");
}

int main(void)
{
    char directory[] = "/tmp/hvd-meeting.XXXXXX";

    if (mkdtemp(directory) == NULL) {
        printf("Bail out! no directory\n");
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof(path), "%s/file", directory);
    test_own();
    test_strange(directory);
    rmdir(directory);
    return tap_done();
}
