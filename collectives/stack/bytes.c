/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/bytes.h"

#include <string.h>

/* Encodings of pointers in .eh_frame: Linux Standard Base, "DWARF Exception Header
 * Encoding". */
enum {
    FORMAT = 0x0f,
    FORMAT_ADDRESS = 0x00,
    FORMAT_ULEB = 0x01,
    FORMAT_U2 = 0x02,
    FORMAT_U4 = 0x03,
    FORMAT_U8 = 0x04,
    FORMAT_SLEB = 0x09,
    FORMAT_S2 = 0x0a,
    FORMAT_S4 = 0x0b,
    FORMAT_S8 = 0x0c,
    BASE = 0x70,
    BASE_NONE = 0x00,
    BASE_HERE = 0x10,
    BASE_DATA = 0x30,
};

static void skip_bytes(struct hvd_stack_bytes *bytes, size_t size)
{
    bytes->at += size;
    bytes->left -= size;
    bytes->address += size;
}

uint64_t hvd_stack_bytes_take(struct hvd_stack_bytes *bytes, size_t size)
{
    uint64_t value = 0;

    if (bytes->failed || size > bytes->left) {
        bytes->failed = true;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    skip_bytes(bytes, size);
    return value;
}

/* *sign: whether the last byte has the bit that is the sign of a signed number. */
static uint64_t take_leb(struct hvd_stack_bytes *bytes, unsigned *shift, bool *sign)
{
    uint64_t value = 0, byte;

    *shift = 0;
    do {
        byte = hvd_stack_bytes_take(bytes, 1);
        value |= *shift < 64 ? (byte & 0x7f) << *shift : 0;
        *shift += *shift < 64 ? 7 : 0;
    } while ((byte & 0x80) != 0);
    *sign = (byte & 0x40) != 0;
    return value;
}

uint64_t hvd_stack_bytes_take_uleb(struct hvd_stack_bytes *bytes)
{
    unsigned shift;
    bool sign;

    return take_leb(bytes, &shift, &sign);
}

int64_t hvd_stack_bytes_take_sleb(struct hvd_stack_bytes *bytes)
{
    unsigned shift;
    bool sign;
    const uint64_t value = take_leb(bytes, &shift, &sign);

    return (int64_t)(sign && shift < 64 ? value | ~(uint64_t)0 << shift : value);
}

struct hvd_stack_bytes hvd_stack_bytes_split(struct hvd_stack_bytes *bytes, uint64_t size)
{
    struct hvd_stack_bytes part = *bytes;

    if (bytes->failed || size > bytes->left) {
        bytes->failed = true;
        part.failed = true;
        part.left = 0;
        return part;
    }
    part.left = (size_t)size;
    skip_bytes(bytes, (size_t)size);
    return part;
}

static uint64_t take_signed(struct hvd_stack_bytes *bytes, size_t size)
{
    const unsigned unused_bits = 64 - 8 * (unsigned)size;
    const uint64_t value = hvd_stack_bytes_take(bytes, size);
    const uint64_t sign = (uint64_t)1 << (63 - unused_bits);

    return (value ^ sign) - sign;
}

static uint64_t take_number(struct hvd_stack_bytes *bytes, uint8_t encoding)
{
    switch (encoding & FORMAT) {
    case FORMAT_ADDRESS:
    case FORMAT_U8:
    case FORMAT_S8:
        return hvd_stack_bytes_take(bytes, 8);
    case FORMAT_ULEB:
        return hvd_stack_bytes_take_uleb(bytes);
    case FORMAT_U2:
        return hvd_stack_bytes_take(bytes, 2);
    case FORMAT_U4:
        return hvd_stack_bytes_take(bytes, 4);
    case FORMAT_SLEB:
        return (uint64_t)hvd_stack_bytes_take_sleb(bytes);
    case FORMAT_S2:
        return take_signed(bytes, 2);
    case FORMAT_S4:
        return take_signed(bytes, 4);
    default:
        bytes->failed = true;
        return 0;
    }
}

uint64_t hvd_stack_bytes_take_pointer(struct hvd_stack_bytes *bytes, uint8_t encoding,
                                      uint64_t base)
{
    const uint64_t here = bytes->address;
    const uint64_t value = take_number(bytes, encoding);

    switch (encoding & BASE) {
    case BASE_NONE:
        return value;
    case BASE_HERE:
        return here + value;
    case BASE_DATA:
        return base + value;
    default:
        bytes->failed = true;
        return 0;
    }
}
