/* SPDX-License-Identifier: Apache-2.0 */
/* Reads plugin_version from the file of a plugin. dlopen would fail, because only srun
 * and slurmstepd have the functions of Slurm that a plugin needs. */
#include "contrib/info/slurm/plugin.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The mapped file. Its offsets may be wrong, so each is checked. */
struct image {
    const unsigned char *data;
    size_t bytes;
};

/* Returns the bytes at this offset. NULL if they are outside of the file or unaligned. */
static const void *at(const struct image *image, uint64_t offset, uint64_t bytes,
                      size_t alignment)
{
    return offset % alignment == 0 && offset <= image->bytes &&
                   bytes <= image->bytes - offset
               ? image->data + offset
               : NULL;
}

static const ElfW(Shdr) *
    section_of(const struct image *image, const ElfW(Ehdr) * header, uint64_t number)
{
    return number < header->e_shnum
               ? at(image, header->e_shoff + number * sizeof(ElfW(Shdr)),
                    sizeof(ElfW(Shdr)), _Alignof(ElfW(Shdr)))
               : NULL;
}

/* Returns whether the string table has `name` at this offset. */
static bool is_named(const struct image *image, const ElfW(Shdr) * strings,
                     uint64_t offset, const char *name)
{
    size_t bytes = strlen(name) + 1;

    return strings->sh_offset <= image->bytes && offset <= strings->sh_size &&
           strings->sh_size <= image->bytes - strings->sh_offset &&
           bytes <= strings->sh_size - offset &&
           memcmp(image->data + strings->sh_offset + offset, name, bytes) == 0;
}

/* Returns the symbol of this name in a table of symbols, or NULL. */
static const ElfW(Sym) * find_in(const struct image *image, const ElfW(Ehdr) * header,
                                 const ElfW(Shdr) * table, const char *name)
{
    const ElfW(Shdr) *strings = section_of(image, header, table->sh_link);
    const ElfW(Sym) *symbols =
        at(image, table->sh_offset, table->sh_size, _Alignof(ElfW(Sym)));

    for (uint64_t i = 0;
         strings != NULL && symbols != NULL && i < table->sh_size / sizeof(symbols[0]);
         i++) {
        if (symbols[i].st_shndx != SHN_UNDEF &&
            is_named(image, strings, symbols[i].st_name, name)) {
            return &symbols[i];
        }
    }
    return NULL;
}

/* Finds the value of an exported number, or NULL. */
static const uint32_t *find_number(const struct image *image, const char *name)
{
    const ElfW(Ehdr) *header = at(image, 0, sizeof(*header), 1);

    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header->e_shentsize != sizeof(ElfW(Shdr))) {
        return NULL;
    }
    for (uint64_t i = 0; i < header->e_shnum; i++) {
        const ElfW(Shdr) *table = section_of(image, header, i);

        if (table == NULL || table->sh_type != SHT_DYNSYM) {
            continue;
        }
        const ElfW(Sym) *symbol = find_in(image, header, table, name);
        const ElfW(Shdr) *section =
            symbol != NULL ? section_of(image, header, symbol->st_shndx) : NULL;
        return section != NULL && section->sh_type != SHT_NOBITS
                   ? at(image, section->sh_offset + symbol->st_value - section->sh_addr,
                        sizeof(uint32_t), _Alignof(uint32_t))
                   : NULL;
    }
    return NULL;
}

int hvd_info_plugin_release(const char *file, int *release, struct hvd_error *err)
{
    struct image image = {0};
    struct stat about;
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    int status = 0;

    if (descriptor < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read %.300s: %m", file);
    }
    if (fstat(descriptor, &about) < 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
        close(descriptor);
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%.300s is not a plugin of Slurm",
                        file);
    }
    image.bytes = (size_t)about.st_size;
    void *mapped = mmap(NULL, image.bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (mapped == MAP_FAILED) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read %.300s: %m", file);
    }
    image.data = mapped;
    const uint32_t *number = find_number(&image, "plugin_version");
    if (number != NULL) {
        *release = (int)(100 * (*number >> 16 & 255) + (*number >> 8 & 255));
    } else {
        status = hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "%.300s is not a plugin of Slurm for this kind of machine: it "
                          "has no plugin_version",
                          file);
    }
    munmap(mapped, image.bytes);
    return status;
}
