/* SPDX-License-Identifier: Apache-2.0 */
/* Binding tables folded by shape, and their way from several senders to one collector. */
#include "spank/report.h"

#include <string.h>
#include <unistd.h>

#include "spank/shapes.h"
#include "tests/tap.h"

static const char *printed(const struct hvd_shapes *shapes)
{
    static char text[4096];
    FILE *file = fmemopen(text, sizeof(text), "w");

    hvd_shapes_print(shapes, file);
    fclose(file);
    return text;
}

static void test_shapes(void)
{
    struct hvd_shapes shapes = {0};
    char host[8];

    hvd_shapes_add(&shapes, "n1", "table A\n");
    hvd_shapes_add(&shapes, "n2", "table B\n");
    hvd_shapes_add(&shapes, "n3", "table A\n");
    tap_ok(strcmp(printed(&shapes), "hvd: binding on n1, n3\ntable A\n\n"
                                    "hvd: binding on n2\ntable B\n\n") == 0,
           "each shape is printed once, with its hosts");
    hvd_shapes_finish(&shapes);
    for (int i = 0; i < 300; i++) {
        snprintf(host, sizeof(host), "n%d", i);
        hvd_shapes_add(&shapes, host, "same\n");
    }
    tap_ok(shapes.count == 1 && strstr(printed(&shapes), "n7 and 292 more\n") != NULL,
           "300 nodes are eight names and a count");
    hvd_shapes_finish(&shapes);
}

/* Runs a collector for `nodes` nodes with its standard error in text, while act sends. */
static void collect(int nodes, void (*act)(const char *address), char *text, size_t bytes)
{
    char address[HVD_REPORT_ADDRESS_BYTES];
    struct hvd_report *report = NULL;
    FILE *file = tmpfile();
    int old = dup(STDERR_FILENO);

    dup2(fileno(file), STDERR_FILENO);
    if (hvd_report_create(nodes, address, &report, NULL) == 0) {
        act(address);
        hvd_report_destroy(report);
    }
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static void send_two(const char *address)
{
    hvd_report_send("127.0.0.1", address, "the table\n", NULL);
    hvd_report_send("127.0.0.1", address, "the table\n", NULL);
}

static void send_one(const char *address)
{
    hvd_report_send("127.0.0.1", address, "bad \033[2J\n", NULL);
}

/* Connects like a stranger: right port, wrong key; then one that says nothing. */
static void send_wrong_key(const char *address)
{
    char wrong[HVD_REPORT_ADDRESS_BYTES];
    char *key;

    snprintf(wrong, sizeof(wrong), "%s", address);
    key = strchr(wrong, ':') + 1;
    key[0] = key[0] == '0' ? '1' : '0';
    hvd_report_send("127.0.0.1", wrong, "forged\n", NULL);
    hvd_report_send("127.0.0.1", address, "real\n", NULL);
}

static void send_nothing(const char *address)
{
    (void)address;
}

static void test_collector(void)
{
    char text[8192];

    collect(2, send_two, text, sizeof(text));
    tap_ok(strstr(text, "the table\n") != NULL &&
               strstr(strstr(text, "the table\n") + 1, "the table") == NULL,
           "equal tables of two nodes are printed once");
    collect(2, send_one, text, sizeof(text));
    tap_ok(strstr(text, "no binding table from 1 of 2 nodes") != NULL,
           "a silent node is counted");
    tap_ok(strchr(text, '\033') == NULL && strstr(text, "bad ?[2J") != NULL,
           "control characters do not reach the terminal");
    collect(1, send_wrong_key, text, sizeof(text));
    tap_ok(strstr(text, "forged") == NULL && strstr(text, "real") != NULL,
           "a table with another key is dropped");
    collect(3, send_nothing, text, sizeof(text));
    tap_ok(strcmp(text, "hvd: no binding table from 3 of 3 nodes\n") == 0,
           "a step that ends before any node reports does not wait");
}

static void test_sender(void)
{
    struct hvd_error err = {0};

    tap_ok(hvd_report_send("127.0.0.1", "1:00", "text", &err) == HVD_ERR_NET &&
               strstr(err.text, "127.0.0.1") != NULL,
           "a closed port is an error that names the host");
    tap_ok(hvd_report_send("127.0.0.1", "nonsense", "text", &err) == HVD_ERR_ARG,
           "a malformed address is refused");
    tap_ok(hvd_report_send("localhost", "1:00", "text", &err) == HVD_ERR_NET,
           "a name is not looked up");
}

int main(void)
{
    test_shapes();
    test_collector();
    test_sender();
    return tap_done();
}
