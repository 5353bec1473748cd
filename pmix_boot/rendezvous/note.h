/* SPDX-License-Identifier: Apache-2.0 */
/* The task of a rank leaves a small value for the other tasks of its job at the
 * rendezvous service, or waits for one (board.h). Both tell the service on which host the
 * rank is, for its errors.
 *
 * Threads: one per call. */
#ifndef HVD_RENDEZVOUS_NOTE_H
#define HVD_RENDEZVOUS_NOTE_H

#include "gpu_binding/base/error.h"
#include "pmix_boot/rendezvous/board.h"

/* Posts a note; returns once the service has it. HVD_ERR_ARG: a bad address, or the text
 * is too long; HVD_ERR_NET: the service cannot be reached. */
int hvd_rendezvous_note_post(const char *address, enum hvd_board_subject subject,
                             int rank, const char *text, int timeout_ms,
                             struct hvd_error *err);

/* Waits until a process has posted the note. Fails like post, or with HVD_ERR_TIMEOUT. */
int hvd_rendezvous_note_ask(const char *address, enum hvd_board_subject subject, int rank,
                            int timeout_ms, char text[HVD_BOARD_NOTE_BYTES + 1],
                            struct hvd_error *err);

#endif
