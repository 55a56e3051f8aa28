/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * json-c behind opaque pointers: struct pb_json_value * is a struct json_object * and nothing else.
 * json-c represents null as a NULL pointer, which is why every getter accepts NULL. */
#include "config/base/json_reader.h"

#include <errno.h>
#include <json-c/json.h>
#include <json-c/json_visit.h>
#include <math.h>
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

/* json-c reads NaN and Infinity, which are no JSON, and would write them again. */
static int refuse_infinite(json_object *object, int flags, json_object *parent, const char *key,
                           size_t *index, void *user)
{
    (void)flags;
    (void)parent;
    (void)key;
    (void)index;
    bool *found = user;
    if (!json_object_is_type(object, json_type_double) || isfinite(json_object_get_double(object)))
        return JSON_C_VISIT_RETURN_CONTINUE;
    *found = true;
    return JSON_C_VISIT_RETURN_STOP;
}

static bool is_finite(json_object *object)
{
    bool found = false;
    return json_c_visit(object, 0, refuse_infinite, &found) == 0 && !found;
}

/* A bare null would be indistinguishable from "nothing": it is refused as a document. */
int pb_json_parse(const char *text, size_t bytes, size_t max_bytes,
                  struct pb_json_value **out_value)
{
    if (bytes > max_bytes || bytes > INT32_MAX)
        return -EFBIG;
    if (memchr(text, '\0', bytes) != NULL)
        return -EINVAL;
    struct json_tokener *tokener = json_tokener_new_ex(PB_JSON_DEPTH_MAX);
    if (tokener == NULL)
        return -ENOMEM;
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *object = json_tokener_parse_ex(tokener, text, (int)bytes);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    if (error == json_tokener_continue) {
        /* The parser ends a number only at the next character. */
        object = json_tokener_parse_ex(tokener, "\n", 1);
        error = json_tokener_get_error(tokener);
    } else if (error == json_tokener_success) {
        size_t end = json_tokener_get_parse_end(tokener);
        while (end < bytes && strchr(" \t\r\n", text[end]) != NULL)
            end++;
        if (end < bytes)
            error = json_tokener_error_parse_unexpected;
    }
    json_tokener_free(tokener);
    if (error == json_tokener_success && object != NULL && is_finite(object)) {
        *out_value = (struct pb_json_value *)(void *)object;
        return 0;
    }
    json_object_put(object);
    return error == json_tokener_error_depth ? -EFBIG : -EINVAL;
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

const char *pb_json_source(const struct pb_json_value *value)
{
    return json_object_to_json_string_ext(object_of(value),
                                          JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
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
