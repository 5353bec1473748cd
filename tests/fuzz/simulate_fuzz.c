/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `hvd-bench --simulate`, sizes, or the command line of hvd-bench: the first
 * byte chooses. */
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/algorithm_table.h"
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/sizes.h"
#include "contrib/bench/simulate/machine.h"
#include "tests/fuzz/fuzz.h"

enum {
    MOST_ARGUMENTS = 16
};

static void parse_machine(const char *text)
{
    struct simulate_options options = simulate_defaults();
    struct hvd_error err = {0};

    if (simulate_parse(text, &options, &err) == 0) {
        if (options.machine.nodes < 1 || options.machine.gpus < 1 ||
            !(options.machine.link > 0)) {
            fuzz_fail("a machine has nodes, GPUs and a network");
        }
    } else if (err.text[0] == '\0') {
        fuzz_fail("a text that is refused has a message");
    }
}

static void parse_sizes(const char *text)
{
    struct bench_sizes sizes = {0};
    struct hvd_error err = {0};
    char written[32];

    if (bench_sizes_parse(text, &sizes, &err) != 0) {
        return;
    }
    for (int i = 0; i < sizes.count; i++) {
        int64_t again = 0;

        if (sizes.bytes[i] < 1 ||
            bench_size_parse(
                hvd_algorithm_size_write(sizes.bytes[i], written, sizeof(written)),
                &again, &err) != 0 ||
            again != sizes.bytes[i]) {
            fuzz_fail("a size that was written can be read again");
        }
    }
}

static void parse_command(struct fuzz_input *input)
{
    char *arguments[MOST_ARGUMENTS + 2] = {"hvd-bench"};
    char *kept[MOST_ARGUMENTS + 2];
    struct bench_options options;
    struct hvd_error err = {0};
    int count = 1;

    while (count <= MOST_ARGUMENTS && (arguments[count] = fuzz_line(input)) != NULL) {
        count++;
    }
    arguments[count] = NULL;
    memcpy(kept, arguments, sizeof(kept));
    if (bench_options_parse(count, arguments, &options, &err) != 0 &&
        err.text[0] == '\0') {
        fuzz_fail("a command line that is refused has a message");
    }
    for (int i = 1; i < count; i++) {
        free(kept[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t which = fuzz_byte(&input) % 3;
    char *text;

    if (which == 2) {
        parse_command(&input);
        return 0;
    }
    text = fuzz_text(&input, size);
    if (which == 0) {
        parse_machine(text);
    } else {
        parse_sizes(text);
    }
    free(text);
    return 0;
}
