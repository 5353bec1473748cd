/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of a job are posted, found and replaced; those that do not fit are rejected. */
#include "pmix_boot/rendezvous/board.h"

#include <string.h>

#include "tests/tap.h"

static bool says(const struct hvd_board *board, const char *text)
{
    const struct hvd_board_note *note = hvd_board_find(board, HVD_BOARD_MASTER);

    return note != NULL && note->bytes == strlen(text) &&
           memcmp(note->value, text, note->bytes) == 0;
}

int main(void)
{
    struct hvd_board board = {0};
    char most[HVD_BOARD_NOTE_BYTES + 1] = "much";

    tap_ok(hvd_board_find(&board, HVD_BOARD_MASTER) == NULL,
           "an empty board has no note");
    tap_ok(hvd_board_post(&board, HVD_BOARD_MASTER, "10.0.0.1 4711", 13) == 0 &&
               says(&board, "10.0.0.1 4711"),
           "a note is found");
    tap_ok(hvd_board_post(&board, HVD_BOARD_MASTER, "", 0) == 0 && says(&board, ""),
           "a later note replaces it, even an empty one");
    tap_ok(hvd_board_post(&board, HVD_BOARD_MASTER, most, sizeof(most)) == HVD_ERR_ARG &&
               says(&board, ""),
           "a note that is too long is rejected");
    tap_ok(hvd_board_post(&board, HVD_BOARD_MASTER, most, sizeof(most) - 1) == 0,
           "a note of the largest size fits");
    tap_ok(hvd_board_post(&board, HVD_BOARD_SUBJECTS, "x", 1) == HVD_ERR_ARG &&
               hvd_board_find(&board, HVD_BOARD_SUBJECTS) == NULL &&
               hvd_board_find(&board, UINT32_MAX) == NULL,
           "unknown subjects are rejected");
    return tap_done();
}
