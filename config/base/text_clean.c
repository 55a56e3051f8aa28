/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/text_clean.h"

#include <stdint.h>
#include <string.h>

/* The NUL at the end stops it, as it is no continuation byte. */
size_t pb_text_character(const char *text, uint32_t *out_code)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
        return 0;
    uint32_t code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *out_code = code;
    return n;
}

bool pb_text_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

size_t pb_text_clean(const char *text, char *out, size_t out_bytes)
{
    const char *s = text ? text : "";
    size_t n = 0;
    while (*s != '\0') {
        uint32_t code = 0;
        size_t bytes = pb_text_character(s, &code);
        size_t skip = bytes ? bytes : 1;
        const char *put = s;
        if (bytes == 0)
            put = "?";
        else if (pb_text_is_control(code))
            put = " ";
        size_t put_bytes = put == s ? bytes : 1;
        if (n + put_bytes >= out_bytes)
            break;
        if (n > 0 || *put != ' ') {
            memcpy(out + n, put, put_bytes);
            n += put_bytes;
        }
        s += skip;
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    return n;
}
