/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_DOCUMENT_H
#define PB_WEB_DOCUMENT_H
/* JSON documents of the standard APIs (STAC API, OGC API): the query of a request, links with the
 * address of this server, and exceptions. Pure functions; thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct pb_json;
struct pb_json_value;

#define PB_WEB_JSON         "application/json"
#define PB_WEB_GEOJSON      "application/geo+json"
#define PB_WEB_PROBLEM      "application/problem+json"
#define PB_WEB_OPENAPI      "application/vnd.oai.openapi+json;version=3.0"
#define PB_WEB_ARGS         16
#define PB_WEB_ARGS_BYTES   65536
#define PB_WEB_BASE_BYTES   300
#define PB_WEB_HREF_BYTES   12288
#define PB_WEB_CURSOR       "next" /* argument: where a page begins */
#define PB_WEB_LIMIT        10
#define PB_WEB_LIMIT_MAX    200
#define PB_WEB_SERVICE_DESC "/api.json" /* the description of both APIs */

/* Query of a request. Zeroed: no query. */
struct pb_web_query {
    char base[PB_WEB_BASE_BYTES]; /* "http://host:port", without a slash at the end */
    const char *path;             /* borrowed: the decoded path below the place, "" = the place */
    bool is_malformed;            /* an argument could not be read */
    /* JSON object of a request by POST, whose members are the arguments; NULL = by GET. Borrowed.
     */
    const struct pb_json_value *body;
    size_t n;
    struct {
        const char *name, *value; /* in `text`, decoded */
    } arg[PB_WEB_ARGS];
    size_t used;
    char text[PB_WEB_ARGS_BYTES];
};

struct pb_web_document {
    unsigned status;
    const char *media_type; /* static */
    char *text;             /* malloc'd; NULL = out of memory */
    bool varies;            /* its address is also a page's, by the header Accept */
};

/* Sets the base from the Host header and the protocol: that of this server, or X-Forwarded-Proto of
 * a proxy (NULL if absent).
 * Returns false if the host has a malformed port. */
bool pb_web_query_base(struct pb_web_query *query, const char *host, const char *protocol);
/* Adds an argument as received (value NULL = ""). */
void pb_web_query_add(struct pb_web_query *query, const char *name, const char *value);
/* Adds the members of the body as arguments: an array is a list, whose texts are separated by
 * pb_web_query_separator. */
void pb_web_query_add_body(struct pb_web_query *query, const struct pb_json_value *body);
/* Separator of lists of texts: a comma, or a newline in a body. */
char pb_web_query_separator(const struct pb_web_query *query);
/* NULL if absent. */
const char *pb_web_query_get(const struct pb_web_query *query, const char *name);
/* Returns true if the query is well-formed, and all its arguments are among the n names, once
 * each. Otherwise *out is a document of status 400. */
bool pb_web_query_allows(const struct pb_web_query *query, const char *const *names, size_t n,
                         struct pb_web_document *out);
/* Reads the argument `limit`; a larger number than the largest is the largest. Returns false if
 * malformed; then *out is a document. */
bool pb_web_query_limit(const struct pb_web_query *query, size_t *out_limit,
                        struct pb_web_document *out);

/* Times from `from` to `to`; zeroed: all. */
struct pb_web_interval {
    bool has_from, has_to;
    double from, to; /* Julian days */
};
/* Reads a time of RFC 3339, or two with a slash, one of which may be open ("" or ".."). Returns
 * false if malformed. */
bool pb_web_interval(const char *text, struct pb_web_interval *out);
/* Returns true if the time (ISO 8601) is in the interval. */
bool pb_web_interval_has(const struct pb_web_interval *interval, const char *time);
/* Returns true if a list with commas has the word. */
bool pb_web_list_has(const char *list, const char *word);

/* Writes a link of an array; path: encoded, below the base. title: NULL = without. */
void pb_web_link(struct pb_json *json, const struct pb_web_query *query, const char *rel,
                 const char *type, const char *title, const char *path);
/* Writes the link `self` of this request, whose own path is `path`. */
void pb_web_link_self(struct pb_json *json, const struct pb_web_query *query, const char *type,
                      const char *path);
/* Writes the link `next`: this request with the argument PB_WEB_CURSOR, in its body if it has one.
 */
void pb_web_link_next(struct pb_json *json, const struct pb_web_query *query, const char *type,
                      const char *path, const char *cursor);

/* Makes the document of a text; destroys json. */
void pb_web_document_take(struct pb_web_document *out, struct pb_json *json,
                          const char *media_type);
/* Makes an exception: RFC 7807 with the members of OGC API Features and Processes. type: the last
 * part of the exception's URI in OGC API Processes; NULL = about:blank. */
void pb_web_document_fail(struct pb_web_document *out, unsigned status, const char *type,
                          const char *title, const char *detail);
#endif
