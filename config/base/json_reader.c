/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * json-c behind opaque pointers: struct pb_json_value * is a struct json_object * and nothing else.
 * json-c represents null as a NULL pointer, which is why every getter accepts NULL. */
#include "config/base/json_reader.h"
#include "config/base/text_clean.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* json-c's accessors take non-const pointers even where they change nothing. */
static struct json_object *object_of(const struct pb_json_value *value)
{
    union {
        const struct pb_json_value *in;
        struct json_object *out;
    } cast = {.in = value};
    return cast.out;
}

static const struct pb_json_value *value_of(struct json_object *object)
{
    return (const struct pb_json_value *)(void *)object;
}

/* --- the parser --- */

/* The texts are parsed here and not by json-c's tokener, which takes no notice of a lack of memory:
 * it crashes for a key, and leaves members and elements out. Its constructors report it. */
struct parser {
    const char *at, *end;
    char *scratch; /* decoded strings, NUL-terminated; none is longer than its source */
    size_t used;   /* by keys of the objects around the place */
};

static int parse_value(struct parser *parser, int depth, json_object **out);

static char next(const struct parser *parser)
{
    return parser->at < parser->end ? *parser->at : '\0';
}

static void skip_space(struct parser *parser)
{
    while (parser->at < parser->end && strchr(" \t\r\n", *parser->at) != NULL)
        parser->at++;
}

static bool take(struct parser *parser, char what)
{
    skip_space(parser);
    if (next(parser) != what)
        return false;
    parser->at++;
    return true;
}

static bool take_word(struct parser *parser, const char *word)
{
    size_t bytes = strlen(word);
    if ((size_t)(parser->end - parser->at) < bytes || memcmp(parser->at, word, bytes) != 0)
        return false;
    parser->at += bytes;
    return true;
}

static size_t take_digits(struct parser *parser)
{
    const char *from = parser->at;
    while (next(parser) >= '0' && next(parser) <= '9')
        parser->at++;
    return (size_t)(parser->at - from);
}

/* False: no number of JSON. */
static bool take_number(struct parser *parser, bool *out_whole)
{
    *out_whole = true;
    if (next(parser) == '-')
        parser->at++;
    bool zero = next(parser) == '0';
    size_t digits = take_digits(parser);
    if (digits == 0 || (zero && digits > 1))
        return false;
    if (next(parser) == '.') {
        *out_whole = false;
        parser->at++;
        if (take_digits(parser) == 0)
            return false;
    }
    if (next(parser) == 'e' || next(parser) == 'E') {
        *out_whole = false;
        parser->at++;
        if (next(parser) == '+' || next(parser) == '-')
            parser->at++;
        return take_digits(parser) > 0;
    }
    return true;
}

static json_object *new_integer(const char *text)
{
    if (text[0] == '-')
        return json_object_new_int64(strtoll(text, NULL, 10));
    uint64_t number = strtoull(text, NULL, 10);
    return number <= INT64_MAX ? json_object_new_int64((int64_t)number)
                               : json_object_new_uint64(number);
}

static bool is_integer(const char *text)
{
    errno = 0;
    if (text[0] == '-')
        (void)strtoll(text, NULL, 10);
    else
        (void)strtoull(text, NULL, 10);
    return errno == 0;
}

/* An integer beyond 64 bits is kept as other numbers are. */
static int parse_number(struct parser *parser, json_object **out)
{
    const char *from = parser->at;
    bool whole;
    if (!take_number(parser, &whole))
        return -EINVAL;
    char *text = parser->scratch + parser->used;
    size_t bytes = (size_t)(parser->at - from);
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    if (whole && is_integer(text)) {
        *out = new_integer(text);
    } else {
        double number = strtod(text, NULL);
        if (!isfinite(number))
            return -EINVAL;
        *out = json_object_new_double_s(number, text);
    }
    return *out != NULL ? 0 : -ENOMEM;
}

/* Four hexadecimal digits, or -1. */
static int32_t take_hex(struct parser *parser)
{
    int32_t code = 0;
    for (int i = 0; i < 4; i++, parser->at++) {
        char c = next(parser);
        if (c >= '0' && c <= '9')
            code = code * 16 + c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            code = code * 16 + (c | 32) - 'a' + 10;
        else
            return -1;
    }
    return code;
}

static size_t put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(first[n] | code);
    return n;
}

/* The character of \uXXXX, or of two that are a surrogate pair; half a pair is U+FFFD. */
static int64_t take_code(struct parser *parser)
{
    int64_t code = take_hex(parser);
    if (code < 0xd800 || code > 0xdfff)
        return code;
    const char *after = parser->at;
    if (code < 0xdc00 && take_word(parser, "\\u")) {
        int32_t low = take_hex(parser);
        if (low < 0)
            return -1;
        if (low >= 0xdc00 && low <= 0xdfff)
            return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        parser->at = after;
    }
    return 0xfffd;
}

/* What follows a backslash. 0 bytes: no escape of JSON. */
static size_t take_escape(struct parser *parser, char *to)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char name = next(parser);
    if (parser->at == parser->end)
        return 0;
    parser->at++;
    if (name == 'u') {
        int64_t code = take_code(parser);
        return code < 0 ? 0 : put_utf8(to, (uint32_t)code);
    }
    const char *known = strchr(names, name);
    if (known == NULL)
        return 0;
    *to = meanings[known - names];
    return 1;
}

/* Bytes of the UTF-8 character at the place, 0 = none. */
static size_t character(const struct parser *parser)
{
    char text[5] = ""; /* the parser's text does not end with a NUL */
    uint32_t code;
    size_t left = (size_t)(parser->end - parser->at);
    memcpy(text, parser->at, left < 4 ? left : 4);
    return pb_text_character(text, &code);
}

/* The string behind the opening quote, into the scratch; the caller frees its place. */
static int take_string(struct parser *parser, const char **out_text, size_t *out_bytes)
{
    char *text = parser->scratch + parser->used, *to = text;
    while (parser->at < parser->end && *parser->at != '"') {
        size_t n = character(parser);
        if (*parser->at == '\\') {
            parser->at++;
            n = take_escape(parser, to);
        } else {
            memcpy(to, parser->at, n);
            parser->at += n;
        }
        if (n == 0)
            return -EINVAL;
        to += n;
    }
    if (parser->at == parser->end)
        return -EINVAL;
    parser->at++;
    *to = '\0';
    *out_text = text;
    *out_bytes = (size_t)(to - text);
    return 0;
}

static int parse_string(struct parser *parser, json_object **out)
{
    const char *text;
    size_t bytes;
    int rc = take_string(parser, &text, &bytes);
    if (rc != 0)
        return rc;
    *out = json_object_new_string_len(text, (int)bytes);
    return *out != NULL ? 0 : -ENOMEM;
}

static int parse_member(struct parser *parser, int depth, json_object *object)
{
    const char *key;
    size_t bytes, used = parser->used;
    json_object *member = NULL;
    int rc = take(parser, '"') ? take_string(parser, &key, &bytes) : -EINVAL;
    if (rc != 0)
        return rc;
    parser->used += bytes + 1;
    rc = take(parser, ':') ? parse_value(parser, depth, &member) : -EINVAL;
    parser->used = used;
    if (rc == 0 && json_object_object_add(object, key, member) == 0)
        return 0;
    json_object_put(member);
    return rc != 0 ? rc : -ENOMEM;
}

static int parse_object(struct parser *parser, int depth, json_object **out)
{
    *out = json_object_new_object();
    if (*out == NULL)
        return -ENOMEM;
    if (take(parser, '}'))
        return 0;
    int rc;
    while ((rc = parse_member(parser, depth, *out)) == 0 && take(parser, ','))
        ;
    if (rc != 0)
        return rc;
    return take(parser, '}') ? 0 : -EINVAL;
}

static int parse_array(struct parser *parser, int depth, json_object **out)
{
    *out = json_object_new_array();
    if (*out == NULL)
        return -ENOMEM;
    if (take(parser, ']'))
        return 0;
    do {
        json_object *element = NULL;
        int rc = parse_value(parser, depth, &element);
        if (rc == 0 && json_object_array_add(*out, element) != 0)
            rc = -ENOMEM;
        if (rc != 0) {
            json_object_put(element);
            return rc;
        }
    } while (take(parser, ','));
    return take(parser, ']') ? 0 : -EINVAL;
}

/* On failure *out is a part of the value, which the caller releases too. */
static int parse_value(struct parser *parser, int depth, json_object **out)
{
    if (depth >= PB_JSON_DEPTH_MAX)
        return -EFBIG;
    if (take(parser, '{'))
        return parse_object(parser, depth + 1, out);
    if (take(parser, '['))
        return parse_array(parser, depth + 1, out);
    if (take(parser, '"'))
        return parse_string(parser, out);
    if (take_word(parser, "null"))
        return 0;
    bool truth = take_word(parser, "true");
    if (!truth && !take_word(parser, "false"))
        return parse_number(parser, out);
    *out = json_object_new_boolean(truth);
    return *out != NULL ? 0 : -ENOMEM;
}

/* A bare null would be indistinguishable from "nothing": it is refused as a document. */
int pb_json_parse(const char *text, size_t bytes, size_t max_bytes,
                  struct pb_json_value **out_value)
{
    if (bytes > max_bytes || bytes > INT32_MAX)
        return -EFBIG;
    if (memchr(text, '\0', bytes) != NULL)
        return -EINVAL;
    struct parser parser = {.at = text, .end = text + bytes, .scratch = malloc(bytes + 1)};
    if (parser.scratch == NULL)
        return -ENOMEM;
    json_object *object = NULL;
    int rc = parse_value(&parser, 0, &object);
    skip_space(&parser);
    if (rc == 0 && (object == NULL || parser.at < parser.end))
        rc = -EINVAL;
    free(parser.scratch);
    if (rc == 0)
        *out_value = (struct pb_json_value *)(void *)object;
    else
        json_object_put(object);
    return rc;
}

void pb_json_release(struct pb_json_value *value)
{
    json_object_put(object_of(value));
}

bool pb_json_is_object(const struct pb_json_value *value)
{
    return json_object_is_type(object_of(value), json_type_object) != 0;
}

bool pb_json_is_array(const struct pb_json_value *value)
{
    return json_object_is_type(object_of(value), json_type_array) != 0;
}

bool pb_json_is_null(const struct pb_json_value *value)
{
    return value == NULL;
}

bool pb_json_is_plain(const struct pb_json_value *value)
{
    enum json_type type = json_object_get_type(object_of(value));
    return type == json_type_int || type == json_type_double || type == json_type_boolean;
}

bool pb_json_is_id(const struct pb_json_value *value)
{
    enum json_type type = json_object_get_type(object_of(value));
    return type == json_type_int || type == json_type_double || type == json_type_string;
}

const struct pb_json_value *pb_json_get(const struct pb_json_value *value, const char *key,
                                        bool *out_found)
{
    struct json_object *member = NULL;
    bool found =
        pb_json_is_object(value) && json_object_object_get_ex(object_of(value), key, &member) != 0;
    if (out_found != NULL)
        *out_found = found;
    return value_of(member);
}

size_t pb_json_count(const struct pb_json_value *value)
{
    return pb_json_is_array(value) ? json_object_array_length(object_of(value)) : 0;
}

const struct pb_json_value *pb_json_at(const struct pb_json_value *value, size_t i)
{
    if (i >= pb_json_count(value))
        return NULL;
    return value_of(json_object_array_get_idx(object_of(value), i));
}

const char *pb_json_text_of(const struct pb_json_value *value)
{
    struct json_object *object = object_of(value);
    if (!json_object_is_type(object, json_type_string))
        return NULL;
    const char *text = json_object_get_string(object);
    return strlen(text) == (size_t)json_object_get_string_len(object) ? text : NULL;
}

const char *pb_json_get_text(const struct pb_json_value *value, const char *key)
{
    return pb_json_text_of(pb_json_get(value, key, NULL));
}

int pb_json_get_int(const struct pb_json_value *value, const char *key, int64_t *out)
{
    struct json_object *member = object_of(pb_json_get(value, key, NULL));
    if (member == NULL)
        return -ENOENT;
    if (!json_object_is_type(member, json_type_int))
        return -EINVAL;
    *out = json_object_get_int64(member);
    return 0;
}

int pb_json_get_bool(const struct pb_json_value *value, const char *key, bool *out)
{
    struct json_object *member = object_of(pb_json_get(value, key, NULL));
    if (member == NULL)
        return -ENOENT;
    if (!json_object_is_type(member, json_type_boolean))
        return -EINVAL;
    *out = json_object_get_boolean(member) != 0;
    return 0;
}

double pb_json_number_of(const struct pb_json_value *value, double otherwise)
{
    struct json_object *object = object_of(value);
    enum json_type type = json_object_get_type(object);
    return type == json_type_int || type == json_type_double ? json_object_get_double(object)
                                                             : otherwise;
}

/* --- writing a value again --- */

static size_t string_bytes(const char *text, size_t n)
{
    size_t bytes = 2;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)text[i];
        bool named = c == '"' || c == '\\' || (c != '\0' && strchr("\b\f\n\r\t", c) != NULL);
        bytes += named ? 2 : c < ' ' ? 6 : 1;
    }
    return bytes;
}

static size_t integer_bytes(struct json_object *object)
{
    int64_t number = json_object_get_int64(object);
    uint64_t left = number < 0 ? 0 - (uint64_t)number : json_object_get_uint64(object);
    size_t bytes = number < 0 ? 2 : 1;
    while ((left /= 10) > 0)
        bytes++;
    return bytes;
}

/* Bytes of the value as compact JSON. */
static size_t source_bytes(struct json_object *object)
{
    size_t bytes = 2, n;
    switch (json_object_get_type(object)) {
    case json_type_null:
        return strlen("null");
    case json_type_boolean:
        return json_object_get_boolean(object) ? strlen("true") : strlen("false");
    case json_type_int:
        return integer_bytes(object);
    case json_type_double:
        return strlen(json_object_get_userdata(object)); /* its text in the source */
    case json_type_string:
        return string_bytes(json_object_get_string(object),
                            (size_t)json_object_get_string_len(object));
    case json_type_array:
        n = json_object_array_length(object);
        for (size_t i = 0; i < n; i++)
            bytes += (i > 0) + source_bytes(json_object_array_get_idx(object, i));
        return bytes;
    case json_type_object:
        n = 0;
        json_object_object_foreach(object, key, member)
        {
            bytes += (n++ > 0) + string_bytes(key, strlen(key)) + 1 + source_bytes(member);
        }
        return bytes;
    }
    return 0;
}

/* json-c leaves parts out for which it has no memory. */
const char *pb_json_source(const struct pb_json_value *value)
{
    size_t bytes = 0;
    const char *text = json_object_to_json_string_length(
        object_of(value), JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &bytes);
    return text != NULL && bytes == source_bytes(object_of(value)) ? text : NULL;
}

const char *pb_json_key(const struct pb_json_value *value, size_t i)
{
    if (!pb_json_is_object(value))
        return NULL;
    json_object_object_foreach(object_of(value), key, member)
    {
        (void)member;
        if (i-- == 0)
            return key;
    }
    return NULL;
}
