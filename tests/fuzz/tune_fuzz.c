/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of algorithms. */
#include <stdlib.h>

#include "collectives/schedule/algorithm_table.h"
#include "tests/fuzz/fuzz.h"

/* Checks that a table that is written and read again is the same. */
static void write_again(const struct hvd_algorithm_table *table)
{
    struct hvd_algorithm_table *again = NULL;
    struct hvd_error err = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        abort();
    }
    for (int i = 0; i < table->count; i++) {
        hvd_algorithm_section_write(&table->sections[i], out);
    }
    fclose(out);
    if (hvd_algorithm_table_parse("again", text, &again, &err) != 0) {
        fprintf(stderr, "%s\n%s\n", err.text, text);
        fuzz_fail("a table that was written can be read");
    }
    if (hvd_algorithm_table_digest(table) != hvd_algorithm_table_digest(again)) {
        fprintf(stderr, "%s\n", text);
        fuzz_fail("a table that was written and read again chooses the same algorithms");
    }
    hvd_algorithm_table_destroy(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char *text = fuzz_text(&input, size);
    struct hvd_algorithm_table *table = NULL;
    struct hvd_algorithm_choices choices;
    struct hvd_error err = {0};

    if (hvd_algorithm_table_parse("fuzz.table", text, &table, &err) == 0) {
        hvd_algorithm_table_choose(table, (struct hvd_job_shape){.nodes = 2, .ranks = 4},
                                   &choices);
        write_again(table);
        hvd_algorithm_table_destroy(table);
    } else if (err.text[0] == '\0') {
        fuzz_fail("a table that is refused has a message");
    }
    free(text);
    return 0;
}
