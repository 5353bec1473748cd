/* SPDX-License-Identifier: Apache-2.0 */
/* The modex through PMIx, by a helper process that runs for a few milliseconds.
 *
 * libpmix in this process would bring its hwloc and libevent next to those of the
 * program's other libraries, a thread, and a leak of about 150 KiB in each init and
 * finalize (measured with 4.2.2). A helper process costs less than a millisecond and
 * leaves nothing. The server accepts it as this rank: PMIx lets children of a rank speak
 * for it. */
#include "pmix_boot/modex.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/early_end.h"
#include "pmix_boot/helper_protocol.h"
#include "pmix_boot/modex_key.h"
#include "pmix_boot/sock/socket.h"

/* The helper keeps the time limit itself. If it is silent for this much longer, it
 * hangs. */
#define HANG_SECONDS 15

/* Exit status by ld.so if a library of the program is missing. */
#define EXIT_CANNOT_START 127

struct helper {
    const char *path;
    pid_t pid;
    int fd;
    int said; /* file with its standard error; -1: it writes to that of this process */
};

/* Paths of hvd-boot, relative to the directory of libhvd or of the program that contains
 * boot. */
static const char *const places[] = {
    "hvd/hvd-boot", /* installed */
    "../pmix_boot/hvd-boot", /* a library or program in the build tree */
    "../../pmix_boot/hvd-boot", /* a test in the build tree */
};

/* Finds the directory of the file that holds this function, without links. */
static int find_own_directory(char *directory)
{
    struct link_map *map = NULL;
    Dl_info info;
    char *slash;

    /* The link map has no name for the program itself. */
    if (dladdr1((void *)hvd_modex_pmix, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        realpath(map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe", directory) ==
            NULL) {
        return HVD_ERR_SYS;
    }
    slash = strrchr(directory, '/');
    slash[slash == directory ? 1 : 0] = '\0';
    return 0;
}

/* Finds hvd-boot: HVD_ENV_BOOT_HELPER, or else relative to the file that this code was
 * loaded from, so that an installed tree can be moved. HVD_ERR_UNSUPPORTED names the path
 * if there is none, as in a build without PMIx. */
static int find_helper(char *path, size_t bytes, struct hvd_error *err)
{
    const char *chosen = getenv(HVD_ENV_BOOT_HELPER);
    char directory[PATH_MAX] = "";

    if (chosen != NULL) {
        snprintf(path, bytes, "%s", chosen);
        return 0;
    }
    if (find_own_directory(directory) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot find the path of libhvd: %m");
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(path, bytes, "%s/%s", directory, places[i]);

        if (length > 0 && (size_t)length < bytes && access(path, X_OK) == 0) {
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "no %s/hvd/hvd-boot, which joins ranks through PMIx: this hvd was "
                    "built without PMIx, or %s must be set to its path",
                    directory, HVD_ENV_BOOT_HELPER);
}

/* Starts the helper with all signals blocked. It dies with this process anyway, and a
 * Ctrl-C that ended only the helper would look like a rank that crashed. */
static int spawn_helper(struct helper *helper, int fd, struct hvd_error *err)
{
    char *arguments[] = {(char *)helper->path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    int error;

    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, HVD_HELPER_FD);
    if (helper->said >= 0) {
        posix_spawn_file_actions_adddup2(&actions, helper->said, STDERR_FILENO);
    }
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &all);
    error = posix_spawn(&helper->pid, helper->path, &actions, &attributes, arguments,
                        environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    errno = error;
    return error == 0
               ? 0
               : hvd_fail(err, HVD_ERR_UNSUPPORTED, "cannot start %s: %m", helper->path);
}

static void close_ends(struct helper *helper)
{
    close(helper->fd);
    if (helper->said >= 0) {
        close(helper->said);
    }
}

static int start_helper(struct helper *helper, int timeout_ms, struct hvd_error *err)
{
    struct timeval limit = {.tv_sec = timeout_ms / 1000 + HANG_SECONDS};
    int ends[2];
    int status;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot open a socket to %s: %m", helper->path);
    }
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    helper->said = memfd_create("hvd-boot", MFD_CLOEXEC);
    status = spawn_helper(helper, ends[1], err);
    close(ends[1]);
    helper->fd = ends[0];
    if (status < 0) {
        close_ends(helper);
    }
    return status;
}

/* Copies the helper's standard error to that of this process. */
static void repeat(const struct helper *helper)
{
    char text[1024];
    off_t at = 0;
    ssize_t bytes;

    while (helper->said >= 0 &&
           (bytes = pread(helper->said, text, sizeof(text), at)) > 0) {
        at += bytes;
        if (write(STDERR_FILENO, text, (size_t)bytes) < 0) {
            return;
        }
    }
}

/* Reads the last line of the helper's standard error, without the helper's name: "...
 * libpmix.so.2: cannot open shared object file: ...". */
static void read_last_line(const struct helper *helper, char *line, size_t size)
{
    char text[1024] = "";
    ssize_t bytes =
        helper->said >= 0 ? pread(helper->said, text, sizeof(text) - 1, 0) : 0;
    char *at;

    text[bytes > 0 ? bytes : 0] = '\0';
    while (bytes > 0 && text[bytes - 1] == '\n') {
        text[--bytes] = '\0';
    }
    at = strrchr(text, '\n');
    at = at != NULL ? at + 1 : text;
    if (strncmp(at, helper->path, strlen(helper->path)) == 0) {
        at += strlen(helper->path);
        at += strspn(at, ": ");
    }
    snprintf(line, size, "%.*s", (int)size - 1, at);
}

/* Ends the helper. Returns its wait status, or 0 if the program's own handler of SIGCHLD
 * has collected it. */
static int stop_helper(struct helper *helper)
{
    int wait_status = 0;

    shutdown(helper->fd, SHUT_RDWR);
    while (waitpid(helper->pid, &wait_status, 0) < 0) {
        if (errno != EINTR) {
            return 0;
        }
    }
    return wait_status;
}

static int send_request(const struct helper *helper, const struct hvd_modex_query *query,
                        const struct hvd_modex_key *key)
{
    struct hvd_helper_request request = {
        .bytes = query->mine.bytes,
        .key = *key,
        .timeout_ms = query->timeout_ms,
        .count = query->ranks != NULL ? query->count : 0,
        .parent = (int32_t)getpid(),
    };
    int status = hvd_socket_send(helper->fd, &request, sizeof(request));

    if (status == 0) {
        status = hvd_socket_send(helper->fd, query->mine.data, query->mine.bytes);
    }
    if (status == 0) {
        status = hvd_socket_send(helper->fd, query->ranks,
                                 (size_t)request.count * sizeof(query->ranks[0]));
    }
    return status;
}

static int receive_blob(const struct helper *helper, struct hvd_blob *blob)
{
    uint64_t bytes = 0;
    int status = hvd_socket_receive(helper->fd, &bytes, sizeof(bytes));

    if (status < 0) {
        return status;
    }
    blob->data = malloc(bytes > 0 ? bytes : 1);
    if (blob->data == NULL) {
        return HVD_ERR_NOMEM;
    }
    blob->bytes = bytes;
    return hvd_socket_receive(helper->fd, blob->data, bytes);
}

static int receive_blobs(const struct helper *helper, int size, struct hvd_blob *blobs)
{
    int status = blobs != NULL ? 0 : HVD_ERR_NOMEM;

    for (int rank = 0; rank < size && status == 0; rank++) {
        status = receive_blob(helper, &blobs[rank]);
    }
    return status;
}

/* Receives the answer. err gets a failure that the helper reports; HVD_ERR_SYS with errno
 * means that the helper itself failed. */
static int receive_answer(const struct helper *helper, struct hvd_modex *out,
                          struct hvd_error *err)
{
    struct hvd_helper_answer answer;
    struct hvd_blob *blobs;
    int status = hvd_socket_receive(helper->fd, &answer, sizeof(answer));

    if (status < 0) {
        return status;
    }
    if (answer.error.status != 0) {
        return hvd_fail(err, answer.error.status, "%s", answer.error.text);
    }
    blobs = calloc((size_t)answer.size, sizeof(*blobs));
    status = receive_blobs(helper, answer.size, blobs);
    if (status < 0) {
        hvd_blobs_free(blobs, answer.size);
        return status == HVD_ERR_NOMEM
                   ? hvd_fail(err, status, "no memory for the cards of %d ranks",
                              answer.size)
                   : status;
    }
    *out = (struct hvd_modex){.rank = answer.rank, .size = answer.size, .blobs = blobs};
    return 0;
}

/* Fails after a broken connection; the text says how the helper ended. */
static int fail_broken(struct helper *helper, struct hvd_error *err)
{
    int wait_status;

    if (errno == EAGAIN) {
        kill(helper->pid, SIGKILL);
        stop_helper(helper);
        repeat(helper);
        return hvd_fail(err, HVD_ERR_TIMEOUT,
                        "the PMIx server of this job does not answer (%s hangs)",
                        helper->path);
    }
    wait_status = stop_helper(helper);
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == EXIT_CANNOT_START) {
        char line[300];

        read_last_line(helper, line, sizeof(line));
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s cannot start: %s", helper->path,
                        line);
    }
    repeat(helper);
    if (WIFSIGNALED(wait_status)) {
        return hvd_fail(err, HVD_ERR_SYS, "%s was ended by signal %d (%s)", helper->path,
                        WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    }
    return hvd_fail(err, HVD_ERR_SYS, "%s ended without an answer, exit status %d",
                    helper->path, WEXITSTATUS(wait_status));
}

bool hvd_modex_has_pmix(void)
{
    char path[PATH_MAX];

    return find_helper(path, sizeof(path), NULL) == 0;
}

int hvd_modex_pmix(const struct hvd_modex_query *query, struct hvd_modex *out,
                   struct hvd_error *err)
{
    char path[PATH_MAX];
    struct helper helper = {.path = path};
    struct hvd_error found = {0};
    struct hvd_error ended = {0};
    struct hvd_modex_key key;
    int status = find_helper(path, sizeof(path), err);

    if (status == 0) {
        status = hvd_modex_key_next(query->ranks, query->count, &key, err);
    }
    if (status < 0 || (status = start_helper(&helper, query->timeout_ms, err)) < 0) {
        return status;
    }
    status = send_request(&helper, query, &key);
    if (status == 0 && hvd_early_end_wait(helper.fd, query, &ended) < 0) {
        shutdown(helper.fd, SHUT_WR); /* the helper gives up and answers */
    }
    if (status == 0) {
        status = receive_answer(&helper, out, &found);
    }
    if (status < 0 && ended.status != 0) {
        found = ended;
    }
    if (status < 0 && found.status == 0) {
        status = fail_broken(&helper, err);
    } else {
        stop_helper(&helper);
        repeat(&helper);
        status = status == 0 ? 0 : hvd_fail(err, status, "%s", found.text);
    }
    close_ends(&helper);
    return status;
}
