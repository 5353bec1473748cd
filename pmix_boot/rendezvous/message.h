/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between ranks and the rendezvous service. Both come from the same
 * release, so structs are sent as they are. */
#ifndef HVD_RENDEZVOUS_MESSAGE_H
#define HVD_RENDEZVOUS_MESSAGE_H

#include <stdint.h>

enum hvd_rendezvous_message {
    /* from a rank: I am ready to begin, struct hvd_rendezvous_join; the answer is FORMED
     * or REFUSED */
    HVD_RENDEZVOUS_JOIN = 1,
    HVD_RENDEZVOUS_READY, /* from a rank: I have the state of the training; no data */
    HVD_RENDEZVOUS_FORMED, /* to a rank: begin, struct hvd_rendezvous_formed */
    HVD_RENDEZVOUS_REFUSED, /* to a rank: struct hvd_rendezvous_refused, then the reason */
    HVD_RENDEZVOUS_LOST, /* to a rank: an int32_t, a rank of its generation is gone */
    HVD_RENDEZVOUS_UPDATED, /* to a rank: a uint32_t, changes of enum hvd_roster_change */
    HVD_RENDEZVOUS_POST, /* a value for all, struct hvd_rendezvous_note and the value */
    HVD_RENDEZVOUS_ASK, /* for such a value, struct hvd_rendezvous_note */
    HVD_RENDEZVOUS_NOTE, /* the answer to both, as soon as there is one, as POST */
    HVD_RENDEZVOUS_DONE, /* from a rank of an elastic job: it ends with success; no data */
};

struct hvd_rendezvous_note {
    uint32_t subject; /* of enum hvd_board_subject */
};

/* All that is needed to kill a rank. */
struct hvd_rendezvous_process {
    int32_t pid;
    uint32_t job; /* SLURM_JOB_ID; 0: not in a Slurm job */
    uint64_t started; /* see process_start.h; 0: unknown */
    char node
        [64]; /* Slurm's name of it, which may differ from the host's; ended by a NUL */
};

/* Then the list of ranks, int32_t [listed], the host's name and the card. */
struct hvd_rendezvous_join {
    uint64_t card_bytes;
    uint32_t host_bytes; /* without a final NUL */
    int32_t slot; /* the number that the launcher gave this process */
    int32_t count; /* of the ranks that begin together; 0: the job is elastic */
    int32_t listed; /* count, or 0: all of the launch begin together */
    int32_t index; /* among those that begin together */
    int32_t timeout_ms; /* how long this rank waits for the others of a static job */
    struct hvd_rendezvous_process process;
};

/* Then for each rank a uint64_t with the size of its card, and the card. */
struct hvd_rendezvous_formed {
    uint32_t generation; /* of an elastic job: 1, 2, ...; of a static one: 0 */
    int32_t rank; /* of a static job: the index */
    int32_t size;
};

struct hvd_rendezvous_refused {
    int32_t status; /* of enum hvd_status */
    int32_t culprit; /* the rank of the launch that has failed; -1: none is known */
};

#endif
