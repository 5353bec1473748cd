/* SPDX-License-Identifier: Apache-2.0 */
/* Small values that the processes of a job leave for each other at the rendezvous
 * service. Pure. */
#ifndef HVD_BOARD_H
#define HVD_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

enum {
    HVD_BOARD_NOTE_BYTES = 128 /* the longest value */
};

/* The subject of a note. */
enum hvd_board_subject {
    /* the address at which rank 0 serves torch's store: "ADDRESS PORT" */
    HVD_BOARD_MASTER,
    HVD_BOARD_SUBJECTS,
};

struct hvd_board_note {
    bool is_posted;
    size_t bytes;
    char value[HVD_BOARD_NOTE_BYTES];
};

/* A zero-initialised board has no notes. */
struct hvd_board {
    struct hvd_board_note notes[HVD_BOARD_SUBJECTS];
};

/* Posts a value, replacing an earlier one. HVD_ERR_ARG: no such subject, or the value is
 * too long. */
int hvd_board_post(struct hvd_board *board, uint32_t subject, const void *value,
                   size_t bytes);

/* Finds a note; NULL if there is none yet. The note is borrowed. */
const struct hvd_board_note *hvd_board_find(const struct hvd_board *board,
                                            uint32_t subject);

#endif
