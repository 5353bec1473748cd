/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that drives a rank: it polls a table of sources, the parts that produce events
 * or work.
 *
 * A part registers when it opens. The loop knows none of them by name, and a part that a
 * job does not use is not in the table. Sources are polled and drained in the order in
 * which they were added; they fail, stop and close in reverse order, each before the
 * sources that it was built on:
 *
 *   poll      one round: each source does what it can do now
 *   settle    the last check before sleeping
 *   deadline  when to poll although nothing has happened
 *   may_drain some rank wants to leave: on rank 0, repeated until every source agrees
 *   drain     all ranks leave: nothing new begins; has_drained is then repeated until
 *             every source agrees
 *   end       all ranks have drained
 *   fail      the job cannot go on
 *   stop      the source's network or device must no longer touch tensors
 *   close     all sources have stopped
 *
 * Threads: the progress lock is held, except for stop and close, when no other thread is
 * left. */
#ifndef HVD_LOOP_H
#define HVD_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The bits that progress returns. */
enum {
    HVD_SOURCE_MOVED = 1, /* the source did something: there may be more to do */
    /* requests of this rank are running, and wait for other ranks */
    HVD_SOURCE_WORKS = 2,
};

/* A timed wait: the progress thread sleeps until a set time and then polls, so that some
 * events need not wake it. */
struct hvd_timed_wait {
    int64_t now_ns;
    int64_t end_ns; /* -1: no timed wait, every event must wake the thread */
    bool is_for_p2p; /* messages of other ranks need not wake it either */
};

/* The functions of a source. A function that has nothing to do may be NULL. */
struct hvd_source {
    const char *name;
    /* The source exchanges control messages rather than data, and is polled less often
     * while data moves. */
    bool talks;
    unsigned (*progress)(void *self, int64_t now_ns);
    /* The rank has announced that it sleeps. Enables the events that wake it, then checks
     * for events that came before. Returns false if there is something to do; the rank
     * then does not sleep. */
    bool (*settle)(void *self, const struct hvd_timed_wait *wait);
    int64_t (*deadline)(const void *self, int64_t now_ns); /* -1: never */
    /* Ends the work that drain must not cut off, and begins no new work. Returns true
     * once no such work is left. Called repeatedly until all sources return true. */
    bool (*may_drain)(void *self);
    /* Submissions are refused with this error from now on. */
    void (*drain)(void *self, int status, const char *text);
    bool (*has_drained)(const void *self);
    void (*end)(void *self, int status, const char *text);
    /* Ends all requests of the source with this error. */
    void (*fail)(void *self, int status, const char *text);
    void (*stop)(void *self);
    void (*close)(void *self);
};

enum {
    HVD_LOOP_MOST = 16, /* sources */
};

/* The table of sources. Must be zeroed before use. */
struct hvd_loop {
    struct hvd_loop_entry {
        const struct hvd_source *source;
        void *self;
        const _Atomic bool *gate; /* NULL: open */
    } entries[HVD_LOOP_MOST];
    int count;
    bool data_moves; /* data moved in the last round */
    bool works; /* some source was working after the last round */
    int64_t talked_ns; /* when sources that talk were last polled */
};

/* Whether requests of this rank were running after the last round. */
static inline bool hvd_loop_works(const struct hvd_loop *loop)
{
    return loop->works;
}

/* Adds a source, borrowed with self until close. gate: the source is not polled and has
 * no deadline while the gate is false; any thread may change it; NULL: always open. May
 * be called while the loop polls. */
void hvd_loop_add(struct hvd_loop *loop, const struct hvd_source *source, void *self,
                  const _Atomic bool *gate);

/* Opens the gate that was passed to hvd_loop_add, for good. */
void hvd_loop_open_gate(struct hvd_loop *loop, const _Atomic bool *gate);

/* Polls all sources once. Returns true if anything moved. */
bool hvd_loop_poll(struct hvd_loop *loop);

/* Settles all sources. Returns false if there is something to do. */
bool hvd_loop_settle(struct hvd_loop *loop, const struct hvd_timed_wait *wait);

/* Returns the earliest deadline of all sources and of until_ns; -1: none. */
int64_t hvd_loop_deadline(const struct hvd_loop *loop, int64_t until_ns, int64_t now_ns);

bool hvd_loop_may_drain(struct hvd_loop *loop);
void hvd_loop_drain(struct hvd_loop *loop, int status, const char *text);
bool hvd_loop_has_drained(const struct hvd_loop *loop);
void hvd_loop_end(struct hvd_loop *loop, int status, const char *text);
void hvd_loop_fail(struct hvd_loop *loop, int status, const char *text);

/* Stops and closes all sources; afterwards the table is empty. */
void hvd_loop_close(struct hvd_loop *loop);

#endif
