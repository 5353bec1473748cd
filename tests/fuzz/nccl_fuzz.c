/* SPDX-License-Identifier: Apache-2.0 */
/* Files of NCCL, as hvd-info --nccl reads them: the first line is the name of a file, the
 * others are its lines. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/info/nccl/report.h"
#include "tests/fuzz/fuzz.h"

static void check_name(const char *name)
{
    struct hvd_info_nccl_file file;

    if (hvd_info_nccl_file_parse(name, &file) &&
        (file.rank < -1 || file.pid < 0 || file.host[0] == '\0' ||
         strnlen(file.host, sizeof(file.host)) == sizeof(file.host))) {
        fuzz_fail("a file has a rank, a node and a process");
    }
}

static void add(struct hvd_info_nccl_kinds *kinds, int file, const char *line)
{
    if (hvd_info_nccl_kinds_add(kinds, file, line, NULL) != 0) {
        fuzz_fail("only a lack of memory is an error");
    }
}

/* Changes all digits but 0, which begins hexadecimal numbers. */
static void change_digits(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text >= '1' && *text <= '9') {
            *text = (char)('1' + '9' - *text);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hvd_info_nccl_file files[] = {{0, 1, "n1"}, {1, 2, "n2"}};
    struct fuzz_input input = {data, size};
    struct hvd_info_nccl_report report = {"/x", files, 2, {0}};
    struct hvd_info_nccl_kinds *kinds = &report.kinds;
    char *line = fuzz_line(&input);
    FILE *out = fuzz_nowhere();

    if (line != NULL) {
        check_name(line);
        free(line);
    }
    while ((line = fuzz_line(&input)) != NULL) {
        add(kinds, 0, line);
        const int count = kinds->count;

        change_digits(line);
        add(kinds, 0, line);
        if (kinds->count != count) {
            fprintf(stderr, "%s\n", line);
            fuzz_fail("warnings that differ only in digits are of one kind");
        }
        free(line);
    }
    hvd_info_nccl_kinds_sort(kinds);
    for (int i = 0; i < kinds->count; i++) {
        if (strpbrk(kinds->items[i].folded, "0123456789") != NULL) {
            fuzz_fail("no digit is left");
        }
        for (const char *at = kinds->items[i].text; *at != '\0'; at++) {
            if (iscntrl((unsigned char)*at)) {
                fuzz_fail("no control character is left");
            }
        }
    }
    if (hvd_info_nccl_print(&report, out, NULL) != 0 ||
        hvd_info_nccl_json(&report, out, NULL) != 0) {
        fuzz_fail("what was read can be printed");
    }
    hvd_info_nccl_kinds_finish(kinds);
    return 0;
}
