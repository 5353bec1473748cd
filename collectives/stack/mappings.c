/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/mappings.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 65536,
    MOST_BYTES = 64 << 20,
    MOST_SEGMENTS = 64,
};

static bool parse_line(char *line, struct hvd_stack_mapping *mapping)
{
    unsigned major, minor;
    int used = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %x:%x %" SCNu64 " %n",
               &mapping->start, &mapping->end, &mapping->offset, &major, &minor,
               &mapping->inode, &used) != 6 ||
        mapping->start >= mapping->end) {
        return false;
    }
    mapping->device = (uint64_t)major << 32 | minor;
    mapping->path = used > 0 ? line + used : "";
    return true;
}

bool hvd_stack_mappings_parse(struct hvd_stack_mappings *mappings, char *text)
{
    size_t lines = 1;
    char *rest = text, *line;

    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    *mappings = (struct hvd_stack_mappings){.text = text};
    mappings->all = calloc(lines, sizeof(*mappings->all));
    if (mappings->all == NULL) {
        return false;
    }
    while ((line = strsep(&rest, "\n")) != NULL) {
        mappings->count += parse_line(line, &mappings->all[mappings->count]);
    }
    return true;
}

/* Reads a file of /proc, whose size is not known before. Returns NULL if that fails. */
static char *read_text(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    char *text = NULL;

    while (got > 0 && bytes < MOST_BYTES) {
        char *grown = realloc(text, bytes + CHUNK_BYTES + 1);

        if (grown == NULL) {
            got = -1;
            break;
        }
        text = grown;
        got = read(fd, text + bytes, CHUNK_BYTES);
        bytes += got > 0 ? (size_t)got : 0;
        text[bytes] = '\0';
    }
    if (fd >= 0) {
        close(fd);
    }
    if (got < 0) {
        free(text);
        return NULL;
    }
    return text;
}

bool hvd_stack_mappings_read(struct hvd_stack_mappings *mappings)
{
    char *text = read_text("/proc/self/maps");

    *mappings = (struct hvd_stack_mappings){0};
    return text != NULL && hvd_stack_mappings_parse(mappings, text);
}

void hvd_stack_mappings_finish(struct hvd_stack_mappings *mappings)
{
    free(mappings->all);
    free(mappings->text);
    *mappings = (struct hvd_stack_mappings){0};
}

const struct hvd_stack_mapping *
hvd_stack_mappings_find(const struct hvd_stack_mappings *mappings, uint64_t address)
{
    for (int i = 0; i < mappings->count; i++) {
        if (address >= mappings->all[i].start && address < mappings->all[i].end) {
            return &mappings->all[i];
        }
    }
    return NULL;
}

/* Returns the mapping with the beginning of the file that this mapping is a part of. */
static const struct hvd_stack_mapping *
first_of_file(const struct hvd_stack_mappings *mappings,
              const struct hvd_stack_mapping *mapping)
{
    while (mapping->offset != 0 && mapping > mappings->all) {
        mapping--;
        if (mapping->device != mapping[1].device || mapping->inode != mapping[1].inode) {
            return NULL;
        }
    }
    return mapping->offset == 0 ? mapping : NULL;
}

/* Takes what the program headers tell. first: where the beginning of the file lies. */
static bool read_headers(const struct hvd_stack_memory *memory, uint64_t first,
                         struct hvd_stack_module *module)
{
    Elf64_Phdr segments[MOST_SEGMENTS];
    Elf64_Ehdr head;
    bool has_bias = false;

    if (!hvd_stack_memory_read(memory, first, &head, sizeof(head)) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(*segments) ||
        head.e_phnum == 0 || head.e_phnum > MOST_SEGMENTS ||
        !hvd_stack_memory_read(memory, first + head.e_phoff, segments,
                               head.e_phnum * sizeof(*segments))) {
        return false;
    }
    for (int i = 0; i < head.e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0) {
            module->bias = first - segments[i].p_vaddr;
            has_bias = true;
        }
    }
    for (int i = 0; i < head.e_phnum; i++) {
        if (segments[i].p_type == PT_GNU_EH_FRAME) {
            module->index = module->bias + segments[i].p_vaddr;
        }
    }
    return has_bias;
}

bool hvd_stack_mappings_find_module(const struct hvd_stack_mappings *mappings,
                                    const struct hvd_stack_memory *memory,
                                    uint64_t address, struct hvd_stack_module *module)
{
    const struct hvd_stack_mapping *mapping = hvd_stack_mappings_find(mappings, address);
    const struct hvd_stack_mapping *first;

    if (mapping == NULL || mapping->path[0] == '\0') {
        return false;
    }
    first = first_of_file(mappings, mapping);
    *module = (struct hvd_stack_module){.mapping = mapping};
    return first != NULL && read_headers(memory, first->start, module);
}
