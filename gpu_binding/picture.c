/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the picture of a plan: sockets side by side, each with its GPUs, the ranks that
 * use them, and its NICs. */
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/number.h"
#include "gpu_binding/cpulist.h"
#include "gpu_binding/gpu_name.h"
#include "gpu_binding/table.h"

#define COLUMNS 100
#define GAP 3

/* The text of one socket, or of devices that belong to no socket. */
struct block {
    char *text;
    size_t length;
};

struct picture {
    const struct hvd_topology *topology;
    const struct hvd_plan *plan;
    /* these four are the widths of the longest GPU number, bus id, model and rank */
    int number_width;
    int bus_width;
    int model_width;
    int rank_width;
};

struct gpu_label {
    char bus[24];
    char model[24];
};

static struct gpu_label label_gpu(const struct hvd_topology *topology, int gpu)
{
    struct gpu_label label = {"-", "-"};

    if (gpu != HVD_NONE) {
        hvd_gpu_short_bus(topology->gpus[gpu].bus, label.bus, sizeof(label.bus));
        snprintf(label.model, sizeof(label.model), "%s", topology->gpus[gpu].model);
    }
    return label;
}

static int wider(int width, const char *text)
{
    int length = (int)strlen(text);

    return length > width ? length : width;
}

static void measure_columns(struct picture *picture)
{
    const struct hvd_gpu_list *gpus = &picture->plan->gpus;
    char number[16];

    for (int i = 0; i < gpus->count; i++) {
        struct gpu_label label = label_gpu(picture->topology, gpus->items[i].gpu);

        snprintf(number, sizeof(number), "%d", gpus->items[i].number);
        picture->number_width = wider(picture->number_width, number);
        picture->bus_width = wider(picture->bus_width, label.bus);
        picture->model_width = wider(picture->model_width, label.model);
    }
    for (int i = 0; i < picture->plan->row_count; i++) {
        snprintf(number, sizeof(number), "%d", picture->plan->rows[i].local_rank);
        picture->rank_width = wider(picture->rank_width, number);
    }
}

static void print_cpus(const struct hvd_cpuset *cpus, FILE *out)
{
    size_t size = hvd_cpulist_format(cpus, NULL, 0) + 1;
    char *text = malloc(size);

    if (text != NULL) {
        hvd_cpulist_format(cpus, text, size);
        fprintf(out, "%s", text);
        free(text);
    }
}

static void print_rank(const struct picture *picture, const struct hvd_plan_row *row,
                       FILE *out)
{
    fprintf(out, "local rank %*d  ", picture->rank_width, row->local_rank);
    print_cpus(&row->cpus, out);
    fprintf(out, "%s\n", row->is_far ? "  far" : "");
}

/* Prints a line for each rank that uses the GPU with this index in the list. */
static void print_gpu(const struct picture *picture, int index, FILE *out)
{
    const struct hvd_gpu_item *item = &picture->plan->gpus.items[index];
    struct gpu_label label = label_gpu(picture->topology, item->gpu);
    bool is_used = false;

    for (int i = 0; i < picture->plan->row_count; i++) {
        const struct hvd_plan_row *row = &picture->plan->rows[i];

        if (row->gpu_index == index) {
            is_used = true;
            fprintf(out, "  gpu %*d  %-*s  %-*s  <- ", picture->number_width,
                    item->number, picture->bus_width, label.bus, picture->model_width,
                    label.model);
            print_rank(picture, row, out);
        }
    }
    if (!is_used) {
        fprintf(out, "  gpu %*d  %-*s  %-*s  no local rank\n", picture->number_width,
                item->number, picture->bus_width, label.bus, picture->model_width,
                label.model);
    }
}

static int gpu_socket(const struct picture *picture, int index)
{
    int gpu = picture->plan->gpus.items[index].gpu;

    return gpu == HVD_NONE ? HVD_NONE : picture->topology->gpus[gpu].socket;
}

/* True when the row's list of NICs, "mlx5_0:1,mlx5_1:1", has this one. */
static bool takes_nic(const struct hvd_plan_row *row, const struct hvd_nic *nic)
{
    char item[64];
    size_t length = (size_t)snprintf(item, sizeof(item), "%s:%d", nic->name, nic->port);

    for (const char *at = row->nic; *at != '\0';) {
        size_t here = strcspn(at, ",");

        if (here == length && strncmp(at, item, length) == 0) {
            return true;
        }
        at += here + (at[here] == ',');
    }
    return false;
}

static void print_nic(const struct picture *picture, const struct hvd_nic *nic, FILE *out)
{
    struct hvd_cpuset ranks = {{0}};
    char bus[24];

    for (int i = 0; i < picture->plan->row_count; i++) {
        if (takes_nic(&picture->plan->rows[i], nic)) {
            hvd_cpuset_add(&ranks, picture->plan->rows[i].local_rank);
        }
    }
    hvd_gpu_short_bus(nic->bus, bus, sizeof(bus));
    fprintf(out, "  %s", nic->name);
    if (nic->port > 1) {
        fprintf(out, ":%d", nic->port);
    }
    fprintf(out, " %s  %s", bus, nic->is_active ? "up" : "down");
    if (!hvd_cpuset_is_empty(&ranks)) {
        fprintf(out, "  <- local rank%s ", hvd_cpuset_count(&ranks) > 1 ? "s" : "");
        print_cpus(&ranks, out);
    }
    fprintf(out, "\n");
}

/* Prints the GPUs, ranks without GPU, and NICs of a socket; HVD_NONE: those of no
 * socket. */
static void print_members(const struct picture *picture, int socket, FILE *out)
{
    for (int i = 0; i < picture->plan->gpus.count; i++) {
        if (gpu_socket(picture, i) == socket) {
            print_gpu(picture, i, out);
        }
    }
    for (int i = 0; i < picture->plan->row_count; i++) {
        const struct hvd_plan_row *row = &picture->plan->rows[i];

        if (row->gpu_index == HVD_NONE && row->socket == socket) {
            fprintf(out, "  ");
            print_rank(picture, row, out);
        }
    }
    for (int i = 0; i < picture->topology->nic_count; i++) {
        if (picture->topology->nics[i].socket == socket) {
            print_nic(picture, &picture->topology->nics[i], out);
        }
    }
}

static void print_title(const struct picture *picture, int socket, FILE *out)
{
    struct hvd_cpuset nodes = {{0}};
    int count = 0;

    for (int i = 0; i < picture->topology->numa_count; i++) {
        if (picture->topology->numas[i].socket == socket) {
            hvd_cpuset_add(&nodes, picture->topology->numas[i].number);
            count++;
        }
    }
    fprintf(out, "socket %d", socket);
    if (count > 0) {
        fprintf(out, ", node%s ", count > 1 ? "s" : "");
        print_cpus(&nodes, out);
    }
    fprintf(out, "\n");
}

/* Fills the block of a socket. The block after the last socket is for ranks and devices
 * whose socket is unknown, and stays empty if there are none. */
static void fill_block(const struct picture *picture, int socket, struct block *block)
{
    bool is_socket = socket < picture->topology->socket_count;
    FILE *out = open_memstream(&block->text, &block->length);

    if (out == NULL) {
        return;
    }
    if (is_socket) {
        print_title(picture, socket, out);
    } else {
        fprintf(out, "no known socket\n");
    }
    fflush(out);
    size_t title = block->length;
    print_members(picture, is_socket ? socket : HVD_NONE, out);
    fclose(out);
    if (!is_socket && block->length == title) {
        block->text[0] = '\0';
        block->length = 0;
    }
}

/* Returns line number `line` of a block and its length; an empty text after the last
 * line. */
static const char *line_at(const struct block *block, int line, int *length)
{
    const char *at = block->text != NULL ? block->text : "";

    for (; line > 0 && *at != '\0'; line--) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    *length = (int)strcspn(at, "\n");
    return at;
}

static int longest_line(const struct block *blocks, int count)
{
    int longest = 0;

    for (int i = 0; i < count; i++) {
        int length = 0;

        for (int line = 0; *line_at(&blocks[i], line, &length) != '\0'; line++) {
            longest = length > longest ? length : longest;
        }
    }
    return longest;
}

/* Prints blocks side by side, each but the last `width` wide, without trailing blanks. */
static void print_beside(const struct block *blocks, int count, int width, FILE *out)
{
    for (int line = 0;; line++) {
        int last = -1;
        int length;

        for (int i = 0; i < count; i++) {
            last = *line_at(&blocks[i], line, &length) != '\0' ? i : last;
        }
        if (last < 0) {
            return;
        }
        for (int i = 0; i <= last; i++) {
            const char *text = line_at(&blocks[i], line, &length);

            fprintf(out, "%.*s%*s", length, text, i < last ? width - length : 0, "");
        }
        fprintf(out, "\n");
    }
}

static void print_blocks(const struct block *blocks, int count, FILE *out)
{
    int width = longest_line(blocks, count) + GAP;
    int beside = (COLUMNS + GAP) / width;

    beside = beside < 1 ? 1 : beside;
    for (int i = 0; i < count; i += beside) {
        print_beside(&blocks[i], count - i < beside ? count - i : beside, width, out);
    }
}

static int count_nics(const struct hvd_topology *topology)
{
    int count = 0;

    for (int i = 0; i < topology->nic_count; i++) {
        count +=
            i == 0 || strcmp(topology->nics[i].name, topology->nics[i - 1].name) != 0;
    }
    return count;
}

static void print_count(int count, const char *thing, FILE *out)
{
    fprintf(out, "%d %s%s", count, thing, hvd_number_plural(count));
}

static void print_headline(const struct picture *picture, const char *host, FILE *out)
{
    const struct hvd_topology *topology = picture->topology;
    int gpus = picture->plan->gpus.count;

    fprintf(out, "%s: ", host);
    print_count(topology->socket_count, "socket", out);
    fprintf(out, ", ");
    print_count(topology->core_count, "core", out);
    fprintf(out, ", ");
    if (gpus < topology->gpu_count) {
        fprintf(out, "%d of ", gpus);
        gpus = topology->gpu_count;
    }
    print_count(gpus, "GPU", out);
    fprintf(out, ", ");
    print_count(count_nics(topology), "HCA", out);
    fprintf(out, "; step may use cpus ");
    print_cpus(&picture->plan->allowed, out);
    fprintf(out, "; bind=%s\n", hvd_bind_mode_name(picture->plan->mode));
}

void hvd_picture_print(const struct hvd_topology *topology, const struct hvd_plan *plan,
                       const char *host, FILE *out)
{
    struct picture picture = {.topology = topology, .plan = plan};
    int count = topology->socket_count + 1;
    struct block *blocks = calloc((size_t)count, sizeof(*blocks));

    measure_columns(&picture);
    print_headline(&picture, host, out);
    if (blocks == NULL) {
        return;
    }
    for (int i = 0; i < count; i++) {
        fill_block(&picture, i, &blocks[i]);
    }
    print_blocks(blocks, blocks[count - 1].length > 0 ? count : count - 1, out);
    for (int i = 0; i < count; i++) {
        free(blocks[i].text);
    }
    free(blocks);
}
