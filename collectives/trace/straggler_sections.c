/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the time that this rank spends in the named sections of its program. */
#include "collectives/trace/straggler_sections.h"

#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

static const char other_names[] = "(others)";

void hvd_straggler_sections_init(struct hvd_straggler_sections *sections)
{
    *sections = (struct hvd_straggler_sections){0};
    pthread_mutex_init(&sections->lock, NULL);
}

void hvd_straggler_sections_finish(struct hvd_straggler_sections *sections)
{
    pthread_mutex_destroy(&sections->lock);
}

int hvd_straggler_section_find(struct hvd_straggler_section *list, int *count,
                               const char *name)
{
    for (int i = 0; i < *count; i++) {
        if (strncmp(list[i].name, name, HVD_SECTION_NAME - 1) == 0) {
            return i;
        }
    }
    if (*count == HVD_SECTIONS) {
        snprintf(list[HVD_SECTIONS - 1].name, HVD_SECTION_NAME, "%s", other_names);
        return HVD_SECTIONS - 1;
    }
    list[*count] = (struct hvd_straggler_section){0};
    snprintf(list[*count].name, HVD_SECTION_NAME, "%s", name);
    return (*count)++;
}

/* Counts the time since the last call for the innermost section. */
static void count_time(struct hvd_straggler_sections *sections, int64_t now_ns)
{
    int depth = sections->depth < HVD_SECTION_DEPTH ? sections->depth : HVD_SECTION_DEPTH;

    if (now_ns <= sections->counted_ns) {
        return;
    }
    if (depth > 0) {
        sections->sections[sections->open[depth - 1]].ns += now_ns - sections->counted_ns;
    }
    sections->counted_ns = now_ns;
}

void hvd_straggler_sections_begin(struct hvd_straggler_sections *sections,
                                  const char *name, int64_t now_ns)
{
    pthread_mutex_lock(&sections->lock);
    count_time(sections, now_ns);
    if (sections->depth < HVD_SECTION_DEPTH) {
        sections->open[sections->depth] =
            hvd_straggler_section_find(sections->sections, &sections->count, name);
    }
    sections->depth++;
    pthread_mutex_unlock(&sections->lock);
}

int hvd_straggler_sections_end(struct hvd_straggler_sections *sections, int64_t now_ns)
{
    int status = HVD_ERR_STATE;

    pthread_mutex_lock(&sections->lock);
    if (sections->depth > 0) {
        count_time(sections, now_ns);
        sections->depth--;
        status = 0;
    }
    pthread_mutex_unlock(&sections->lock);
    return status;
}

int hvd_straggler_sections_take(struct hvd_straggler_sections *sections, int64_t now_ns,
                                struct hvd_straggler_section *out)
{
    int count;

    pthread_mutex_lock(&sections->lock);
    count_time(sections, now_ns);
    count = sections->count;
    memcpy(out, sections->sections, (size_t)count * sizeof(out[0]));
    for (int i = 0; i < count; i++) {
        sections->sections[i].ns = 0;
    }
    pthread_mutex_unlock(&sections->lock);
    return count;
}
