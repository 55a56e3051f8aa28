/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* One growing buffer and a stack of what is open. Every value goes through begin(), which writes
 * the comma, the line break and the key, and refuses what would not be JSON: a key in an array, no
 * key in an object, a second value at the top. After an error nothing more is written. */
#include "config/base/json_writer.h"

#include "config/base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64

struct pb_json {
    char *text;
    size_t length, capacity;
    bool pretty, failed;
    int depth;
    struct {
        char close; /* '}' or ']' */
        bool filled;
    } open[DEPTH_MAX + 1]; /* [0] is the top */
};

struct pb_json *pb_json_create(bool pretty)
{
    struct pb_json *json = calloc(1, sizeof *json);
    if (json)
        json->pretty = pretty;
    return json;
}

void pb_json_destroy(struct pb_json *json)
{
    if (json)
        free(json->text);
    free(json);
}

static void put(struct pb_json *json, const char *text, size_t bytes)
{
    if (json->failed)
        return;
    if (bytes >= json->capacity - json->length) { /* keeps one byte for the NUL */
        size_t capacity = json->capacity ? json->capacity : 256;
        while (capacity - json->length <= bytes)
            capacity *= 2;
        char *grown = realloc(json->text, capacity);
        if (grown == NULL) {
            json->failed = true;
            return;
        }
        json->text = grown;
        json->capacity = capacity;
    }
    memcpy(json->text + json->length, text, bytes);
    json->length += bytes;
    json->text[json->length] = '\0';
}

/* Bytes of the UTF-8 sequence at p, 0 when it is not well-formed (RFC 3629: nothing overlong, no
 * surrogates, nothing over U+10FFFF). Reads no further than the NUL. */
static size_t sequence(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    size_t bytes = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    unsigned char low = 0x80, high = 0xBF;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    for (size_t i = 1; i < bytes; i++) {
        if (p[i] < low || p[i] > high)
            return 0;
        low = 0x80;
        high = 0xBF;
    }
    return bytes;
}

static void put_escape(struct pb_json *json, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *known = strchr(from, c);
    char text[8];
    int n = known ? snprintf(text, sizeof text, "\\%c", to[known - from])
                  : snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
    put(json, text, (size_t)n);
}

static void put_string(struct pb_json *json, const char *value)
{
    put(json, "\"", 1);
    const unsigned char *p = (const unsigned char *)value, *run = p;
    while (*p) {
        if (*p >= 0x20 && *p < 0x7F && *p != '"' && *p != '\\') { /* most of them */
            p++;
            continue;
        }
        size_t bytes = sequence(p);
        if (bytes > 1) {
            p += bytes;
            continue;
        }
        put(json, (const char *)run, (size_t)(p - run));
        if (bytes)
            put_escape(json, *p);
        else
            put(json, "\xEF\xBF\xBD", 3);
        run = ++p;
    }
    put(json, (const char *)run, (size_t)(p - run));
    put(json, "\"", 1);
}

static void new_line(struct pb_json *json)
{
    if (!json->pretty)
        return;
    put(json, "\n", 1);
    for (int i = 0; i < json->depth; i++)
        put(json, "  ", 2);
}

/* Everything that stands before a value. False: write nothing. */
static bool begin(struct pb_json *json, const char *key)
{
    if (json == NULL || json->failed)
        return false;
    bool in_object = json->depth > 0 && json->open[json->depth].close == '}';
    if (in_object != (key != NULL) || (json->depth == 0 && json->open[0].filled)) {
        json->failed = true;
        return false;
    }
    if (json->open[json->depth].filled)
        put(json, ",", 1);
    if (json->depth > 0)
        new_line(json);
    json->open[json->depth].filled = true;
    if (key) {
        put_string(json, key);
        put(json, ": ", json->pretty ? 2 : 1);
    }
    return true;
}

static void start(struct pb_json *json, const char *key, const char *bracket, char close)
{
    if (!begin(json, key))
        return;
    if (json->depth == DEPTH_MAX) {
        json->failed = true;
        return;
    }
    put(json, bracket, 1);
    json->depth++;
    json->open[json->depth].close = close;
    json->open[json->depth].filled = false;
}

void pb_json_object(struct pb_json *json, const char *key)
{
    start(json, key, "{", '}');
}

void pb_json_array(struct pb_json *json, const char *key)
{
    start(json, key, "[", ']');
}

void pb_json_end(struct pb_json *json)
{
    if (json == NULL || json->failed)
        return;
    if (json->depth == 0) {
        json->failed = true;
        return;
    }
    bool filled = json->open[json->depth].filled;
    char close = json->open[json->depth].close;
    json->depth--;
    if (filled)
        new_line(json);
    put(json, &close, 1);
}

void pb_json_raw(struct pb_json *json, const char *key, const char *text)
{
    if (!begin(json, key))
        return;
    if (text == NULL || *text == '\0')
        json->failed = true;
    else
        put(json, text, strlen(text));
}

void pb_json_null(struct pb_json *json, const char *key)
{
    pb_json_raw(json, key, "null");
}

void pb_json_bool(struct pb_json *json, const char *key, bool value)
{
    pb_json_raw(json, key, value ? "true" : "false");
}

void pb_json_string(struct pb_json *json, const char *key, const char *value)
{
    if (value == NULL)
        pb_json_null(json, key);
    else if (begin(json, key))
        put_string(json, value);
}

void pb_json_number(struct pb_json *json, const char *key, double value)
{
    char text[PB_NUMBER_TEXT] = "null";
    if (isfinite(value))
        (void)pb_number_text(value, text);
    pb_json_raw(json, key, text);
}

void pb_json_float(struct pb_json *json, const char *key, float value)
{
    char text[PB_NUMBER_TEXT] = "null";
    if (isfinite(value))
        (void)pb_number_text_float(value, text);
    pb_json_raw(json, key, text);
}

void pb_json_int(struct pb_json *json, const char *key, int64_t value)
{
    char text[32], *at = text + sizeof text;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    *--at = '\0';
    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        *--at = '-';
    pb_json_raw(json, key, at);
}

const char *pb_json_text(struct pb_json *json, size_t *out_bytes)
{
    if (json == NULL || json->failed)
        return NULL;
    if (out_bytes)
        *out_bytes = json->length;
    return json->text ? json->text : "";
}

const char *pb_json_document(struct pb_json *json, size_t *out_bytes)
{
    if (json != NULL)
        put(json, "\n", 1);
    return pb_json_text(json, out_bytes);
}
