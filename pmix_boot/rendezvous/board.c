/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/board.h"

#include <string.h>

int hvd_board_post(struct hvd_board *board, uint32_t subject, const void *value,
                   size_t bytes)
{
    struct hvd_board_note *note;

    if (subject >= HVD_BOARD_SUBJECTS || bytes > HVD_BOARD_NOTE_BYTES) {
        return HVD_ERR_ARG;
    }
    note = &board->notes[subject];
    if (bytes > 0) {
        memcpy(note->value, value, bytes);
    }
    note->bytes = bytes;
    note->is_posted = true;
    return 0;
}

const struct hvd_board_note *hvd_board_find(const struct hvd_board *board,
                                            uint32_t subject)
{
    return subject < HVD_BOARD_SUBJECTS && board->notes[subject].is_posted
               ? &board->notes[subject]
               : NULL;
}
