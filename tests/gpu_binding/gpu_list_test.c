/* SPDX-License-Identifier: Apache-2.0 */
/* Tests gpu_list.h: numbers, UUIDs and CUDA_VISIBLE_DEVICES. */
#include "gpu_binding/gpu_list.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/nvidia_proc.h"
#include "tests/gpu_binding/fake_node.h"
#include "tests/tap.h"

static struct hvd_gpu gpus[4];
static const struct hvd_topology node = {.gpu_count = 4, .gpus = gpus};
static const struct hvd_topology bare_node = {.gpu_count = 0};

/* Sets up four GPUs. Their minor numbers run against the order of bus ids, as on some
 * nodes. */
static void set_up(bool has_driver)
{
    static const char *const uuids[] = {"GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"};

    for (int i = 0; i < 4; i++) {
        gpus[i] = (struct hvd_gpu){.device_minor = has_driver ? 3 - i : HVD_NONE};
        snprintf(gpus[i].bus, sizeof(gpus[i].bus), "0000:%d0:00.0", i + 1);
        if (has_driver) {
            snprintf(gpus[i].uuid, sizeof(gpus[i].uuid), "%s", uuids[i]);
        }
    }
}

/* Returns the GPUs as "number/gpu number/gpu ...", where gpu is the index in gpus[], or
 * "-" for HVD_NONE. */
static const char *show(const struct hvd_gpu_list *list)
{
    static char text[512];

    text[0] = '\0';
    for (int i = 0; i < list->count; i++) {
        char item[32];

        snprintf(item, sizeof(item),
                 list->items[i].gpu == HVD_NONE ? "%s%d/-" : "%s%d/%d", i > 0 ? " " : "",
                 list->items[i].number, list->items[i].gpu);
        strcat(text, item);
    }
    return text;
}

static void parses(const struct hvd_topology *topology, const char *text,
                   const char *expected, const char *promise)
{
    struct hvd_gpu_list list = {0};
    int status = hvd_gpu_list_parse(topology, text, &list, NULL);

    if (!tap_ok(status == 0 && strcmp(show(&list), expected) == 0, "%s", promise)) {
        tap_note("'%s' gave %d, '%s', not '%s'", text, status, show(&list), expected);
    }
}

static void sees(const struct hvd_topology *topology, const char *visible,
                 const char *step_text, const char *expected, const char *promise)
{
    struct hvd_gpu_list list = {0};
    struct hvd_gpu_list step;

    if (step_text != NULL) {
        hvd_gpu_list_parse(topology, step_text, &step, NULL);
    }
    int status = hvd_gpu_list_visible(topology, visible, step_text != NULL ? &step : NULL,
                                      &list, NULL);
    if (!tap_ok(status == 0 && strcmp(show(&list), expected) == 0, "%s", promise)) {
        tap_note("'%s' of '%s' gave %d, '%s', not '%s'", visible,
                 step_text != NULL ? step_text : "-", status, show(&list), expected);
    }
}

static void test_numbers(void)
{
    set_up(false);
    parses(&node, "0-1,3", "0/0 1/1 3/3", "numbers_are_bus_order_without_a_driver");
    parses(&node, "3,0,1", "0/0 1/1 3/3", "order_of_numbers_does_not_matter");
    parses(&node, "1,1,1-1", "1/1", "a_number_counts_once");
    parses(&node, "2,7", "2/2 7/-", "number_beyond_the_node_has_no_gpu");
    parses(&bare_node, "0-3", "0/- 1/- 2/- 3/-", "gpus_that_only_slurm_knows_are_kept");
    set_up(true);
    parses(&node, "0,3", "3/0 0/3", "numbers_are_device_minors_with_a_driver");
    gpus[3].device_minor = HVD_NONE;
    parses(&node, "0", "0/-", "number_that_the_driver_lacks_has_no_gpu");
}

static void test_uuids(void)
{
    set_up(true);
    parses(&node, "GPU-cc44,GPU-aa11", "3/0 0/3", "uuids_are_found");
    parses(&node, "GPU-bb", "1/2", "uuid_may_be_short");
    parses(&node, "GPU-aa", "0/-", "ambiguous_uuid_has_no_gpu");
    parses(&node, "MIG-GPU-bb33/1/0,MIG-GPU-bb33/2/0", "1/2 1/2",
           "slices_of_one_gpu_share_it");
    parses(&node, "MIG-0a0a,MIG-0b0b", "0/- 1/-", "slices_without_parent_are_counted");
}

static void refuses(const char *text)
{
    struct hvd_gpu_list list = {.count = 9};
    struct hvd_error err = {0};

    tap_ok(hvd_gpu_list_parse(&node, text, &list, &err) < 0 && list.count == 9 &&
               err.text[0] != '\0',
           "'%.20s' is refused with a reason", text);
}

static void test_garbage(void)
{
    refuses("");
    refuses("a");
    refuses("1,");
    refuses("-1");
    refuses("3-1");
    refuses("1 2");
    refuses("99999999999");
    refuses("GPU-");
    refuses("0-64");
    refuses("0-99999");
}

static void test_visible(void)
{
    set_up(false);
    sees(&node, "2,0", NULL, "2/2 0/0", "cuda_order_is_kept");
    sees(&node, "0,1,-1,2", NULL, "0/0 1/1", "list_ends_at_minus_one");
    sees(&node, "0,9,1", NULL, "0/0", "list_ends_at_a_number_without_gpu");
    sees(&node, "NoDevFiles", NULL, "", "slurm_s_word_for_no_gpus_gives_no_gpus");
    sees(&node, "", NULL, "", "empty_list_gives_no_gpus");
    sees(&node, "0,1", "2-3", "2/2 3/3",
         "numbers_beyond_the_step_s_are_indices_into_the_step");
    sees(&node, "3,2", "2-3", "3/3 2/2",
         "numbers_of_the_step_s_gpus_are_numbers_of_the_node");
    sees(&node, "0,1,2", "2-3", "2/2 3/3", "list_ends_at_the_end_of_the_step");
    sees(&bare_node, "0,1", NULL, "0/- 1/-", "gpus_without_pci_are_counted");
    sees(&bare_node, "1,0", "4-5", "5/- 4/-",
         "gpus_without_pci_are_numbered_by_the_step");
    sees(&node, "GPU-1234,GPU-5678", NULL, "0/- 1/-",
         "uuids_are_accepted_without_a_driver");
    set_up(true);
    sees(&node, "GPU-cc44,GPU-9999,GPU-aa11", NULL, "0/3", "list_ends_at_unknown_uuid");
    sees(&node, "1,0", NULL, "2/1 3/0", "cuda_counts_by_bus_not_by_minor");
}

static void test_counted(void)
{
    struct hvd_gpu_list list;

    set_up(false);
    hvd_gpu_list_counted(&node, 4, &list);
    tap_ok(strcmp(show(&list), "0/0 1/1 2/2 3/3") == 0, "count_of_all_gpus_lists_all");
    hvd_gpu_list_counted(&node, 2, &list);
    tap_ok(strcmp(show(&list), "0/- 1/-") == 0, "count_of_some_gpus_leaves_open_which");
}

static void test_driver_files(void)
{
    char dir[64];
    struct hvd_topology copy = node;
    static const char second[] =
        "Model: \t\t Tesla V100-SXM2-32GB\nIRQ:   \t\t 47\n"
        "GPU UUID: \t GPU-7c3f9c1e-0000-1111-2222-333344445555\nDevice Minor: \t 1\n";

    set_up(false);
    fake_node_create("c\n", "0-3\n", dir);
    fake_node_write(dir, "gpus/0000:20:00.0/information", second);
    fake_node_write(dir, "gpus/0000:21:00.0/information", "Device Minor: \t 7\n");
    strcat(dir, "/gpus");
    hvd_nvidia_proc_read(dir, &copy);
    *strrchr(dir, '/') = '\0';
    fake_node_destroy(dir);
    tap_ok(gpus[1].device_minor == 1 &&
               strcmp(gpus[1].uuid, "GPU-7c3f9c1e-0000-1111-2222-333344445555") == 0,
           "uuid_and_minor_come_from_the_driver");
    tap_ok(strcmp(gpus[1].model, "V100") == 0, "model_comes_from_the_driver");
    tap_ok(gpus[0].device_minor == HVD_NONE && gpus[2].device_minor == HVD_NONE,
           "gpus_that_the_driver_does_not_list_have_no_minor");
    hvd_nvidia_proc_read("/nonexistent", &copy);
    tap_ok(gpus[1].device_minor == 1, "missing_driver_is_no_failure");
}

int main(void)
{
    test_numbers();
    test_uuids();
    test_garbage();
    test_visible();
    test_counted();
    test_driver_files();
    return tap_done();
}
