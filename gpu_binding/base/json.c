/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts as JSON strings. */
#include "gpu_binding/base/json.h"

#include <string.h>

/* Returns the length of the UTF-8 character at text; 0 if it is invalid, as surrogates,
 * overlong forms and values beyond U+10FFFF are. */
static size_t utf8_bytes(const unsigned char *text)
{
    unsigned char least = 0x80, most = 0xbf;
    size_t bytes;

    if (text[0] < 0x80) {
        return 1;
    }
    if (text[0] < 0xc2 || text[0] > 0xf4) {
        return 0;
    }
    bytes = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (text[0] == 0xe0) {
        least = 0xa0;
    } else if (text[0] == 0xed) {
        most = 0x9f;
    } else if (text[0] == 0xf0) {
        least = 0x90;
    } else if (text[0] == 0xf4) {
        most = 0x8f;
    }
    if (text[1] < least || text[1] > most) {
        return 0;
    }
    for (size_t i = 2; i < bytes; i++) {
        if (text[i] < 0x80 || text[i] > 0xbf) {
            return 0;
        }
    }
    return bytes;
}

/* Writes the first character of text to piece, escaped. Returns how many bytes it had. */
static size_t escape_one(const unsigned char *text, char piece[8])
{
    size_t bytes = utf8_bytes(text);

    if (bytes == 0) {
        memcpy(piece, "\\ufffd", sizeof("\\ufffd"));
        return 1;
    }
    if (text[0] == '"' || text[0] == '\\') {
        snprintf(piece, 8, "\\%c", text[0]);
    } else if (text[0] < 0x20) {
        snprintf(piece, 8, "\\u%04x", text[0]);
    } else {
        memcpy(piece, text, bytes);
        piece[bytes] = '\0';
    }
    return bytes;
}

size_t hvd_json_escape(const char *text, char *out, size_t capacity)
{
    static const char cut[] = "...";
    const unsigned char *next = (const unsigned char *)text;
    size_t used = 0;

    while (*next != '\0') {
        char piece[8];
        size_t taken = escape_one(next, piece);
        size_t bytes = strlen(piece);

        if (used + bytes + sizeof(cut) > capacity) {
            memcpy(out + used, cut, sizeof(cut));
            return used + sizeof(cut) - 1;
        }
        memcpy(out + used, piece, bytes);
        used += bytes;
        next += taken;
    }
    out[used] = '\0';
    return used;
}

void hvd_json_print(const char *text, FILE *out)
{
    const unsigned char *next = (const unsigned char *)text;

    fputc('"', out);
    while (*next != '\0') {
        char piece[8];

        next += escape_one(next, piece);
        fputs(piece, out);
    }
    fputc('"', out);
}
