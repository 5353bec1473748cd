/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between ranks and the rendezvous service. Both come from the same
 * release, so structs are sent as they are. */
#ifndef HVD_RENDEZVOUS_MESSAGE_H
#define HVD_RENDEZVOUS_MESSAGE_H

#include <stdint.h>

#include "pmix_boot/rendezvous/missing.h"

enum hvd_rendezvous_message {
    /* from a rank: it is ready to begin, struct hvd_rendezvous_join; answered by FORMED
     * or REFUSED */
    HVD_RENDEZVOUS_JOIN = 1,
    HVD_RENDEZVOUS_READY, /* from a rank: it has the state of the training; no data */
    HVD_RENDEZVOUS_FORMED, /* to a rank: begin, struct hvd_rendezvous_formed */
    /* to a rank: struct hvd_rendezvous_refused, then the reason */
    HVD_RENDEZVOUS_REFUSED,
    /* to a rank: an int32_t, a rank of its generation that is gone */
    HVD_RENDEZVOUS_LOST,
    HVD_RENDEZVOUS_UPDATED, /* to a rank: a uint32_t, changes of enum hvd_roster_change */
    /* from the plugin in a task: posts a value for the others; struct
     * hvd_rendezvous_note and the value */
    HVD_RENDEZVOUS_POST,
    /* from the plugin in a task: waits for a posted value; struct hvd_rendezvous_note */
    HVD_RENDEZVOUS_ASK,
    /* answers POST and ASK once there is a value; the same data as POST */
    HVD_RENDEZVOUS_NOTE,
    /* from a rank of an elastic job: it ends with success; no data */
    HVD_RENDEZVOUS_DONE,
    /* from a rank of a static job, which ends before it has called init; answered by the
     * same message. To ranks that have sent WATCH: a rank has ended so. struct
     * hvd_missing_end */
    HVD_RENDEZVOUS_ENDED,
    /* from a rank of a static job, which starts by PMIx and has waited for long: it wants
     * each ENDED, earlier ones too; no data */
    HVD_RENDEZVOUS_WATCH,
};

struct hvd_rendezvous_note {
    uint32_t subject; /* an enum hvd_board_subject */
    int32_t rank; /* the task's rank, and its host; not set in answers */
    char host[HVD_MISSING_HOST_BYTES]; /* NUL-terminated */
};

/* The facts needed to kill a rank. */
struct hvd_rendezvous_process {
    int32_t pid;
    uint32_t job; /* SLURM_JOB_ID; 0 outside Slurm jobs */
    uint64_t started; /* see process_start.h; 0 if unknown */
    /* Slurm's name of the node, which may differ from the host name; NUL-terminated */
    char node[64];
};

/* Followed by the list of ranks, int32_t [listed], the host name and the card. */
struct hvd_rendezvous_join {
    uint64_t card_bytes;
    /* random; the same if a rank asks again because its connection was reset */
    uint64_t number;
    uint32_t host_bytes; /* without the final NUL */
    int32_t slot; /* the number that the launcher gave this process */
    int32_t count; /* number of ranks that begin together; 0 in an elastic job */
    int32_t listed; /* count, or 0 if all ranks of the launch begin together */
    int32_t index; /* index among the ranks that begin together */
    int32_t timeout_ms; /* static jobs: how long this rank waits for the others */
    struct hvd_rendezvous_process process;
};

/* Followed, for each rank, by a uint64_t with the size of its card, and the card. */
struct hvd_rendezvous_formed {
    uint32_t generation; /* elastic jobs: 1, 2, ...; static jobs: 0 */
    int32_t rank; /* rank in the generation; static jobs: the index in the list */
    int32_t size;
};

struct hvd_rendezvous_refused {
    int32_t status; /* an enum hvd_status */
    int32_t culprit; /* the rank of the launch that has failed; -1 if none is known */
};

#endif
