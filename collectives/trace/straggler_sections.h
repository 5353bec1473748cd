/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the time that this rank spends in the named sections of its program.
 *
 * Sections nest; time counts for the innermost open section only.
 *
 * Threads: any. Sections are those of one thread, the one that trains; if other threads
 * begin sections meanwhile, the times are wrong, but nothing breaks. */
#ifndef HVD_STRAGGLER_SECTIONS_H
#define HVD_STRAGGLER_SECTIONS_H

#include <pthread.h>
#include <stdint.h>

enum {
    HVD_SECTION_NAME = 32, /* bytes of a name, with the terminating zero */
    HVD_SECTIONS = 16, /* with more names, the last one stands for all others */
    HVD_SECTION_DEPTH = 16, /* deeper sections count for the one at this depth */
};

struct hvd_straggler_section {
    char name[HVD_SECTION_NAME];
    int64_t ns;
};

struct hvd_straggler_sections {
    pthread_mutex_t lock;
    int count;
    struct hvd_straggler_section sections[HVD_SECTIONS];
    int depth;
    int open[HVD_SECTION_DEPTH]; /* indexes of the open sections, the innermost last */
    int64_t counted_ns; /* time when the innermost section was last counted */
};

void hvd_straggler_sections_init(struct hvd_straggler_sections *sections);
void hvd_straggler_sections_finish(struct hvd_straggler_sections *sections);

/* Finds a name in a list of *count sections, of which there is room for HVD_SECTIONS, or
 * adds it. Returns its index. A longer name is cut. */
int hvd_straggler_section_find(struct hvd_straggler_section *list, int *count,
                               const char *name);

void hvd_straggler_sections_begin(struct hvd_straggler_sections *sections,
                                  const char *name, int64_t now_ns);

/* Ends the innermost section. Returns HVD_ERR_STATE if none is open. */
int hvd_straggler_sections_end(struct hvd_straggler_sections *sections, int64_t now_ns);

/* Copies the times since the last call to `out`, which has room for HVD_SECTIONS, and
 * returns how many there are. */
int hvd_straggler_sections_take(struct hvd_straggler_sections *sections, int64_t now_ns,
                                struct hvd_straggler_section *out);

#endif
