/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that drives a rank, over a table of sources: the parts that something can come
 * from.
 *
 * A part registers when it opens. The loop knows none by name, and a part that a job does
 * not use is not in the table. Sources are polled and drained in the order in which they
 * were added; they fail, stop and close in the reverse order, each before what it was
 * built on:
 *
 *   poll      once round: each source does what it can do now
 *   settle    the last look before sleeping
 *   deadline  when to poll although nothing has happened
 *   may_drain some rank wants to leave (rank 0): until each source may
 *   drain     all ranks leave: nothing new is begun; until each source has drained
 *   end       all ranks have drained
 *   fail      the job cannot go on
 *   stop      nothing but the driver touches tensors any more; then close
 *
 * Threads: the progress lock is held, but for stop and close, when no other thread is
 * left. */
#ifndef HVD_LOOP_H
#define HVD_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The bits that progress returns. */
enum {
    HVD_SOURCE_MOVED = 1, /* something was done: there may be more to do */
    HVD_SOURCE_WORKS =
        2, /* requests of this rank are being carried out, and wait for other ranks */
};

/* A timed wait: until when the progress thread sleeps without a wake-up, and then looks
 * by itself. */
struct hvd_timed_wait {
    int64_t now_ns;
    int64_t end_ns; /* -1: there is none, and everything that comes has to ring */
    bool is_for_p2p; /* nor do messages of other ranks need to ring */
};

/* Any function may be NULL: there is nothing to do then. */
struct hvd_source {
    const char *name;
    /* Talks to other ranks about what to do, rather than do it: polled less often while
     * data moves. */
    bool talks;
    unsigned (*progress)(void *self, int64_t now_ns);
    /* The rank has said that it sleeps. Arms what wakes it, then looks whether something
     * has come before that. False: there is something to do, and the rank does not
     * sleep. */
    bool (*settle)(void *self, const struct hvd_timed_wait *wait);
    int64_t (*deadline)(const void *self, int64_t now_ns); /* -1: never */
    /* Ends all that must not be cut off by drain, and begins no more of it; true once
     * there is none. Asked again until all sources say so. */
    bool (*may_drain)(void *self);
    /* Submissions are refused with this from now on. */
    void (*drain)(void *self, int status, const char *text);
    bool (*has_drained)(const void *self);
    void (*end)(void *self, int status, const char *text);
    /* Ends all requests that it holds with this. */
    void (*fail)(void *self, int status, const char *text);
    void (*stop)(void *self);
    void (*close)(void *self);
};

enum {
    HVD_LOOP_MOST = 16, /* sources */
};

/* Zeroed at first. */
struct hvd_loop {
    struct hvd_loop_entry {
        const struct hvd_source *source;
        void *self;
        const _Atomic bool *gate; /* NULL: open */
    } entries[HVD_LOOP_MOST];
    int count;
    bool data_moves; /* it did in the last round */
    bool works; /* some source did after it */
    int64_t talked_ns; /* when sources that talk were last polled */
};

/* Whether requests of this rank were being carried out after the last round. */
static inline bool hvd_loop_works(const struct hvd_loop *loop)
{
    return loop->works;
}

/* source and self are borrowed until close. gate: while it is false, set by any thread,
 * the source is not polled and has no deadline; NULL: it always is. Also while the loop
 * polls. */
void hvd_loop_add(struct hvd_loop *loop, const struct hvd_source *source, void *self,
                  const _Atomic bool *gate);

/* The source that was added with this gate is always polled from now on. */
void hvd_loop_open_gate(struct hvd_loop *loop, const _Atomic bool *gate);

/* One round. True if anything moved. */
bool hvd_loop_poll(struct hvd_loop *loop);

/* False: there is something to do. */
bool hvd_loop_settle(struct hvd_loop *loop, const struct hvd_timed_wait *wait);

/* The first deadline, or until_ns, if that is sooner; -1: never. */
int64_t hvd_loop_deadline(const struct hvd_loop *loop, int64_t until_ns, int64_t now_ns);

bool hvd_loop_may_drain(struct hvd_loop *loop);
void hvd_loop_drain(struct hvd_loop *loop, int status, const char *text);
bool hvd_loop_has_drained(const struct hvd_loop *loop);
void hvd_loop_end(struct hvd_loop *loop, int status, const char *text);
void hvd_loop_fail(struct hvd_loop *loop, int status, const char *text);

/* Stops and closes all sources; the table is empty then. */
void hvd_loop_close(struct hvd_loop *loop);

#endif
