/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes that every layer and the public interface share. Installed beside
 * hvd.h. */
#ifndef HVD_STATUS_H
#define HVD_STATUS_H

enum hvd_status {
    HVD_OK = 0,
    HVD_INPROGRESS = 1, /* only from functions that test or progress */
    HVD_ERR_ARG = -1, /* an argument is not valid */
    HVD_ERR_NOMEM = -2, /* out of memory, /dev/shm is full, or a limit is reached */
    HVD_ERR_SYS = -3, /* a system call failed */
    HVD_ERR_NET = -4, /* the network or UCX failed; no rank is known to be dead */
    HVD_ERR_PEER = -5, /* another rank died; the text names it and its host */
    HVD_ERR_TIMEOUT = -6, /* a time limit has passed; the text names the missing ranks */
    HVD_ERR_MISMATCH = -7, /* ranks disagree about one request; the job goes on */
    HVD_ERR_UNSUPPORTED = -8, /* not in this build, or not on this machine */
    HVD_ERR_STATE = -9, /* not initialised, or called in the wrong order */
    HVD_ERR_SHUTDOWN = -10, /* a rank called shutdown while the request was pending */
    HVD_ERR_ABORTED = -11, /* a rank gave up the process set; the job goes on */
    HVD_ERR_DISMISSED = -12, /* the elastic job does not need this process: exit with 0 */
};

/* A failure and its reason, as a sentence for the user. The 512 bytes hold the longest
 * text of Horovod that scripts look for. */
struct hvd_error {
    int status; /* one of enum hvd_status */
    char text[512];
};

#endif
