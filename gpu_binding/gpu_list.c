/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the GPUs of the local ranks in a topology. */
#include "gpu_binding/gpu_list.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"

/* One entry of a list as it was written. */
struct entry {
    const char *text;
    size_t length;
    bool is_number;
    int first; /* a number, or the range first-last */
    int last;
};

/* More digits than any GPU number has; keeps sums far from overflow. */
#define NUMBER_MAX 99999

static bool read_digits(const char **at, const char *end, int *number)
{
    const char *p = *at;
    int value = 0;

    for (; p < end && *p >= '0' && *p <= '9' && value <= NUMBER_MAX; p++) {
        value = value * 10 + (*p - '0');
    }
    *number = value;
    bool found = p > *at && value <= NUMBER_MAX;
    *at = p;
    return found;
}

static bool read_numbers(struct entry *entry)
{
    const char *at = entry->text;
    const char *end = at + entry->length;

    if (!read_digits(&at, end, &entry->first)) {
        return false;
    }
    entry->last = entry->first;
    if (at < end && *at == '-') {
        at++;
        if (!read_digits(&at, end, &entry->last) || entry->last < entry->first) {
            return false;
        }
    }
    return at == end;
}

/* Takes the next entry off *at. False at the end of the text. */
static bool next_entry(const char **at, struct entry *entry)
{
    if (*at == NULL) {
        return false;
    }
    entry->text = *at;
    entry->length = strcspn(*at, ",");
    *at = entry->text[entry->length] == ',' ? entry->text + entry->length + 1 : NULL;
    entry->is_number = read_numbers(entry);
    return true;
}

static bool starts_with(const struct entry *entry, const char *word)
{
    size_t length = strlen(word);

    return entry->length > length && strncmp(entry->text, word, length) == 0;
}

static bool is_uuid(const struct entry *entry)
{
    return starts_with(entry, "GPU-") || starts_with(entry, "MIG-");
}

/* Finds the GPU of a UUID, which may be cut short if it stays unique. A MIG slice in the
 * older notation, MIG-GPU-UUID/..., names its GPU; in the newer notation, only NVML knows
 * the GPU. */
static int find_uuid(const struct hvd_topology *topology, const struct entry *entry)
{
    const char *uuid = entry->text + (starts_with(entry, "MIG-") ? strlen("MIG-") : 0);
    size_t length = strcspn(uuid, ",/");
    int found = HVD_NONE;

    for (int i = 0; i < topology->gpu_count; i++) {
        if (strncmp(topology->gpus[i].uuid, uuid, length) == 0) {
            if (found != HVD_NONE) {
                return HVD_NONE;
            }
            found = i;
        }
    }
    return found;
}

/* Finds the GPU with Slurm's number N, which is that of /dev/nvidiaN. If the driver does
 * not tell these numbers, GPUs are counted in PCI order. */
static int find_device(const struct hvd_topology *topology, int number)
{
    bool is_known = false;

    for (int i = 0; i < topology->gpu_count; i++) {
        if (topology->gpus[i].device_minor == number) {
            return i;
        }
        is_known = is_known || topology->gpus[i].device_minor != HVD_NONE;
    }
    return !is_known && number < topology->gpu_count ? number : HVD_NONE;
}

static int number_of(const struct hvd_topology *topology, int gpu)
{
    int minor = topology->gpus[gpu].device_minor;

    return minor != HVD_NONE ? minor : gpu;
}

static bool append_gpu(struct hvd_gpu_list *list, int number, int gpu)
{
    if (list->count == HVD_GPU_LIST_SIZE) {
        return false;
    }
    list->items[list->count++] = (struct hvd_gpu_item){number, gpu};
    return true;
}

/* Appends the GPU of a UUID. A GPU that is not found has no number, so its index in the
 * list is used. */
static bool append_uuid(const struct hvd_topology *topology, struct hvd_gpu_list *list,
                        const struct entry *entry)
{
    int gpu = find_uuid(topology, entry);

    return append_gpu(list, gpu == HVD_NONE ? list->count : number_of(topology, gpu),
                      gpu);
}

void hvd_gpu_list_all(const struct hvd_topology *topology, struct hvd_gpu_list *list)
{
    list->count = 0;
    for (int i = 0; i < topology->gpu_count; i++) {
        append_gpu(list, number_of(topology, i), i);
    }
}

void hvd_gpu_list_counted(const struct hvd_topology *topology, int count,
                          struct hvd_gpu_list *list)
{
    if (count == topology->gpu_count) {
        hvd_gpu_list_all(topology, list);
        return;
    }
    list->count = 0;
    for (int i = 0; i < count; i++) {
        append_gpu(list, i, HVD_NONE);
    }
}

/* Sorts by bus id, which is the order of the topology; GPUs without a bus id come last,
 * by number. */
static int compare_items(const void *a, const void *b)
{
    const struct hvd_gpu_item *x = a;
    const struct hvd_gpu_item *y = b;

    if ((x->gpu == HVD_NONE) != (y->gpu == HVD_NONE)) {
        return x->gpu == HVD_NONE ? 1 : -1;
    }
    if (x->gpu != y->gpu) {
        return x->gpu < y->gpu ? -1 : 1;
    }
    return (x->number > y->number) - (x->number < y->number);
}

static bool has_number(const struct hvd_gpu_list *list, int number)
{
    for (int i = 0; i < list->count; i++) {
        if (list->items[i].number == number) {
            return true;
        }
    }
    return false;
}

static bool append_numbers(const struct hvd_topology *topology, struct hvd_gpu_list *list,
                           const struct entry *entry)
{
    for (int number = entry->first; number <= entry->last; number++) {
        if (!has_number(list, number) &&
            !append_gpu(list, number, find_device(topology, number))) {
            return false;
        }
    }
    return true;
}

static int too_many(struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "more than %d gpus on one node are not supported", HVD_GPU_LIST_SIZE);
}

int hvd_gpu_list_parse(const struct hvd_topology *topology, const char *text,
                       struct hvd_gpu_list *list, struct hvd_error *err)
{
    struct hvd_gpu_list found = {0};
    struct entry entry;

    while (next_entry(&text, &entry)) {
        if (!entry.is_number && !is_uuid(&entry)) {
            return hvd_fail(
                err, HVD_ERR_ARG,
                "'%.*s' is not a gpu: expected numbers such as 0-1,3 or UUIDs "
                "such as GPU-8932f937-...",
                entry.length > 100 ? 100 : (int)entry.length, entry.text);
        }
        if (entry.is_number ? !append_numbers(topology, &found, &entry)
                            : !append_uuid(topology, &found, &entry)) {
            return too_many(err);
        }
    }
    qsort(found.items, (size_t)found.count, sizeof(found.items[0]), compare_items);
    *list = found;
    return 0;
}

/* True when every number in text is a number of the step's GPUs. */
static bool counts_on_node(const char *text, const struct hvd_gpu_list *step)
{
    struct entry entry;

    while (next_entry(&text, &entry)) {
        if (entry.is_number && !has_number(step, entry.first)) {
            return false;
        }
    }
    return true;
}

/* Returns the GPU that CUDA shows under a number: an index into `shown`, or a number of
 * the node. */
static const struct hvd_gpu_item *visible_item(const struct hvd_gpu_list *shown,
                                               int number, bool is_node_number)
{
    for (int i = 0; i < shown->count; i++) {
        if (is_node_number ? shown->items[i].number == number : i == number) {
            return &shown->items[i];
        }
    }
    return NULL;
}

/* Appends an entry of CUDA_VISIBLE_DEVICES. Returns false where CUDA stops reading: at an
 * invalid entry, and at a UUID that the driver does not list. If the driver lists no
 * UUIDs, any UUID is accepted. */
static bool append_visible(const struct hvd_topology *topology, const struct entry *entry,
                           const struct hvd_gpu_item *item, struct hvd_gpu_list *list)
{
    if (entry->is_number) {
        return item != NULL && append_gpu(list, item->number, item->gpu);
    }
    if (!is_uuid(entry)) {
        return false;
    }
    bool has_uuids = topology->gpu_count > 0 && topology->gpus[0].uuid[0] != '\0';
    if (has_uuids && starts_with(entry, "GPU-") &&
        find_uuid(topology, entry) == HVD_NONE) {
        return false;
    }
    return append_uuid(topology, list, entry);
}

int hvd_gpu_list_visible(const struct hvd_topology *topology, const char *text,
                         const struct hvd_gpu_list *step, struct hvd_gpu_list *list,
                         struct hvd_error *err)
{
    bool is_node_number = step != NULL && counts_on_node(text, step);
    bool is_trusted = step == NULL && topology->gpu_count == 0;
    struct hvd_gpu_list found = {0};
    struct hvd_gpu_list all;
    struct entry entry;

    hvd_gpu_list_all(topology, &all);
    while (next_entry(&text, &entry)) {
        struct hvd_gpu_item itself = {entry.first, HVD_NONE};
        const struct hvd_gpu_item *item =
            is_trusted
                ? &itself
                : visible_item(step != NULL ? step : &all, entry.first, is_node_number);

        if (found.count == HVD_GPU_LIST_SIZE) {
            return too_many(err);
        }
        if (!append_visible(topology, &entry, item, &found)) {
            break;
        }
    }
    *list = found;
    return 0;
}
