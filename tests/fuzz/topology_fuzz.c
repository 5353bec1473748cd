/* SPDX-License-Identifier: Apache-2.0 */
/* A node in hwloc's XML, as users give it to hvd-info and administrators to the plugin,
 * and the plans and pictures that are made from it. The XML is always well-formed,
 * because hwloc's reader is not under test. Its contents are random: sockets and cores,
 * PCI devices of any kind below any bridges, names and values. */
#include <ctype.h>
#include <stdlib.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/plan.h"
#include "gpu_binding/table.h"
#include "gpu_binding/topology.h"
#include "tests/fuzz/fuzz.h"

enum {
    CORES = 4, /* number of cores in a socket */
    MOST_SOCKETS = 4,
    MOST_DEVICES = 6, /* limit for each bridge */
    TEXT_BYTES = 48
};

struct writer {
    struct fuzz_input *input;
    FILE *out;
    unsigned number; /* number of objects so far */
    unsigned bus;
};

/* Writes letters, digits and signs that XML need not escape; at least one character. */
static void put_text(struct writer *writer)
{
    char *text = fuzz_text(writer->input, fuzz_byte(writer->input) % TEXT_BYTES);

    for (char *at = text; *at != '\0'; at++) {
        bool is_plain = isprint((unsigned char)*at) && *at != '<' && *at != '>' &&
                        *at != '&' && *at != '"' && *at != '\'';

        fputc(is_plain ? *at : '_', writer->out);
    }
    fputs(text[0] == '\0' ? "x" : "", writer->out);
    free(text);
}

static void put_info(struct writer *writer, const char *name)
{
    fprintf(writer->out, "<info name=\"%s\" value=\"", name);
    put_text(writer);
    fputs("\"/>\n", writer->out);
}

static void put_os_device(struct writer *writer)
{
    static const int types[] = {0, 1, 3, 5}; /* block, GPU, OpenFabrics, coprocessor */
    static const char *const states[] = {"4", "1", "-1", "99999999999", "x"};
    uint8_t what = fuzz_byte(writer->input);

    fprintf(writer->out,
            "<object type=\"OSDev\" gp_index=\"%u\" osdev_type=\"%d\" name=\"",
            writer->number++, types[what % 4]);
    put_text(writer);
    fputs("\">\n", writer->out);
    put_info(writer, "GPUModel");
    for (int port = 1; port <= what / 4 % 12; port++) {
        fprintf(writer->out, "<info name=\"Port%dState\" value=\"%s\"/>\n", port,
                states[(what / 64 + port) % 5]);
    }
    fputs("</object>\n", writer->out);
}

static void put_pci_device(struct writer *writer)
{
    static const char *const classes[] = {"0302", "0300", "0207", "0200", "1200", "0380"};
    static const char *const vendors[] = {"10de", "15b3", "1002", "8086"};
    uint8_t what = fuzz_byte(writer->input), more = fuzz_byte(writer->input);

    fprintf(writer->out,
            "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"%04x:%02x:%02x.%x\" "
            "pci_type=\"%s [%s:%04x] [10de:1249] a1\" pci_link_speed=\"0.000000\">\n",
            writer->number++, more / 64, writer->bus, more % 32, more / 32 % 2,
            classes[what % 6], vendors[what / 8 % 4], 0x1db0 + what);
    if (what % 2 == 0) {
        put_info(writer, "PCIDevice");
    }
    for (int i = 0; i < what / 64; i++) {
        put_os_device(writer);
    }
    fputs("</object>\n", writer->out);
}

static void put_bridge(struct writer *writer)
{
    unsigned bus = writer->bus;
    int devices = fuzz_byte(writer->input) % MOST_DEVICES;

    fprintf(writer->out,
            "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"0-1\" depth=\"0\" "
            "bridge_pci=\"0000:[%02x-%02x]\">\n",
            writer->number++, bus, bus + 15);
    for (int i = 0; i < devices; i++) {
        writer->bus++;
        put_pci_device(writer);
    }
    fputs("</object>\n", writer->out);
    writer->bus = bus + 16;
}

static void put_set(struct writer *writer, const char *kind, unsigned set)
{
    fprintf(writer->out, " %s=\"0x%08x\" complete_%s=\"0x%08x\"", kind, set, kind, set);
}

static void put_object(struct writer *writer, const char *type, unsigned index,
                       unsigned cpus, unsigned nodes)
{
    fprintf(writer->out, "<object type=\"%s\" os_index=\"%u\" gp_index=\"%u\"", type,
            index, writer->number++);
    put_set(writer, "cpuset", cpus);
    put_set(writer, "nodeset", nodes);
}

static void put_socket(struct writer *writer, unsigned socket)
{
    unsigned nodes = 1u << socket;

    put_object(writer, "Package", socket, 0xfu << (CORES * socket), nodes);
    fputs(">\n", writer->out);
    put_object(writer, "NUMANode", socket, 0xfu << (CORES * socket), nodes);
    fputs(" local_memory=\"1048576\"/>\n", writer->out);
    for (unsigned core = 0; core < CORES; core++) {
        unsigned number = CORES * socket + core;

        put_object(writer, "Core", core, 1u << number, nodes);
        fputs(">\n", writer->out);
        put_object(writer, "PU", number, 1u << number, nodes);
        fputs("/>\n</object>\n", writer->out);
    }
    for (int i = fuzz_byte(writer->input) % 3; i > 0; i--) {
        put_bridge(writer);
    }
    fputs("</object>\n", writer->out);
}

static void put_node(struct writer *writer)
{
    unsigned sockets = 1 + fuzz_byte(writer->input) % MOST_SOCKETS;
    unsigned cpus = (unsigned)((1ull << (CORES * sockets)) - 1);
    unsigned allowed = fuzz_word(writer->input) & cpus;

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n",
          writer->out);
    put_object(writer, "Machine", 0, cpus, (1u << sockets) - 1);
    fprintf(writer->out, " allowed_cpuset=\"0x%08x\" allowed_nodeset=\"0x%08x\">\n",
            allowed != 0 ? allowed : cpus, (1u << sockets) - 1);
    for (unsigned i = 0; i < sockets; i++) {
        put_socket(writer, i);
    }
    if (fuzz_byte(writer->input) % 4 == 0) {
        put_bridge(writer);
    }
    fputs("</object>\n</topology>\n", writer->out);
}

static void show(const struct hvd_topology *topology, int ranks, enum hvd_bind_mode mode)
{
    struct hvd_plan_input input = {
        .topology = topology, .rank_count = ranks, .options = {.mode = mode}};
    struct hvd_error err = {0};
    struct hvd_plan plan;

    if (hvd_plan_make(&input, &plan, &err) != 0) {
        return;
    }
    if (plan.row_count != ranks) {
        fuzz_fail("every rank has a row");
    }
    for (int i = 0; i < ranks; i++) {
        if (hvd_cpuset_count(&plan.rows[i].cpus) == 0) {
            fuzz_fail("every rank has a CPU");
        }
    }
    hvd_picture_print(topology, &plan, "n1", fuzz_nowhere());
    hvd_table_print(topology, &plan, fuzz_nowhere());
    hvd_notes_print(&plan, fuzz_nowhere());
    hvd_plan_finish(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_topology_source source = {.nvidia_dir = "/nonexistent"};
    struct writer writer = {.input = &input};
    struct hvd_topology topology;
    struct hvd_error err = {0};
    char *xml = NULL;
    size_t bytes = 0;

    writer.out = open_memstream(&xml, &bytes);
    if (writer.out == NULL) {
        abort();
    }
    put_node(&writer);
    fclose(writer.out);
    source.xml_file = fuzz_file(xml, bytes);
    free(xml);
    if (hvd_topology_load(&topology, &source, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        fuzz_fail("a well-formed file can be read");
    }
    show(&topology, 1, HVD_BIND_SOCKET);
    show(&topology, 4, HVD_BIND_CORES);
    show(&topology, 9, HVD_BIND_NONE);
    hvd_topology_finish(&topology);
    return 0;
}
