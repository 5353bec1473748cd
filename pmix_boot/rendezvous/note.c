/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/note.h"

#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/message.h"

/* Asks the service, which answers both questions with the note. text may be NULL. */
static int call(const char *address, const struct hvd_channel_message *question,
                int timeout_ms, char *text, struct hvd_error *err)
{
    const int64_t deadline_ms = hvd_clock_ms() + timeout_ms;
    struct hvd_rendezvous_call *line = NULL;
    struct hvd_channel_message answer;
    int status = hvd_rendezvous_call_begin(address, timeout_ms, &line, err);
    size_t bytes;

    if (status == 0) {
        const int64_t left_ms = deadline_ms - hvd_clock_ms();

        status = hvd_rendezvous_call_ask(line, question, left_ms > 0 ? (int)left_ms : 0,
                                         &answer, err);
    }
    if (status == 0 &&
        (answer.type != HVD_RENDEZVOUS_NOTE ||
         answer.bytes < sizeof(struct hvd_rendezvous_note) ||
         answer.bytes - sizeof(struct hvd_rendezvous_note) > HVD_BOARD_NOTE_BYTES)) {
        status = hvd_fail(err, HVD_ERR_NET,
                          "the rendezvous service answers a question with message %u of "
                          "%zu bytes: does it run the same version of hvd?",
                          (unsigned)answer.type, answer.bytes);
    }
    if (status == 0 && text != NULL) {
        bytes = answer.bytes - sizeof(struct hvd_rendezvous_note);
        memcpy(text, (const char *)answer.data + sizeof(struct hvd_rendezvous_note),
               bytes);
        text[bytes] = '\0';
    }
    hvd_rendezvous_call_end(line);
    return status;
}

static struct hvd_rendezvous_note make_head(enum hvd_board_subject subject, int rank)
{
    struct hvd_rendezvous_note head = {.subject = (uint32_t)subject, .rank = rank};

    gethostname(head.host, sizeof(head.host) - 1);
    return head;
}

int hvd_rendezvous_note_post(const char *address, enum hvd_board_subject subject,
                             int rank, const char *text, int timeout_ms,
                             struct hvd_error *err)
{
    const struct hvd_rendezvous_note head = make_head(subject, rank);
    char data[sizeof(head) + HVD_BOARD_NOTE_BYTES];
    const size_t length = strlen(text);
    struct hvd_channel_message question = {HVD_RENDEZVOUS_POST, data,
                                           sizeof(head) + length};

    if (length > HVD_BOARD_NOTE_BYTES) {
        return hvd_fail(err, HVD_ERR_ARG, "a note of %zu bytes: at most %d", length,
                        HVD_BOARD_NOTE_BYTES);
    }
    memcpy(data, &head, sizeof(head));
    memcpy(data + sizeof(head), text, length);
    return call(address, &question, timeout_ms, NULL, err);
}

int hvd_rendezvous_note_ask(const char *address, enum hvd_board_subject subject, int rank,
                            int timeout_ms, char text[HVD_BOARD_NOTE_BYTES + 1],
                            struct hvd_error *err)
{
    const struct hvd_rendezvous_note head = make_head(subject, rank);
    struct hvd_channel_message question = {HVD_RENDEZVOUS_ASK, &head, sizeof(head)};
    int status = call(address, &question, timeout_ms, text, err);

    if (status == HVD_ERR_TIMEOUT) {
        return hvd_fail(err, status, "rank 0 has not told its address within %d s",
                        timeout_ms / 1000);
    }
    return status;
}
