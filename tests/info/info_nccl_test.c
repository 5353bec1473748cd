/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how warnings of NCCL are merged into kinds, and what the report says. */
#include "contrib/info/nccl/kinds.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/info/nccl/advice.h"
#include "contrib/info/nccl/report.h"
#include "tests/tap.h"

static const char *const hosts[] = {"login", "n1", "n2"};

static bool is_file(const char *name, int rank, const char *host, long pid)
{
    struct hvd_info_nccl_file file;

    return hvd_info_nccl_file_parse(name, &file) && file.rank == rank &&
           strcmp(file.host, host) == 0 && file.pid == pid;
}

static void test_names(void)
{
    static const char *const wrong[] = {
        "nccl.0.n1",    "nccl.0..1",    "nccl.n1.1",
        "nccl..n1.1",   "nccl.-1.n1.1", "nccl.0.n1.",
        "nccl.0.n1.x",  "nccl.01.n1.1", "nccl.0.n1.1~",
        "Nccl.0.n1.1",  "nccl.0.n1.-1", "inspector",
        "nccl.--.n1.1", "nccl.",        "nccl.4294967296.n1.1",
    };
    struct hvd_info_nccl_file file;
    char name[HVD_INFO_NCCL_HOST_BYTES + 32] = "nccl.1.";

    tap_ok(is_file("nccl.0.n1.4711", 0, "n1", 4711) &&
               is_file("nccl.1023.a.b-c.site.1", 1023, "a.b-c.site", 1),
           "the name of a file has the rank, the node and the process");
    tap_ok(is_file("nccl.-.n1.7", -1, "n1", 7), "the rank may be unknown");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        tap_ok(!hvd_info_nccl_file_parse(wrong[i], &file), "no name of a file: %s",
               wrong[i]);
    }
    memset(name + strlen(name), 'x', HVD_INFO_NCCL_HOST_BYTES);
    strcpy(name + strlen("nccl.1.") + HVD_INFO_NCCL_HOST_BYTES, ".1");
    tap_ok(!hvd_info_nccl_file_parse(name, &file), "nor a node with a name too long");
}

/* Returns the number of kinds of these warnings, each of another file. */
static int count_kinds(const char *const *texts, int count)
{
    struct hvd_info_nccl_kinds kinds = {.hosts = hosts, .host_count = 3};
    int found;

    for (int i = 0; i < count; i++) {
        char line[1024];

        snprintf(line, sizeof(line), "n1:%d:%d [0] init.cc:%d NCCL WARN %s\n", i, i, i,
                 texts[i]);
        (void)hvd_info_nccl_kinds_add(&kinds, i, line, NULL);
    }
    found = kinds.count;
    hvd_info_nccl_kinds_finish(&kinds);
    return found;
}

static void test_folding(void)
{
    static const struct {
        const char *what;
        const char *texts[2];
        bool is_same;
    } pairs[] = {
        {"ranks", {"rank 7 failed", "rank 12 failed"}, true},
        {"addresses and ports",
         {"connect to 10.0.0.1<4711> failed", "connect to 10.0.12.31<5> failed"},
         true},
        {"IPv6 addresses",
         {"connect to fe80::ba59:9fff:fe2e%ib0<1>", "connect to fd12:3::1%ib2<44>"},
         true},
        {"names of nodes", {"peer n1<1> left", "peer login<1> left"}, true},
        {"names of nodes in a domain", {"peer n1.site left", "peer n2.site left"}, true},
        {"names of shared memory",
         {"creating /dev/shm/nccl-aXbYcZ (9)", "creating /dev/shm/nccl-QQQQQQ (10)"},
         true},
        {"bus ids", {"device [1b000] is lost", "device [c1000] is lost"}, true},
        {"pointers", {"comm 0xabcdef", "comm 0x55d0c0de"}, true},
        {"network cards", {"mlx5_0:1 failed", "mlx5_11:2 failed"}, true},
        {"reasons", {"failed: No such file", "failed: Permission denied"}, false},
        {"names that are no nodes", {"plugin foo", "plugin bar"}, false},
        {"parts of names of nodes", {"login", "logins"}, false},
        {"words of hexadecimal letters", {"failed: bad", "failed: dead"}, false},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        tap_ok((count_kinds(pairs[i].texts, 2) == 1) == pairs[i].is_same,
               "warnings that differ in %s are %s", pairs[i].what,
               pairs[i].is_same ? "of one kind" : "of two kinds");
    }
}

static void add(struct hvd_info_nccl_kinds *kinds, int file, const char *line)
{
    if (hvd_info_nccl_kinds_add(kinds, file, line, NULL) != 0) {
        exit(1);
    }
}

static void test_lines(void)
{
    struct hvd_info_nccl_kinds kinds = {0};
    char line[2000] = "n1:1:1 [0] a.cc:1 NCCL WARN ";

    add(&kinds, 0, "n1:1:1 [0] NCCL INFO NCCL_DEBUG set by environment to WARN\n");
    add(&kinds, 0, "\n");
    add(&kinds, 0, "NCCL version 2.30.7\n");
    tap_ok(kinds.count == 0, "lines that are no warnings are ignored");
    add(&kinds, 0, "n1:1:1 [0] a.cc:1 NCCL WARN \033[31mred\a and\tmore \r\n");
    tap_ok(kinds.count == 1 && strcmp(kinds.items[0].text, " [31mred  and more") == 0,
           "control characters do not reach the terminal");
    memset(line + strlen(line), 'x', sizeof(line) - strlen(line) - 1);
    add(&kinds, 0, line);
    tap_ok(kinds.count == 2 &&
               strlen(kinds.items[1].text) == HVD_INFO_NCCL_TEXT_BYTES - 1,
           "a warning that is too long is cut");
    add(&kinds, 0, "n1:1:1 [0] a.cc:1 NCCL WARN \n");
    tap_ok(kinds.count == 3 && kinds.items[2].text[0] == '\0',
           "a warning that breaks off is a kind, too");
    hvd_info_nccl_kinds_finish(&kinds);
    for (int i = 0; i < 26 * 26; i++) {
        snprintf(line, sizeof(line), "x NCCL WARN %c%c!", 'g' + i / 26 % 20,
                 'g' + i % 20);
        snprintf(line + strlen(line), 40, "%.*s", i / 20 % 34,
                 "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
        add(&kinds, 0, line);
    }
    tap_ok(kinds.count == HVD_INFO_NCCL_KINDS_MOST && kinds.left_out > 0,
           "the number of kinds has a limit: %ld left out", kinds.left_out);
    hvd_info_nccl_kinds_finish(&kinds);
}

static void test_times(void)
{
    struct hvd_info_nccl_kinds kinds = {0};

    add(&kinds, 0, "n1:1:1 [0] a.cc:1 NCCL WARN without a time");
    add(&kinds, 0, "[2026-11-29 10:00:07] n1:1:1 [0] a.cc:1 NCCL WARN late 1");
    add(&kinds, 0, "[2026-11-29 10:00:05] n1:1:1 [0] a.cc:1 NCCL WARN early 1");
    add(&kinds, 1, "[2026-11-29 10:00:03] n2:1:1 [0] a.cc:1 NCCL WARN early 2");
    add(&kinds, 1, "[2026-11-29 10:00:09] n2:1:1 [0] a.cc:1 NCCL WARN late 2");
    hvd_info_nccl_kinds_sort(&kinds);
    tap_ok(kinds.count == 3 && strcmp(kinds.items[0].text, "early 2") == 0 &&
               strcmp(kinds.items[0].time, "2026-11-29 10:00:03") == 0 &&
               kinds.items[0].first == 1 && kinds.items[0].file_count == 2 &&
               kinds.items[0].lines == 2,
           "a kind has the text, the time and the file of its earliest warning");
    tap_ok(strcmp(kinds.items[1].text, "late 1") == 0 &&
               strcmp(kinds.items[2].text, "without a time") == 0,
           "kinds are sorted by time; those without a time come last");
    hvd_info_nccl_kinds_finish(&kinds);
    add(&kinds, 0, "[Sun Nov 29 2026] n1:1:1 [0] a.cc:1 NCCL WARN odd");
    add(&kinds, 1, "[2026-11-29 10:00:03] n2:1:1 [0] a.cc:1 NCCL WARN odd");
    tap_ok(kinds.count == 1 && strcmp(kinds.items[0].time, "2026-11-29 10:00:03") == 0 &&
               kinds.items[0].first == 1,
           "a time in another format is not compared");
    hvd_info_nccl_kinds_finish(&kinds);
}

/* Warnings as the source of NCCL has them, and a word of the advice. */
static void test_advice(void)
{
    static const struct {
        const char *text;
        const char *word;
    } known[] = {
        {"Cuda failure 2 'out of memory'", "memory is full"},
        {"Cuda failure 'an illegal memory access was encountered'", "compute-sanitizer"},
        {"Error while creating shared memory segment /dev/shm/nccl-QfgPGN (size "
         "9637888), "
         "error: No space left on device (28)",
         "df /dev/shm"},
        {"Error: failed to extend /dev/shm/nccl-QfgPGN to 9637892 bytes, error: No space "
         "left on device (28)",
         "df /dev/shm"},
        {"Error while attaching to shared memory segment /dev/shm/nccl-QfgPGN (size "
         "9637888), error: No such file or directory (2)",
         "--ipc=host"},
        {"Mismatched NCCL version detected : rank 0 version 22005 rank 1 version 22304",
         "which library each node loads"},
        {"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000",
         "its own GPU"},
        {"Call to ibv_reg_mr failed with error Cannot allocate memory errno 12",
         "ulimit -l"},
        {"Call to ibv_create_qp failed with error Invalid argument errno 22", "ibstat"},
        {"NET/IB: Got completion from peer 10.0.0.1<1> with status=IBV_WC_RETRY_EXC_ERR"
         "(12) opcode=IBV_WC_SEND(0) vendor_err=129",
         "lost packets"},
        {"NET/IB : No device found.", "NCCL_IB_HCA"},
        {"Failed to initialize any NET plugin", "without an InfiniBand card"},
        {"Bootstrap : no socket interface found", "NCCL_SOCKET_IFNAME"},
        {"NET/IB : No IP interface found.", "NCCL_SOCKET_IFNAME"},
        {"socketProgress: Connection closed by remote peer n1<10.0.0.1<4>>",
         "ncclRemoteError"},
        {"ncclOsSocketPollConnect to n1<10.0.0.1<4>> failed with error Connection "
         "refused",
         "firewall"},
        {"Failed to open libnvidia-ml.so.1: cannot open shared object file", "container"},
        {"Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA "
         "error 401 'the operation cannot be performed in the present state'.",
         "nvidia-fabricmanager"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *advice = hvd_info_nccl_advice(known[i].text);

        tap_ok(advice != NULL && strstr(advice, known[i].word) != NULL,
               "advice about: %.60s", known[i].text);
    }
    tap_ok(hvd_info_nccl_advice("Unknown pattern 7") == NULL &&
               hvd_info_nccl_advice("unlink shared memory /dev/shm/nccl-a failed, error: "
                                    "No such file or directory (2)") == NULL,
           "an unknown warning has no advice");
}

static void test_order(void)
{
    struct hvd_info_nccl_file files[] = {
        {-1, 1, "n1"}, {10, 1, "n1"}, {2, 9, "n2"}, {2, 8, "n2"}, {2, 9, "n1"}};
    struct hvd_info_nccl_report report = {"/x", files, 5, {0}};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    qsort(files, 5, sizeof(files[0]), hvd_info_nccl_files_compare);
    if (out == NULL || hvd_info_nccl_print(&report, out, NULL) != 0 || fclose(out) != 0) {
        exit(1);
    }
    tap_ok(strcmp(files[0].host, "n1") == 0 && files[1].pid == 8 && files[2].pid == 9 &&
               files[3].rank == 10 && files[4].rank == -1,
           "files are sorted by rank, node and process; unknown ranks come last");
    tap_ok(strcmp(text, "/x: 5 files of 2 ranks and 1 process on n[1-2]; no warnings of "
                        "NCCL\n"
                        "ranks without a file, because they did not start NCCL or wrote "
                        "elsewhere: 0-1,3-9\n"
                        "ranks with several files, of several processes or jobs; use a "
                        "new folder for each job: 2\n") == 0,
           "the report names ranks without a file, and ranks with several");
    free(text);
}

int main(void)
{
    test_names();
    test_folding();
    test_lines();
    test_times();
    test_advice();
    test_order();
    return tap_done();
}
