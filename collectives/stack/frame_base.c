/* SPDX-License-Identifier: Apache-2.0 */
/* First tries the code at the start of the function, which sets RBP and then makes room
 * on the stack. If that is not simple, looks on the stack for the address to return to:
 * one after an instruction that calls the function. */
#include "collectives/stack/frame_base.h"

#include <string.h>

enum {
    CODE_BYTES = 64, /* enough for the start of a function */
    MOST_SLOTS = 8192, /* of the stack, to search */
    SLOT = sizeof(uint64_t),
    USUAL_DISTANCE = 2 * SLOT, /* the saved RBP and the address to return to */
};

/* Takes the bytes if the code begins with them. */
static bool take_code(const uint8_t **at, const uint8_t *end, const char *bytes,
                      size_t count)
{
    if ((size_t)(end - *at) < count || memcmp(*at, bytes, count) != 0) {
        return false;
    }
    *at += count;
    return true;
}

/* Takes a push of RBX or R12 to R15. */
static bool take_push(const uint8_t **at, const uint8_t *end)
{
    if (end - *at >= 2 && (*at)[0] == 0x41 && (*at)[1] >= 0x54 && (*at)[1] <= 0x57) {
        *at += 2;
        return true;
    }
    return take_code(at, end, "\x53", 1);
}

/* The parts of an instruction, as far as they tell its length and its destination. */
struct instruction {
    uint8_t rex;
    uint8_t code; /* the second byte if the first is 0x0f */
    bool is_two_bytes;
    uint8_t mode, reg, rm; /* of the ModRM byte */
};

static bool is_one_of(const char *codes, size_t count, uint8_t code)
{
    return memchr(codes, code, count) != NULL;
}

#define IS_ONE_OF(codes, code) is_one_of(codes, sizeof(codes) - 1, code)

/* Instructions that write to the register or memory of the ModRM byte: mov, arithmetic,
 * and those with a constant. */
static bool writes_rm(const struct instruction *one)
{
    return !one->is_two_bytes &&
           IS_ONE_OF("\x88\x89\x01\x09\x21\x29\x31\xc6\xc7\x81\x83", one->code);
}

/* Instructions that write to its other register: mov, lea, arithmetic, movzx, movsx. */
static bool writes_reg(const struct instruction *one)
{
    return one->is_two_bytes
               ? IS_ONE_OF("\xb6\xb7\xbe\xbf", one->code)
               : IS_ONE_OF("\x8a\x8b\x8d\x03\x0b\x23\x2b\x33\x63", one->code);
}

/* Instructions that write to no register of interest: cmp, test, and moves of vectors. */
static bool writes_other(const struct instruction *one)
{
    return one->is_two_bytes
               ? IS_ONE_OF("\x10\x11\x1f\x28\x29\x57\x6e\x6f\x7e\x7f\xd6\xef", one->code)
               : IS_ONE_OF("\x38\x39\x3b\x84\x85", one->code);
}

/* Whether the number of a register, of which `high` is the fourth bit, is RSP or RBP. */
static bool is_frame_register(uint8_t number, bool high)
{
    return !high && (number == 4 || number == 5);
}

/* Returns the length of the constant at the end of the instruction. */
static size_t constant_bytes(const struct instruction *one)
{
    if (one->is_two_bytes) {
        return 0;
    }
    return IS_ONE_OF("\xc7\x81", one->code) ? 4 : IS_ONE_OF("\xc6\x83", one->code);
}

/* Returns the length of an address after the ModRM byte; next: the byte after that. */
static size_t address_bytes(const struct instruction *one, uint8_t next)
{
    const bool has_index = one->mode != 3 && one->rm == 4;
    const uint8_t base = has_index ? next & 7 : one->rm;
    const size_t distance = one->mode == 1                                    ? 1
                            : one->mode == 2 || (one->mode == 0 && base == 5) ? 4
                                                                              : 0;

    return has_index + distance;
}

/* Takes an instruction that changes neither RSP nor RBP, of the kinds that compilers
 * place at the start of functions. */
static bool take_other(const uint8_t **start, const uint8_t *end)
{
    struct instruction one = {0};
    const uint8_t *at = *start;
    size_t length;

    while (end - at > 1 && IS_ONE_OF("\x64\x66\xf2\xf3", *at)) {
        at++;
    }
    if (end - at > 1 && (*at & 0xf0) == 0x40) {
        one.rex = *at++;
    }
    if (end - at >= 5 && (*at & 0xf8) == 0xb8 && (one.rex & 8) == 0 &&
        !is_frame_register(*at & 7, (one.rex & 1) != 0)) {
        *start = at + 5; /* mov $N,%reg */
        return true;
    }
    if (end - at > 1 && *at == 0x0f) {
        one.is_two_bytes = true;
        at++;
    }
    if (end - at < 3) {
        return false;
    }
    one.code = at[0];
    one.mode = at[1] >> 6;
    one.reg = (at[1] >> 3) & 7;
    one.rm = at[1] & 7;
    if (writes_rm(&one) ? one.mode == 3 && is_frame_register(one.rm, (one.rex & 1) != 0)
        : writes_reg(&one) ? is_frame_register(one.reg, (one.rex & 4) != 0)
                           : !writes_other(&one)) {
        return false;
    }
    length = 2 + address_bytes(&one, at[2]) + constant_bytes(&one);
    if ((size_t)(end - at) < length) {
        return false;
    }
    *start = at + length;
    return true;
}

/* Takes "sub $N,%rsp", which is "add $-128,%rsp" for 128. Returns N, or 0 if there is
 * something else. */
static uint64_t take_room(const uint8_t **at, const uint8_t *end)
{
    uint32_t room = 0;

    if (take_code(at, end, "\x48\x83\xc4\x80", 4)) {
        return 128;
    }
    if (take_code(at, end, "\x48\x83\xec", 3) && end - *at >= 1) {
        return (*at)[0] < 0x80 ? (*at)[0] : 0;
    }
    if (take_code(at, end, "\x48\x81\xec", 3) && end - *at >= (long)sizeof(room)) {
        memcpy(&room, *at, sizeof(room));
        return room <= INT32_MAX ? room : 0;
    }
    return 0;
}

/* Finds how far below RBP the function's code sets RSP. Returns false if that is not
 * simple. */
static bool find_depth(const struct hvd_stack_memory *memory, uint64_t function,
                       uint64_t *depth)
{
    uint8_t code[CODE_BYTES];
    const uint8_t *at = code;
    const uint8_t *const end =
        code + hvd_stack_memory_read_some(memory, function, code, sizeof(code));
    uint64_t pushes = 0;

    take_code(&at, end, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
    if (!take_code(&at, end, "\x55", 1)) { /* push %rbp */
        return false;
    }
    while (!take_code(&at, end, "\x48\x89\xe5", 3)) { /* mov %rsp,%rbp */
        if (!take_other(&at, end)) {
            return false;
        }
    }
    for (bool is_push; (is_push = take_push(&at, end)) || take_other(&at, end);) {
        pushes += is_push;
    }
    *depth = SLOT * pushes + take_room(&at, end);
    return true;
}

/* Whether `target` is the function, or a stub of the linker that jumps to it. */
static bool leads_to(const struct hvd_stack_memory *memory, uint64_t target,
                     uint64_t function)
{
    uint8_t code[16];
    const uint8_t *at = code;
    const uint8_t *end;
    int32_t distance;
    uint64_t real;

    if (target == function) {
        return true;
    }
    end = code + hvd_stack_memory_read_some(memory, target, code, sizeof(code));
    take_code(&at, end, "\xf3\x0f\x1e\xfa", 4);
    take_code(&at, end, "\xf2", 1); /* bnd */
    if (!take_code(&at, end, "\xff\x25", 2) || end - at < (long)sizeof(distance)) {
        return false;
    }
    memcpy(&distance, at, sizeof(distance));
    target += (uint64_t)(at - code) + sizeof(distance) + (uint64_t)(int64_t)distance;
    return hvd_stack_memory_read(memory, target, &real, sizeof(real)) && real == function;
}

/* Whether the instruction before this address calls the function. */
static bool follows_call_of(const struct hvd_stack_memory *memory, uint64_t address,
                            uint64_t function)
{
    uint8_t code[5];
    int32_t distance;

    if (address < sizeof(code) ||
        !hvd_stack_memory_read(memory, address - sizeof(code), code, sizeof(code)) ||
        code[0] != 0xe8) {
        return false;
    }
    memcpy(&distance, code + 1, sizeof(distance));
    return leads_to(memory, address + (uint64_t)(int64_t)distance, function);
}

/* Whether the instruction before this address calls any function: directly (0xe8), or by
 * a pointer in a register or in memory (0xff with 2 in bits 3 to 5). */
static bool follows_call(const struct hvd_stack_memory *memory, uint64_t address)
{
    uint8_t code[7];
    bool is_call;

    if (address < sizeof(code) ||
        !hvd_stack_memory_read(memory, address - sizeof(code), code, sizeof(code))) {
        return false;
    }
    is_call = code[2] == 0xe8;
    for (int i = 0; i <= 5; i++) {
        is_call |= code[i] == 0xff && (code[i + 1] & 0x38) == 0x10;
    }
    return is_call;
}

/* Whether this may be the saved RBP: the slot above it is the address after a call. */
static bool is_base(const struct hvd_stack_memory *memory, uint64_t slot)
{
    uint64_t address;

    return hvd_stack_memory_read(memory, slot + SLOT, &address, sizeof(address)) &&
           follows_call(memory, address);
}

/* Searches the stack upwards. Calls by a pointer are left out: most such addresses were
 * left by functions that have returned. */
static bool search_stack(const struct hvd_stack_memory *memory, uint64_t function,
                         uint64_t rsp, uint64_t *cfa)
{
    uint64_t words[MOST_SLOTS];
    const size_t count =
        hvd_stack_memory_read_some(memory, rsp, words, sizeof(words)) / SLOT;

    for (size_t i = 0; i < count; i++) {
        if (words[i] > UINT16_MAX && follows_call_of(memory, words[i], function)) {
            *cfa = rsp + (i + 1) * SLOT;
            return true;
        }
    }
    return false;
}

bool hvd_stack_frame_base_find(const struct hvd_stack_memory *memory, uint64_t function,
                               uint64_t rsp, int64_t distance, uint64_t *rbp)
{
    uint64_t depth, cfa;

    if (distance == USUAL_DISTANCE && find_depth(memory, function, &depth) &&
        is_base(memory, rsp + depth)) {
        *rbp = rsp + depth;
        return true;
    }
    if (!search_stack(memory, function, rsp, &cfa)) {
        return false;
    }
    *rbp = cfa - (uint64_t)distance;
    return true;
}
