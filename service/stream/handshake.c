/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/stream/handshake.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "kernels/view.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

static int __attribute__((format(printf, 2, 3)))
wrong(char why[PB_HANDSHAKE_WHY_BYTES], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, PB_HANDSHAKE_WHY_BYTES, format, args);
    va_end(args);
    return -EINVAL;
}

static int take_text(const struct pb_json_value *root, const char *key, char *out, size_t bytes,
                     char *why)
{
    const char *text = pb_json_get_text(root, key);
    if (text == NULL || strlen(text) >= bytes)
        return wrong(why, "%s must be a text of at most %zu bytes", key, bytes - 1);
    (void)snprintf(out, bytes, "%s", text);
    return 0;
}

static int take_count(const struct pb_json_value *root, const char *key, uint32_t most,
                      uint32_t *out, char *why)
{
    int64_t n = 0;
    if (pb_json_get_int(root, key, &n) != 0 || n < 1 || n > most)
        return wrong(why, "%s must be a number from 1 to %u", key, most);
    *out = (uint32_t)n;
    return 0;
}

static int take_type(const struct pb_json_value *root, struct pb_stream_request *out, char *why)
{
    static const enum pb_type types[PB_STREAM_TYPES] = {
        [PB_STREAM_UINT8] = PB_U8,    [PB_STREAM_UINT16] = PB_U16, [PB_STREAM_INT16] = PB_I16,
        [PB_STREAM_UINT32] = PB_U32,  [PB_STREAM_INT32] = PB_I32,  [PB_STREAM_FLOAT32] = PB_F32,
        [PB_STREAM_FLOAT64] = PB_F64,
    };
    const char *word = pb_json_get_text(root, "type");
    for (int t = 0; word != NULL && t < PB_STREAM_TYPES; t++)
        if (strcmp(word, pb_stream_type_word((enum pb_stream_type)t)) == 0) {
            out->format.type = (enum pb_stream_type)t;
            out->type = types[t];
            return 0;
        }
    return wrong(why, "type must be uint8, uint16, int16, uint32, int32, float32 or float64");
}

static int take_place(const struct pb_json_value *root, struct pb_stream_request *out, char *why)
{
    int64_t epsg = 0;
    const struct pb_json_value *transform = pb_json_get(root, "transform", &out->has_transform);
    if (out->has_transform && pb_json_count(transform) != 6)
        return wrong(why, "transform must have six numbers");
    for (size_t i = 0; out->has_transform && i < 6; i++) {
        out->transform[i] = pb_json_number_of(pb_json_at(transform, i), NAN);
        if (!isfinite(out->transform[i]))
            return wrong(why, "transform must have six numbers");
    }
    if (out->has_transform &&
        out->transform[1] * out->transform[5] - out->transform[2] * out->transform[4] == 0)
        return wrong(why, "transform puts all pixels on one line");
    const int rc = pb_json_get_int(root, "epsg", &epsg);
    if (rc == -EINVAL || epsg < 0 || epsg > UINT16_MAX)
        return wrong(why, "epsg must be a code of a coordinate system, at most %d", UINT16_MAX);
    out->epsg = (uint16_t)epsg;
    return 0;
}

static int take(const struct pb_json_value *root, struct pb_stream_request *out, char *why)
{
    int64_t version = 0;
    bool has_token = false;
    if (!pb_json_is_object(root))
        return wrong(why, "the request must be a JSON object in one line");
    if (pb_json_get_int(root, "version", &version) != 0 || version != VERSION)
        return wrong(why, "version must be %d", VERSION);
    int rc = take_text(root, "stream", out->stream, sizeof out->stream, why);
    (void)pb_json_get(root, "token", &has_token);
    if (rc == 0 && has_token)
        rc = take_text(root, "token", out->token, sizeof out->token, why);
    rc = rc ? rc : take_type(root, out, why);
    rc = rc ? rc : take_count(root, "bands", PB_STREAM_BANDS_MAX, &out->format.bands, why);
    rc = rc ? rc : take_count(root, "samples", PB_STREAM_SAMPLES_MAX, &out->format.samples, why);
    rc = rc ? rc
            : take_count(root, "group_lines", PB_STREAM_GROUP_LINES_MAX, &out->format.group_lines,
                         why);
    rc = rc ? rc : take_place(root, out, why);
    if (rc == 0 && pb_stream_slot_bytes(&out->format) == 0)
        rc = wrong(why, "a group is larger than %u MiB; write fewer lines in a group",
                   PB_STREAM_GROUP_BYTES_MAX >> 20);
    return rc;
}

int pb_handshake_parse(const char *line, size_t n, struct pb_stream_request *out,
                       char why[PB_HANDSHAKE_WHY_BYTES])
{
    struct pb_json_value *root = NULL;
    struct pb_stream_request request = {.token = ""};
    int rc = pb_json_parse(line, n, PB_STREAM_HANDSHAKE_BYTES, &root);
    if (rc == 0)
        rc = take(root, &request, why);
    else
        rc = rc == -ENOMEM ? rc : wrong(why, "the request must be a JSON object in one line");
    pb_json_release(root);
    if (rc == 0)
        *out = request;
    return rc;
}

size_t pb_handshake_refuse(const char *code, const char *message,
                           char out[PB_STREAM_HANDSHAKE_BYTES])
{
    size_t n = 0;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "error", code);
    pb_json_string(json, "message", message);
    pb_json_end(json);
    const char *text = pb_json_document(json, &n);
    if (text == NULL || n >= PB_STREAM_HANDSHAKE_BYTES)
        n = 0;
    if (n > 0)
        (void)memcpy(out, text, n);
    pb_json_destroy(json);
    return n;
}

int pb_handshake_group(const void *slot, const struct pb_stream_format *format,
                       struct pb_stream_group *out, int64_t *out_times_ns,
                       char why[PB_HANDSHAKE_WHY_BYTES])
{
    struct pb_stream_group group;
    (void)memcpy(&group, slot, sizeof group);
    if (group.lines < 1 || group.lines > format->group_lines)
        return wrong(why, "a group has %u lines; 1 to %u are possible", group.lines,
                     format->group_lines);
    if (group.line > INT64_MAX - PB_STREAM_GROUP_LINES_MAX)
        return wrong(why, "line number %llu is too large", (unsigned long long)group.line);
    if (group.has_times > 1)
        return wrong(why, "the header of a group makes no sense");
    (void)memset(out_times_ns, 0, format->group_lines * sizeof *out_times_ns);
    if (group.has_times)
        (void)memcpy(out_times_ns, (const unsigned char *)slot + pb_stream_times_offset(),
                     group.lines * sizeof *out_times_ns);
    for (uint32_t i = 0; i < group.lines; i++)
        if (out_times_ns[i] < 0)
            out_times_ns[i] = 0;
    *out = group;
    return 0;
}
