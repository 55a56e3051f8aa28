/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/reply.h"

#include "config/base/json_writer.h"
#include "service/web/document.h"
#include "service/web/events.h"
#include "service/web/files.h"
#include "service/web/page.h"
#include "service/web/request.h"
#include "service/web/upstream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define STREAM_BLOCK 16384

#define POLICY_FILE "default-src 'none'; sandbox; frame-ancestors 'none'"
#define POLICY_PAGE                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "             \
    "img-src 'self'"
#define POLICY_BYTES (sizeof POLICY_PAGE + 1 + PB_WEB_TILES_BYTES)

/* --- parts of responses --- */

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

/* Headers of all responses: the page may load nothing from elsewhere but tiles of the base map, and
 * no other page may use or frame what is here. Files are data: nothing in them runs. */
static void add_common(struct MHD_Response *response, const char *media_type, const char *policy)
{
    add(response, "Content-Type", media_type);
    add(response, "Content-Security-Policy", policy);
    add(response, "X-Content-Type-Options", "nosniff");
    add(response, "Referrer-Policy", "no-referrer");
    add(response, "Cross-Origin-Resource-Policy", "same-origin");
    add(response, "Cross-Origin-Opener-Policy", "same-origin");
}

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
                                     struct MHD_Response *response)
{
    const enum MHD_Result sent = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

/* Makes the response of a text (malloc'd, taken). NULL = out of memory. */
static struct MHD_Response *make_text(const char *media_type, char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return NULL;
    }
    add_common(response, media_type, POLICY_PAGE);
    add(response, "Cache-Control", "no-store");
    return response;
}

enum MHD_Result pb_web_send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *media_type, char *text)
{
    struct MHD_Response *response = make_text(media_type, text);
    if (response != NULL && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        add(response, "Retry-After", "2");
    return response ? send_response(connection, status, response) : MHD_NO;
}

char *pb_web_text(struct pb_json *json)
{
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

char *pb_web_error_text(const char *code, const char *message, const char *hint)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_object(json, "error");
    pb_json_string(json, "code", code);
    pb_json_string(json, "message", message);
    pb_json_string(json, "hint", hint);
    pb_json_end(json);
    pb_json_end(json);
    return pb_web_text(json);
}

enum MHD_Result pb_web_send_error(struct MHD_Connection *connection, unsigned status,
                                  const char *code, const char *message, const char *hint)
{
    char *text = pb_web_error_text(code, message, hint);
    return text ? pb_web_send_text(connection, status, "application/json", text) : MHD_NO;
}

enum MHD_Result pb_web_send_with(struct MHD_Connection *connection, unsigned status,
                                 const char *media_type, char *text, const char *name,
                                 const char *value)
{
    struct MHD_Response *response = text ? make_text(media_type, text) : NULL;
    if (response == NULL)
        return MHD_NO;
    add(response, name, value);
    return send_response(connection, status, response);
}

enum MHD_Result pb_web_send_not_found(struct MHD_Connection *connection)
{
    return pb_web_send_error(connection, MHD_HTTP_NOT_FOUND, "not_found",
                             "nothing is at this address",
                             "Files are here only if pushbroom made them and they still exist.");
}

unsigned pb_web_status(const struct pb_err *err)
{
    switch (err->code) {
    case PB_E_JOB_UNKNOWN:
        return MHD_HTTP_NOT_FOUND;
    case PB_E_SERVICE_PROTOCOL:
    case PB_E_USAGE:
    case PB_E_INPUT_MISSING:
    case PB_E_INPUT_DENIED:
        return MHD_HTTP_BAD_REQUEST;
    case PB_E_SERVICE_DENIED:
        return MHD_HTTP_FORBIDDEN;
    case PB_E_JOB_STATE:
    case PB_E_JOB_SUPERSEDED:
    case PB_E_INPUT_GONE:
        return MHD_HTTP_CONFLICT;
    case PB_E_SERVICE_UNREACHABLE:
    case PB_E_SERVICE_BUSY:
    case PB_E_SERVICE_STATE:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_BAD_GATEWAY;
    }
}

enum MHD_Result pb_web_send_failure(struct MHD_Connection *connection, const struct pb_err *err)
{
    return pb_web_send_error(connection, pb_web_status(err), pb_code_id(err->code), err->msg,
                             pb_code_hint(err->code));
}

const char *pb_web_header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A header that is looked for. */
struct sought {
    const char *name, *value;
};

static enum MHD_Result take_header(void *user, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct sought *sought = user;
    (void)kind;
    if (strcasecmp(name, sought->name) == 0)
        sought->value = sought->value == NULL && value != NULL ? value : "";
    return MHD_YES;
}

const char *pb_web_header_once(struct MHD_Connection *connection, const char *name)
{
    struct sought sought = {.name = name};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, take_header, &sought);
    return sought.value;
}

const char *pb_web_argument(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

/* Headers by which a cache decides about content. varies: the address has two forms. */
static void add_conditions(struct MHD_Response *response, const char *tag, bool varies)
{
    add(response, "ETag", tag);
    add(response, "Cache-Control", "no-cache");
    if (varies)
        add(response, "Vary", "Accept");
}

/* The headers are those of the whole answer: a browser puts them in place of the ones it has. */
static enum MHD_Result send_not_modified(struct MHD_Connection *connection, const char *tag,
                                         const char *media_type, const char *policy, bool varies)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    add_common(response, media_type, policy);
    add_conditions(response, tag, varies);
    return send_response(connection, MHD_HTTP_NOT_MODIFIED, response);
}

/* Returns true if the browser has this content already. */
static bool is_known(struct MHD_Connection *connection, const char *tag)
{
    const char *known = pb_web_header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    return known != NULL && (strcmp(known, "*") == 0 || strstr(known, tag) != NULL);
}

static void hash_text(const char *text, size_t bytes, char out_tag[32])
{
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ (unsigned char)text[i]) * 1099511628211u;
    (void)snprintf(out_tag, 32, "\"%016" PRIx64 "\"", sum);
}

/* --- responses with content --- */

enum MHD_Result pb_web_send_asset(struct MHD_Connection *connection,
                                  const struct pb_web_asset *asset, const char *images)
{
    const size_t bytes = (size_t)(asset->end - asset->content);
    const bool varies = strcmp(asset->path, "/") == 0;
    char policy[POLICY_BYTES], tag[32];
    (void)snprintf(policy, sizeof policy, POLICY_PAGE " %s", images);
    hash_text(asset->content, bytes, tag);
    if (is_known(connection, tag))
        return send_not_modified(connection, tag, asset->media_type, policy, varies);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        bytes, (void *)(uintptr_t)asset->content, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    add_common(response, asset->media_type, policy);
    add_conditions(response, tag, varies);
    return send_response(connection, MHD_HTTP_OK, response);
}

enum MHD_Result pb_web_send_file(struct MHD_Connection *connection, const struct pb_web_file *file)
{
    if (is_known(connection, file->tag)) {
        (void)close(file->fd);
        return send_not_modified(connection, file->tag, file->media_type, POLICY_FILE, false);
    }
    char range_text[80];
    uint64_t first = 0, bytes = file->bytes;
    const char *condition = pb_web_header(connection, MHD_HTTP_HEADER_IF_RANGE);
    enum pb_web_range range = condition == NULL || strcmp(condition, file->tag) == 0
                                  ? pb_web_range(pb_web_header(connection, MHD_HTTP_HEADER_RANGE),
                                                 file->bytes, &first, &bytes)
                                  : PB_WEB_RANGE_WHOLE;
    const bool outside = range == PB_WEB_RANGE_OUTSIDE;
    struct MHD_Response *response =
        outside ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT)
                : MHD_create_response_from_fd_at_offset64(bytes, file->fd, first);
    if (outside || response == NULL)
        (void)close(file->fd);
    if (response == NULL)
        return MHD_NO;
    if (outside)
        (void)snprintf(range_text, sizeof range_text, "bytes */%" PRIu64, file->bytes);
    else
        (void)snprintf(range_text, sizeof range_text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                       first, first + bytes - 1, file->bytes);
    add_common(response, file->media_type, POLICY_FILE);
    add_conditions(response, file->tag, false);
    add(response, "Accept-Ranges", "bytes");
    if (range != PB_WEB_RANGE_WHOLE)
        add(response, "Content-Range", range_text);
    return send_response(connection,
                         outside                      ? MHD_HTTP_RANGE_NOT_SATISFIABLE
                         : range == PB_WEB_RANGE_PART ? MHD_HTTP_PARTIAL_CONTENT
                                                      : MHD_HTTP_OK,
                         response);
}

enum MHD_Result pb_web_send_document(struct MHD_Connection *connection,
                                     const struct pb_web_document *document)
{
    char tag[32];
    if (document->text == NULL)
        return MHD_NO; /* no memory */
    if (document->status != MHD_HTTP_OK)
        return pb_web_send_text(connection, document->status, document->media_type, document->text);
    const size_t bytes = strlen(document->text);
    hash_text(document->text, bytes, tag);
    if (is_known(connection, tag)) {
        free(document->text);
        return send_not_modified(connection, tag, document->media_type, POLICY_PAGE,
                                 document->varies);
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes, document->text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(document->text);
        return MHD_NO;
    }
    add_common(response, document->media_type, POLICY_PAGE);
    add_conditions(response, tag, document->varies);
    return send_response(connection, MHD_HTTP_OK, response);
}

static ssize_t read_stream(void *stream, uint64_t position, char *out, size_t bytes)
{
    (void)position;
    const ssize_t n = pb_web_stream_read(stream, out, bytes);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void close_stream(void *stream)
{
    pb_web_stream_close(stream);
}

enum MHD_Result pb_web_send_stream(struct MHD_Connection *connection, struct pb_web_stream *stream)
{
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, stream, close_stream);
    if (response == NULL) {
        pb_web_stream_close(stream);
        return MHD_NO;
    }
    add_common(response, "text/event-stream", POLICY_PAGE);
    add(response, "Cache-Control", "no-store");
    add(response, "X-Accel-Buffering", "no"); /* for nginx as a proxy */
    return send_response(connection, MHD_HTTP_OK, response);
}
