/* SPDX-License-Identifier: Apache-2.0 */
/* The data in the page of the straggler report. */
#include "collectives/trace/straggler_page.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_waits.h"
#include "tests/collectives/trace/json_check.h"
#include "tests/tap.h"

static const char *const hosts[] = {"n1", "</script>"};
static const struct hvd_straggler_job job = {.hosts = hosts, .elapsed_us = 1000};

/* Makes the page of a job of two ranks, of which rank 1 is late. */
static char *make_page(const char *frame)
{
    struct hvd_straggler_waits *waits[2];
    const void *payload;
    size_t bytes;
    char *text = NULL;
    FILE *out;

    for (int rank = 0; rank < 2; rank++) {
        const struct hvd_straggler_batch batch = {
            .kind = HVD_KIND_ALLREDUCE,
            .tensors = 2,
            .bytes = 4,
            .name = "<!--\"gradient",
            .submitted_ns = 5000 + 400000 * (int64_t)rank,
            .started_ns = 405000,
            .ended_ns = 420000,
        };

        hvd_straggler_waits_create(rank, 2, 1 - rank, &waits[rank], NULL);
        hvd_straggler_waits_keep(waits[rank], 0, NULL);
        hvd_straggler_waits_note(waits[rank], &batch);
        hvd_straggler_waits_close(waits[rank]);
    }
    while (hvd_straggler_waits_take(waits[1], &payload, &bytes)) {
        hvd_straggler_waits_merge(waits[0], payload, bytes);
    }
    out = open_memstream(&text, &bytes);
    hvd_straggler_page_print(frame, hvd_straggler_waits_sums(waits[0]), &job, out);
    fclose(out);
    hvd_straggler_waits_destroy(waits[0]);
    hvd_straggler_waits_destroy(waits[1]);
    return text;
}

static void test_data(void)
{
    char *page = make_page("<head>@DATA@</head>");
    size_t length = strlen(page);
    char *data;

    tap_ok(strncmp(page, "<head>{", 7) == 0 && strcmp(page + length - 7, "</head>") == 0,
           "the data are in their place in the frame");
    tap_ok(strchr(page + 6, '<') == page + length - 7,
           "names of hosts and tensors cannot end the script element");
    data = strndup(page + 6, length - 13);
    tap_ok(json_is_good(data, strlen(data)), "the data are JSON");
    tap_ok(strstr(data, "\"late_rank\": 1") != NULL &&
               strstr(data, "\"unit\": \"batch\", \"width\": 1, \"count\": 1") != NULL &&
               strstr(data, "\"ended_us\": [420]") != NULL &&
               strstr(data, "\"moving_us\": [15]") != NULL &&
               strstr(data, "\"waited_us\": [200]") != NULL,
           "they have the late rank and the parts of each step");
    /* 400 us: 2^8 + 1/8 of it 4 times, so 8 * 8 + 4 = 68 = 'D'; base64 of 0, 68 */
    tap_ok(strstr(data, "\"late\": \"AEQ=\"") != NULL &&
               strstr(data, "\"waited\": \"RAA=\"") != NULL,
           "and the times of all cells");
    free(data);
    free(page);
}

/* Decodes as the page does. */
static double decoded(unsigned char code)
{
    double value = 8.5 + code % 8;

    for (int i = 0; i < code / 8; i++) {
        value *= 2;
    }
    return code == 0 ? 0 : value / 8 - 1;
}

static void test_codes(void)
{
    bool is_close = true, is_rising = true;

    for (uint32_t us = 1; us < UINT32_MAX / 3 * 2; us += us / 7 + 1) {
        double found = decoded(hvd_straggler_page_code(us)) + 1;
        double wanted = (double)us + 1;

        is_close = is_close && found > wanted * 0.9 && found < wanted * 1.1;
        is_rising =
            is_rising && hvd_straggler_page_code(us + 1) >= hvd_straggler_page_code(us);
    }
    tap_ok(is_close, "times in bytes are right to a tenth");
    tap_ok(is_rising && hvd_straggler_page_code(0) == 0 &&
               hvd_straggler_page_code(UINT32_MAX) == UINT8_MAX,
           "and in the right order, from 0 to the longest time");
}

int main(void)
{
    test_data();
    test_codes();
    return tap_done();
}
