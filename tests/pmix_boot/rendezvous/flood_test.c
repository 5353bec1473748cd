/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers connect to the service of an elastic job and send nothing, or noise. Ranks
 * still get in, and the service spends neither time nor descriptors on strangers.
 * usage: flood_test HVD_RENDEZVOUS */
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmix_boot/rendezvous/client.h"
#include "pmix_boot/rendezvous/start.h"
#include "tests/tap.h"

enum {
    FEW_FILES = 64, /* descriptors of a service that is short of them */
    MANY = 600, /* connections */
    /* descriptors of a service with enough: a few of its own, 64 strangers, ranks */
    HELD_MOST = 100,
    JOINS = 20,
    LIMIT_MS = 30000,
};

struct flood {
    uint16_t port;
    unsigned seed;
    atomic_bool is_over;
};

static struct hvd_rendezvous_service start(const char *program, rlim_t files)
{
    const struct hvd_rendezvous_rules rules = {.np = 1,
                                               .min = 1,
                                               .max = 1,
                                               .start_s = 60,
                                               .timeout_s = 60,
                                               .reset_limit = -1,
                                               .is_here = true};
    struct hvd_rendezvous_service service = {0};
    struct hvd_error err;

    if (hvd_rendezvous_start(program, &rules, &service, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    if (files > 0) {
        prlimit(service.pid, RLIMIT_NOFILE, &(struct rlimit){files, files}, NULL);
    }
    return service;
}

static uint16_t port_of(const struct hvd_rendezvous_service *service)
{
    return (uint16_t)atoi(service->address);
}

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void connect_many(uint16_t port, int fds[MANY])
{
    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_to(port);
    }
}

static void close_many(const int fds[MANY])
{
    for (int i = 0; i < MANY; i++) {
        close(fds[i]);
    }
}

/* Joins as a rank in a process of its own, since a process is one rank. Returns whether
 * it got in. */
static bool joins(const struct hvd_rendezvous_service *service)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        char address[256];
        struct hvd_rendezvous_generation generation;
        struct hvd_error err = {0};
        const struct hvd_rendezvous_join_query query = {.address = address,
                                                        .host = "here",
                                                        .card = "card",
                                                        .card_bytes = 4,
                                                        .timeout_ms = LIMIT_MS};

        snprintf(address, sizeof(address), "127.0.0.1:%s", service->address);
        if (hvd_rendezvous_client_join(&query, &generation, &err) != 0) {
            tap_note("%s", err.text);
            fflush(stdout);
            _exit(EXIT_FAILURE);
        }
        _exit(EXIT_SUCCESS);
    }
    waitpid(pid, &status, 0);
    return status == 0;
}

/* Returns the CPU time of the process in milliseconds. */
static long cpu_ms(pid_t pid)
{
    char path[64];
    unsigned long user = 0, kernel = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file != NULL) {
        (void)!fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                      &user, &kernel);
        fclose(file);
    }
    return (long)((user + kernel) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK));
}

static int descriptors(pid_t pid)
{
    char path[64];
    int count = 0;
    DIR *directory;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    directory = opendir(path);
    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count - 2;
}

/* Runs a service that has too few descriptors for all connections. */
static void test_few_files(const char *program)
{
    struct hvd_rendezvous_service service = start(program, FEW_FILES);
    int fds[MANY];
    long before;

    connect_many(port_of(&service), fds);
    usleep(300000); /* time to accept all that it can */
    before = cpu_ms(service.pid);
    usleep(1500000);
    tap_ok(cpu_ms(service.pid) - before < 300,
           "a service that is out of descriptors does not burn CPU time");
    tap_ok(joins(&service),
           "a rank gets in beside %d silent connections, with %d descriptors", MANY,
           FEW_FILES);
    close_many(fds);
    hvd_rendezvous_stop(&service);
}

static void test_bound(const char *program)
{
    struct hvd_rendezvous_service service = start(program, 0);
    int fds[MANY];

    connect_many(port_of(&service), fds);
    tap_ok(joins(&service), "a rank gets in beside %d silent connections", MANY);
    tap_ok(descriptors(service.pid) < HELD_MOST,
           "the service keeps few of %d connections without proof", MANY);
    close_many(fds);
    hvd_rendezvous_stop(&service);
}

/* Connects again and again: some connections send nothing, some noise, some what looks
 * like a header. */
static void *flood(void *context)
{
    static const unsigned char header[40] = {24, 0, 0, 0, 1};
    struct flood *work = context;
    unsigned state = work->seed;
    int fds[MANY];
    int next = 0;

    memset(fds, -1, sizeof(fds));
    while (!work->is_over) {
        unsigned char noise[64];

        for (size_t i = 0; i < sizeof(noise); i++) {
            noise[i] = (unsigned char)rand_r(&state);
        }
        close(fds[next]);
        fds[next] = connect_to(work->port);
        switch (rand_r(&state) % 3) {
        case 0:
            (void)send(fds[next], noise, sizeof(noise), MSG_NOSIGNAL);
            break;
        case 1:
            (void)send(fds[next], header, sizeof(header), MSG_NOSIGNAL);
            break;
        default:
            break;
        }
        next = (next + 1) % MANY;
    }
    close_many(fds);
    return NULL;
}

static void test_flood(const char *program, unsigned seed)
{
    struct hvd_rendezvous_service service = start(program, 0);
    struct flood work = {.port = port_of(&service), .seed = seed};
    pthread_t thread;
    int joined = 0;

    pthread_create(&thread, NULL, flood, &work);
    for (int i = 0; i < JOINS; i++) {
        joined += joins(&service) ? 1 : 0;
    }
    work.is_over = true;
    pthread_join(thread, NULL);
    tap_ok(joined == JOINS, "%d of %d ranks get in while strangers keep connecting",
           joined, JOINS);
    tap_ok(descriptors(service.pid) < HELD_MOST,
           "the service keeps few of the strangers");
    hvd_rendezvous_stop(&service);
}

int main(int argc, char **argv)
{
    struct rlimit files;

    if (argc != 2) {
        return EXIT_FAILURE;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    test_few_files(argv[1]);
    test_bound(argv[1]);
    test_flood(argv[1], tap_seed((unsigned)getpid()));
    return tap_done();
}
