/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_REPLY_H
#define PB_WEB_REPLY_H
/* Responses: their headers, errors, texts, files with ranges, and streams. Texts are malloc'd and
 * taken; NULL is out of memory, and ends the connection. Thread: that of the connection. */
#include "config/base/err.h"

#include <microhttpd.h>

struct pb_json;
struct pb_web_asset;
struct pb_web_document;
struct pb_web_file;
struct pb_web_stream;

/* Value of a header of the request; NULL if absent. */
const char *pb_web_header(struct MHD_Connection *connection, const char *name);
/* The same; "" for a header that occurs several times. */
const char *pb_web_header_once(struct MHD_Connection *connection, const char *name);
/* Value of an argument of the query, as received; NULL if absent. */
const char *pb_web_argument(struct MHD_Connection *connection, const char *name);

/* The text of json, malloc'd; destroys json. */
char *pb_web_text(struct pb_json *json);
/* Makes {"error": {code, message, hint}}, malloc'd. */
char *pb_web_error_text(const char *code, const char *message, const char *hint);
/* HTTP status of a fault that the service or the connection to it reports. */
unsigned pb_web_status(const struct pb_err *err);

enum MHD_Result pb_web_send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *media_type, char *text);
/* Sends a text with a further header. */
enum MHD_Result pb_web_send_with(struct MHD_Connection *connection, unsigned status,
                                 const char *media_type, char *text, const char *name,
                                 const char *value);
enum MHD_Result pb_web_send_error(struct MHD_Connection *connection, unsigned status,
                                  const char *code, const char *message, const char *hint);
enum MHD_Result pb_web_send_failure(struct MHD_Connection *connection, const struct pb_err *err);
enum MHD_Result pb_web_send_not_found(struct MHD_Connection *connection);
/* Sends a file of the page. images: further sources of pictures for its policy; "" = none. */
enum MHD_Result pb_web_send_asset(struct MHD_Connection *connection,
                                  const struct pb_web_asset *asset, const char *images);
/* Sends a file, or the part of it that the Range header names. Takes the descriptor. */
enum MHD_Result pb_web_send_file(struct MHD_Connection *connection, const struct pb_web_file *file);
/* Sends a document of a standard API; takes its text. */
enum MHD_Result pb_web_send_document(struct MHD_Connection *connection,
                                     const struct pb_web_document *document);
/* Sends events until the browser or the server closes the stream. Takes the stream. */
enum MHD_Result pb_web_send_stream(struct MHD_Connection *connection, struct pb_web_stream *stream);
#endif
