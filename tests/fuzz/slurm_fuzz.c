/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from Slurm that the plugin reads: numbers, counts per node, lists of cores and of
 * GPUs. The first byte chooses. */
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/cpulist.h"
#include "gpu_binding/gpu_list.h"
#include "spank/slurm_numbers.h"
#include "tests/fuzz/fuzz.h"

static void read_counts(const char *text)
{
    const char *cursor = text;
    struct hvd_spank_count_run run;

    while (hvd_spank_count_next(&cursor, &run)) {
        if (run.value < 0 || run.nodes < 0) {
            fuzz_fail("counts are not negative");
        }
    }
    if (hvd_spank_count_least(text) < 0) {
        fuzz_fail("the least count is not negative");
    }
}

static void read_cpus(const char *text)
{
    struct hvd_cpuset set, again;
    struct hvd_error err = {0};
    char written[65536];

    if (hvd_cpulist_parse(text, &set, &err) != 0) {
        return;
    }
    if (hvd_cpulist_format(&set, written, sizeof(written)) >= sizeof(written) ||
        hvd_cpulist_parse(written, &again, &err) != 0 ||
        memcmp(&set, &again, sizeof(set)) != 0) {
        fuzz_fail("a list of CPUs that was written can be read again");
    }
}

static void read_gpus(const char *text)
{
    struct hvd_gpu gpus[4] = {{.bus = "0000:18:00.0", .uuid = "GPU-1a2b"},
                              {.bus = "0000:3b:00.0", .device_minor = 1},
                              {.bus = "0000:86:00.0", .device_minor = 2},
                              {.bus = "0000:af:00.0", .device_minor = 3}};
    struct hvd_topology topology = {.gpu_count = 4, .gpus = gpus};
    struct hvd_gpu_list list = {0}, step = {0};
    struct hvd_error err = {0};

    if (hvd_gpu_list_parse(&topology, text, &step, &err) == 0) {
        (void)hvd_gpu_list_visible(&topology, text, &step, &list, &err);
    }
    (void)hvd_gpu_list_visible(&topology, text, NULL, &list, &err);
    if (list.count < 0 || list.count > HVD_GPU_LIST_SIZE) {
        fuzz_fail("a list of GPUs is not too long");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t which = fuzz_byte(&input);
    char *text = fuzz_text(&input, size);

    switch (which % 4) {
    case 0:
        read_counts(text);
        break;
    case 1:
        read_cpus(text);
        break;
    case 2:
        read_gpus(text);
        break;
    default:
        if (hvd_spank_number_of(text) < 0 || hvd_spank_gres_count(text) < 0) {
            fuzz_fail("numbers are not negative");
        }
        break;
    }
    free(text);
    return 0;
}
