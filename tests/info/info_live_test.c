/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that hvd-info, which root may run, survives answers that the user of a job has
 * made up. */
#include "contrib/info/live/live.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/info/live/report.h"
#include "tests/tap.h"

/* Reads one line and prints it, as a report or as a line. Returns the text; the caller
 * frees it. */
static char *print_line(const char *line, bool is_raw)
{
    struct hvd_info_ranks ranks = {0};
    struct hvd_info_rank rank;
    struct hvd_error err = {0};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (hvd_info_live_parse(line, &rank)) {
        hvd_info_live_add(&ranks, &rank, &err);
    }
    if (!is_raw) {
        hvd_info_live_print(&ranks, false, out, &err);
    } else if (ranks.count > 0) {
        hvd_info_live_write(ranks.all, out);
    }
    free(ranks.all);
    fclose(out);
    return text;
}

/* expected: NULL if nothing may be printed */
static bool prints(const char *line, bool is_raw, const char *expected)
{
    char *text = print_line(line, is_raw);
    const bool is_there =
        expected != NULL ? strstr(text, expected) != NULL : text[0] == '\0';

    if (!is_there) {
        tap_note("printed: %.2000s", text);
    }
    free(text);
    return is_there;
}

static void test_numbers(void)
{
    tap_ok(prints("hvd-rank 7 0 a1 1 2 5 S 1 0 3 0 1 0.1 0 0 0\tn1\t\n", false,
                  "1 of 2 ranks"),
           "rank_is_printed");
    tap_ok(
        prints("hvd-rank 7 0 a1 100000 2 5 S 1 0 3 0 1 0.1 0 0 0\tn1\t\n", false, NULL),
        "rank_beyond_the_size_is_passed_over");
    tap_ok(prints("hvd-rank 7 0 a1 -1 2 5 S 1 0 3 0 1 0.1 0 0 0\tn1\t\n", false, NULL) &&
               prints("hvd-rank 7 0 a1 0 0 5 S 1 0 3 0 1 0.1 0 0 0\tn1\t\n", false, NULL),
           "negative_rank_and_empty_job_are_passed_over");
    tap_ok(prints("hvd-rank 7 0 a1 0 2147483647 5 S 1 0 3 0 1 0.1 0 0 0\tn1\t\n", false,
                  NULL),
           "job_of_more_ranks_than_any_has_is_passed_over");
    tap_ok(prints("hvd-rank 7 0 a1 0 1 5 \" 1 0 3 0 1 0.1 0 0 0\tn1\t\n", false, NULL),
           "state_that_is_no_letter_is_passed_over");
}

static void test_texts(void)
{
    static const char line[] =
        "hvd-rank 7 0 a1 0 1 5 S 1 0 3 1 1 0.1 0 0 1\tn\0331\t0 2.5\t"
        "allreduce '\033]0;\a\x7f\xc2\x9b\xc3\xa4'\tf:\033[1m\vg\n";

    tap_ok(prints(line, false, "  n?1 "), "host_does_not_control_the_terminal");
    tap_ok(prints(line, false, "allreduce '?]0;????\xc3\xa4'"),
           "tensor_does_not_control_the_terminal_but_keeps_its_letters");
    tap_ok(prints(line, true, "\tf:?[1m\vg\n"),
           "stack_does_not_control_the_terminal_but_keeps_its_lines");
}

int main(void)
{
    test_numbers();
    test_texts();
    return tap_done();
}
