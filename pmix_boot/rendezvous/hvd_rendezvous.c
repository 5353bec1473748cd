/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-rendezvous: the rendezvous service of a job as a program, started by hvdrun and
 * srun. It prints its port and key in one line, "PORT KEY", then events for the launcher
 * (start.h), and ends when its standard input closes.
 *
 * The plugin in a task does not link libsodium, and starts this program instead:
 *
 *   hvd-rendezvous post RANK "ADDRESS PORT PORT"
 *                              tells the service of HVD_RENDEZVOUS where rank 0 serves
 *                              the stores of torch and JAX
 *   hvd-rendezvous ask RANK    waits for that address
 *
 * Both print "at ADDRESS PORT PORT", or "no REASON", which the plugin shows the user.
 * slurm_kill.h describes the other uses. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/inherited.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/rendezvous/note.h"
#include "pmix_boot/rendezvous/service.h"
#include "pmix_boot/rendezvous/slurm_kill.h"
#include "pmix_boot/sock/socket.h"

enum {
    ARGUMENTS = 7, /* see read_arguments */
    NOTE_TIMEOUT_MS = 10000 /* time for rank 0 to tell where it serves */
};

static int fail_start(const char *what)
{
    hvd_log(HVD_LOG_ERROR, "rendezvous: %s: %s", what, strerror(errno));
    return EXIT_FAILURE;
}

/* Reads NP MIN MAX START_S TIMEOUT_S RESETS here|/PATH|PORTS, as start.c passes them. MAX
 * is 0 for a static job. */
static int read_arguments(char **arguments, struct hvd_roster_rules *rules)
{
    int numbers[ARGUMENTS - 1];

    for (int i = 0; i < ARGUMENTS - 1; i++) {
        char *end;

        numbers[i] = (int)strtol(arguments[i], &end, 10);
        if (end == arguments[i] || *end != '\0') {
            return HVD_ERR_ARG;
        }
    }
    *rules = (struct hvd_roster_rules){
        .is_elastic = numbers[2] > 0,
        .np = numbers[0],
        .min = numbers[1],
        .max = numbers[2],
        .start_ms = numbers[3] * 1000,
        .timeout_ms = numbers[4] * 1000,
        .reset_limit = numbers[5],
    };
    return 0;
}

static int open_place(const char *where, int *fd, uint16_t *port, struct hvd_error *err)
{
    struct hvd_socket_address everywhere = {0};
    int status;

    if (where[0] == '/') {
        return hvd_socket_listen_path(where, fd, err);
    }
    if (strcmp(where, "here") == 0) {
        return hvd_socket_listen_tcp(&hvd_socket_loopback, fd, port, err);
    }
    status = hvd_port_range_parse(where, &everywhere.ports, err);
    return status < 0 ? status : hvd_socket_listen_tcp(&everywhere, fd, port, err);
}

/* Closes the launcher's descriptors: srun has ports on which it listens without
 * close-on-exec. Ignores signals of the terminal and of the launcher's group, because the
 * launcher handles them. Ignores SIGCHLD, so that ended children need no wait. Raises the
 * limit of descriptors, because each rank takes one. */
static void settle_process(void)
{
    const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP,
                           SIGPIPE, SIGUSR1, SIGUSR2, SIGCHLD};
    struct rlimit files;

    hvd_inherited_close();
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        signal(ignored[i], SIG_IGN);
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Prints the address; events follow on the same descriptor. */
static void tell_port(uint16_t port, const unsigned char *key)
{
    char text[2 * HVD_CHANNEL_KEY_BYTES + 1];

    sodium_bin2hex(text, sizeof(text), key, HVD_CHANNEL_KEY_BYTES);
    printf("%u %s\n", (unsigned)port, text);
    fflush(stdout);
    (void)fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
}

static int print_reason(const char *reason)
{
    printf("no %s\n", reason);
    return EXIT_FAILURE;
}

/* Posts a note, or asks for it if text is NULL. */
static int exchange_note(int rank, const char *text)
{
    const char *address = getenv(HVD_ENV_RENDEZVOUS);
    char found[HVD_BOARD_NOTE_BYTES + 1] = "";
    struct hvd_error err = {0};
    int status;

    if (address == NULL) {
        return print_reason(HVD_ENV_RENDEZVOUS " is unset: srun --hvd sets it");
    }
    if (sodium_init() < 0) {
        return print_reason("libsodium does not start");
    }
    if (text != NULL) {
        status = hvd_rendezvous_note_post(address, HVD_BOARD_MASTER, rank, text,
                                          NOTE_TIMEOUT_MS, &err);
        snprintf(found, sizeof(found), "%s", text);
    } else {
        status = hvd_rendezvous_note_ask(address, HVD_BOARD_MASTER, rank, NOTE_TIMEOUT_MS,
                                         found, &err);
    }
    if (status < 0) {
        return print_reason(err.text);
    }
    return printf("at %s\n", found) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Reads the log level as ranks do; they report a wrong value. */
static void read_log_level(void)
{
    const char *text = getenv(HVD_ENV_LOG_LEVEL);
    enum hvd_log_level level;

    if (text != NULL && hvd_log_level_parse(text, &level) == 0) {
        hvd_log_least(level);
    }
}

int main(int argc, char **argv)
{
    struct hvd_rendezvous_service_config config = {.orders = STDIN_FILENO,
                                                   .events = STDOUT_FILENO};
    struct hvd_error err;
    uint16_t port = 0;

    if (argc == 4 && strcmp(argv[1], "post") == 0) {
        return exchange_note(atoi(argv[2]), argv[3]);
    }
    if (argc == 3 && strcmp(argv[1], "ask") == 0) {
        return exchange_note(atoi(argv[2]), NULL);
    }
    if (argc == 7 && strcmp(argv[1], "kill-by-srun") == 0) {
        return hvd_rendezvous_slurm_kill_by_srun(argv + 2);
    }
    if (argc == 4 && strcmp(argv[1], "kill") == 0) {
        return hvd_rendezvous_slurm_kill_here(argv + 2);
    }
    if (argc != ARGUMENTS + 1 || read_arguments(argv + 1, &config.rules) != 0) {
        fputs("hvd-rendezvous is started by hvdrun and by srun --hvd\n", stderr);
        return EXIT_FAILURE;
    }
    settle_process();
    config.is_under_srun =
        argv[ARGUMENTS][0] != '/' && strcmp(argv[ARGUMENTS], "here") != 0;
    read_log_level();
    if (sodium_init() < 0) {
        errno = ENOSYS;
        return fail_start("libsodium does not start");
    }
    if (open_place(argv[ARGUMENTS], &config.listening, &port, &err) < 0) {
        hvd_log(HVD_LOG_ERROR, "rendezvous: %s", err.text);
        return EXIT_FAILURE;
    }
    randombytes_buf(config.key, sizeof(config.key));
    tell_port(port, config.key);
    if (hvd_rendezvous_service_run(&config) < 0) {
        errno = ENOMEM;
        return fail_start("the service ends");
    }
    return EXIT_SUCCESS;
}
