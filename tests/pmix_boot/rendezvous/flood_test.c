/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers connect to the service of an elastic job and send nothing, or noise. Ranks
 * still get in, and the service spends neither time nor descriptors on strangers.
 * usage: flood_test HVD_RENDEZVOUS */
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/client.h"
#include "pmix_boot/rendezvous/start.h"
#include "tests/tap.h"

enum {
    FEW_FILES = 64, /* descriptors of a service that is short of them */
    MANY = 600, /* connections */
    /* a service holds fewer descriptors than this: a few of its own, those of 64
     * strangers, and those of the ranks */
    HELD_MOST = 100,
    JOINS = 20,
    LIMIT_MS = 30000,
    SHORT_MS = 1000,
    FILLING = 80, /* connections, more than the service keeps without proof */
    HEADER_BYTES = 40, /* the first message of a rank, and that of the service */
};

/* The header, the first message of a rank. It needs no key, so strangers can send it. */
static const unsigned char header[HEADER_BYTES] = {24, 0, 0, 0, 1};

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

/* Joins as a rank in a process of its own, since a process is one rank. Returns its
 * pid. */
static pid_t start_rank(const struct hvd_rendezvous_service *service, uint16_t port)
{
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

        snprintf(address, sizeof(address), "127.0.0.1:%d%s", (int)port,
                 strchr(service->address, ':'));
        if (hvd_rendezvous_client_join(&query, &generation, &err) != 0) {
            tap_note("%s", err.text);
            fflush(stdout);
            _exit(EXIT_FAILURE);
        }
        _exit(EXIT_SUCCESS);
    }
    return pid;
}

static bool joins(const struct hvd_rendezvous_service *service)
{
    int status = -1;

    waitpid(start_rank(service, port_of(service)), &status, 0);
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

/* Connects again and again: some connections send nothing, some random bytes, and some
 * the header of a rank. */
static void *flood(void *context)
{
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

/* --- a rank whose proof is late --- */

static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, bytes) != 0 ||
        listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        printf("Bail out! no port to listen on\n");
        exit(EXIT_FAILURE);
    }
    *port = ntohs(address.sin_port);
    return fd;
}

/* Passes on the bytes that arrive next. Returns how many, or 0 at the end or after
 * LIMIT_MS. */
static size_t pass_on(int from, int to)
{
    char bytes[4096];
    struct pollfd state = {.fd = from, .events = POLLIN};
    ssize_t got = poll(&state, 1, LIMIT_MS) > 0 ? read(from, bytes, sizeof(bytes)) : 0;

    if (got > 0) {
        (void)send(to, bytes, (size_t)got, MSG_NOSIGNAL);
    }
    return got > 0 ? (size_t)got : 0;
}

/* Accepts a rank and passes on its header, but not its proof. Fills the service with
 * newer connections until it closes the rank's. */
static void delay_proof(int listening, uint16_t service_port)
{
    int rank = accept(listening, NULL, NULL);
    int service = connect_to(service_port);
    int fds[FILLING];
    char bytes[HEADER_BYTES];
    size_t got = 0;

    (void)!recv(rank, bytes, sizeof(bytes), MSG_WAITALL);
    (void)send(service, bytes, sizeof(bytes), MSG_NOSIGNAL);
    /* If more than a header comes back, the service has read the rank's header. */
    while (got <= HEADER_BYTES) {
        const size_t more = pass_on(service, rank);

        if (more == 0) {
            break;
        }
        got += more;
    }
    for (int i = 0; i < FILLING; i++) {
        fds[i] = connect_to(service_port);
        (void)send(fds[i], header, sizeof(header), MSG_NOSIGNAL);
    }
    while (pass_on(service, rank) > 0) {
    }
    shutdown(rank, SHUT_WR);
    while (read(rank, bytes, sizeof(bytes)) > 0) {
    }
    close(rank);
    close(service);
    for (int i = 0; i < FILLING; i++) {
        close(fds[i]);
    }
}

/* Waits until the rank connects again, then passes everything on between it and the
 * service until one of them leaves. Returns false if the rank ended without a new
 * connection. */
static bool connect_again(int listening, uint16_t service_port, pid_t pid)
{
    struct pollfd state = {.fd = listening, .events = POLLIN};
    struct pollfd ends[2] = {{.events = POLLIN}, {.events = POLLIN}};
    bool is_over = false;
    siginfo_t info = {0};

    while (poll(&state, 1, 50) == 0) {
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == pid) {
            return false;
        }
    }
    ends[0].fd = accept(listening, NULL, NULL);
    ends[1].fd = connect_to(service_port);
    while (!is_over && poll(ends, 2, LIMIT_MS) > 0) {
        for (int i = 0; i < 2; i++) {
            is_over |= ends[i].revents != 0 && pass_on(ends[i].fd, ends[1 - i].fd) == 0;
        }
    }
    close(ends[0].fd);
    close(ends[1].fd);
    return true;
}

/* Too many connections exist without proof. The service closes the oldest one, which
 * belongs to a rank. */
static void test_dropped(const char *program)
{
    struct hvd_rendezvous_service service = start(program, 0);
    uint16_t port;
    int listening = listen_somewhere(&port);
    pid_t pid = start_rank(&service, port);
    int status = -1;
    bool came_again;

    delay_proof(listening, port_of(&service));
    came_again = connect_again(listening, port_of(&service), pid);
    waitpid(pid, &status, 0);
    tap_ok(came_again && status == 0,
           "a rank that was dropped before the service read its proof gets in later");
    close(listening);
    hvd_rendezvous_stop(&service);
}

/* --- errors --- */

static void *close_all(void *context)
{
    const int listening = *(const int *)context;
    int fd;

    while ((fd = accept(listening, NULL, NULL)) >= 0) {
        close(fd);
    }
    return NULL;
}

static bool fails_with(uint16_t port, const char *text)
{
    static const char key[] =
        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    struct hvd_rendezvous_call *call = NULL;
    struct hvd_error err = {0};
    char address[128];
    int status;

    snprintf(address, sizeof(address), "127.0.0.1:%d:%s", (int)port, key);
    status = hvd_rendezvous_call_begin(address, SHORT_MS, &call, &err);
    tap_note("%s", err.text);
    return status == HVD_ERR_NET && strstr(err.text, text) != NULL;
}

static void test_errors(void)
{
    uint16_t port;
    int listening = listen_somewhere(&port);
    pthread_t thread;

    tap_ok(fails_with(port, "has not answered"),
           "if the service does not answer, the error says so");
    pthread_create(&thread, NULL, close_all, &listening);
    tap_ok(fails_with(port, "closed the connection before it had accepted this rank"),
           "if the service closes each connection, the error says so");
    shutdown(listening, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listening);
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
    test_dropped(argv[1]);
    test_errors();
    test_flood(argv[1], tap_seed((unsigned)getpid()));
    return tap_done();
}
