/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/json_path.h"

#include "config/base/text_clean.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "bytes:"

static bool is_plain(const char *path)
{
    uint32_t code;
    size_t step = 1;
    for (const char *s = path; *s != '\0' && step > 0; s += step)
        step = pb_text_character(s, &code);
    return step > 0 && strncmp(path, PREFIX, strlen(PREFIX)) != 0;
}

void pb_json_path(struct pb_json *json, const char *key, const char *path)
{
    char text[3 * PB_JSON_PATH_BYTES + sizeof PREFIX] = PREFIX;
    size_t n = strlen(PREFIX);
    if (path == NULL || is_plain(path)) {
        pb_json_string(json, key, path);
        return;
    }
    for (const unsigned char *s = (const unsigned char *)path; *s != '\0' && n + 4 <= sizeof text;
         s++) {
        if (*s > 0x20 && *s < 0x7f && *s != '%')
            text[n++] = (char)*s;
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%%%02X", *s);
    }
    text[n] = '\0';
    pb_json_string(json, key, text);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

const char *pb_json_path_of(const char *text, char room[PB_JSON_PATH_BYTES])
{
    size_t n = 0;
    if (text == NULL || strncmp(text, PREFIX, strlen(PREFIX)) != 0)
        return text;
    for (const char *s = text + strlen(PREFIX); *s != '\0'; s++) {
        int byte = (unsigned char)*s;
        if (*s == '%') {
            const int high = digit_of(s[1]), low = high >= 0 ? digit_of(s[2]) : -1;
            byte = low >= 0 ? high * 16 + low : 0;
            s += 2;
        }
        if (byte == 0 || n + 1 >= PB_JSON_PATH_BYTES)
            return NULL;
        room[n++] = (char)byte;
    }
    room[n] = '\0';
    return room;
}

const char *pb_json_get_path(const struct pb_json_value *value, const char *key,
                             char room[PB_JSON_PATH_BYTES])
{
    return pb_json_path_of(pb_json_get_text(value, key), room);
}
