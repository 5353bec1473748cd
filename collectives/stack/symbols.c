/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/symbols.h"

#include <elf.h>
#include <string.h>

enum {
    MOST_SECTIONS = 4096,
    SYMBOLS_AT_ONCE = 256,
};

static const uint64_t most_symbols = 8u << 20;

struct best {
    Elf64_Sym symbol;
    bool is_found;
};

static bool is_function(const Elf64_Sym *symbol)
{
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_name != 0;
}

/* Compares two names of one function: the global one is the one that users call. */
static bool is_better(const Elf64_Sym *symbol, const struct best *best)
{
    if (!best->is_found || symbol->st_value != best->symbol.st_value) {
        return !best->is_found || symbol->st_value > best->symbol.st_value;
    }
    return ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL &&
           ELF64_ST_BIND(best->symbol.st_info) != STB_GLOBAL;
}

static void search_table(const struct hvd_stack_memory *file, const Elf64_Shdr *table,
                         uint64_t address, struct best *best)
{
    Elf64_Sym symbols[SYMBOLS_AT_ONCE];
    uint64_t left = table->sh_size / sizeof(*symbols);
    uint64_t at = table->sh_offset;

    left = left < most_symbols ? left : most_symbols;
    while (left > 0) {
        const uint64_t wanted = left < SYMBOLS_AT_ONCE ? left : SYMBOLS_AT_ONCE;

        if (!hvd_stack_memory_read(file, at, symbols, wanted * sizeof(*symbols))) {
            return;
        }
        for (uint64_t i = 0; i < wanted; i++) {
            if (is_function(&symbols[i]) && symbols[i].st_value <= address &&
                (symbols[i].st_size == 0 ||
                 address - symbols[i].st_value < symbols[i].st_size) &&
                is_better(&symbols[i], best)) {
                *best = (struct best){.symbol = symbols[i], .is_found = true};
            }
        }
        left -= wanted;
        at += wanted * sizeof(*symbols);
    }
}

/* Reads a name, which ends with '\0' or where the room for it does. */
static bool read_name(const struct hvd_stack_memory *file, const Elf64_Shdr *strings,
                      const Elf64_Sym *symbol, char *name, size_t bytes)
{
    const uint64_t offset = symbol->st_name;
    size_t got;

    if (offset >= strings->sh_size) {
        return false;
    }
    got = hvd_stack_memory_read_some(file, strings->sh_offset + offset, name, bytes - 1);
    name[got] = '\0';
    return name[0] != '\0';
}

static bool read_section(const struct hvd_stack_memory *file, const Elf64_Ehdr *head,
                         uint64_t number, Elf64_Shdr *section)
{
    return number < head->e_shnum &&
           hvd_stack_memory_read(file, head->e_shoff + number * sizeof(*section), section,
                                 sizeof(*section));
}

/* Searches the first table of this type. */
static bool search_type(const struct hvd_stack_memory *file, const Elf64_Ehdr *head,
                        uint32_t type, uint64_t address, char *name, size_t bytes)
{
    Elf64_Shdr table = {0}, strings;
    struct best best = {.is_found = false};
    uint64_t i = 0;

    while (i < head->e_shnum && i < MOST_SECTIONS &&
           read_section(file, head, i, &table) && table.sh_type != type) {
        i++;
    }
    if (table.sh_type != type || !read_section(file, head, table.sh_link, &strings)) {
        return false;
    }
    search_table(file, &table, address, &best);
    return best.is_found && read_name(file, &strings, &best.symbol, name, bytes);
}

bool hvd_stack_symbols_find(const struct hvd_stack_memory *file, uint64_t address,
                            char *name, size_t bytes)
{
    Elf64_Ehdr head;

    if (!hvd_stack_memory_read(file, 0, &head, sizeof(head)) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(Elf64_Shdr)) {
        return false;
    }
    return search_type(file, &head, SHT_SYMTAB, address, name, bytes) ||
           search_type(file, &head, SHT_DYNSYM, address, name, bytes);
}
