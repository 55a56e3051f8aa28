/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/document.h"

#include "config/base/href.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/metadata/meta_time.h"
#include "service/web/request.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- the query --- */

bool pb_web_query_base(struct pb_web_query *query, const char *host, const char *protocol)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *port = strchr(end ? end : host, ':');
    if (port != NULL && (strspn(port + 1, "0123456789") != strlen(port + 1) || port[1] == '\0'))
        return false;
    const bool is_tls = protocol != NULL && strcasecmp(protocol, "https") == 0;
    const int n =
        snprintf(query->base, sizeof query->base, "%s://%s", is_tls ? "https" : "http", host);
    return n > 0 && (size_t)n < sizeof query->base;
}

void pb_web_query_add(struct pb_web_query *query, const char *name, const char *value)
{
    char *const own_name = query->text + query->used;
    const int n_name = pb_web_value(name, own_name, sizeof query->text - query->used);
    const size_t at = query->used + (size_t)n_name + 1;
    const int n_value =
        n_name > 0 && at < sizeof query->text
            ? pb_web_value(value ? value : "", query->text + at, sizeof query->text - at)
            : -1;
    if (n_value < 0 || query->n == PB_WEB_ARGS) {
        query->is_malformed = true;
        return;
    }
    query->arg[query->n].name = own_name;
    query->arg[query->n++].value = query->text + at;
    query->used = at + (size_t)n_value + 1;
}

/* The text of a member: a string, the JSON of another value, or a list. malloc'd; NULL if it is no
 * argument, or out of memory. */
static char *text_of(const struct pb_json_value *value)
{
    const size_t n = pb_json_count(value);
    const char *own = pb_json_text_of(value), *source = own ? own : pb_json_source(value);
    size_t bytes = 0;
    char *out = NULL;
    if (!pb_json_is_array(value))
        return source != NULL && strchr(source, '\n') == NULL ? strdup(source) : NULL;
    FILE *text = open_memstream(&out, &bytes);
    bool good = text != NULL;
    for (size_t i = 0; i < n && good; i++) {
        const struct pb_json_value *entry = pb_json_at(value, i);
        const char *word = pb_json_text_of(entry);
        good = word != NULL ? strchr(word, '\n') == NULL : pb_json_is_plain(entry);
        const char *shown = word ? word : pb_json_source(entry);
        if (good && shown != NULL)
            (void)fprintf(text, "%s%s", i == 0 ? "" : word ? "\n" : ",", shown);
    }
    if (text != NULL && fclose(text) == 0 && good)
        return out;
    free(out);
    return NULL;
}

/* Adds an argument as it is. */
static void add_plain(struct pb_web_query *query, const char *name, const char *value)
{
    const size_t n_name = strlen(name) + 1, n_value = strlen(value) + 1;
    if (query->n == PB_WEB_ARGS || n_name + n_value > sizeof query->text - query->used) {
        query->is_malformed = true;
        return;
    }
    char *const at = query->text + query->used;
    query->arg[query->n].name = memcpy(at, name, n_name);
    query->arg[query->n++].value = memcpy(at + n_name, value, n_value);
    query->used += n_name + n_value;
}

void pb_web_query_add_body(struct pb_web_query *query, const struct pb_json_value *body)
{
    const char *key;
    query->body = body;
    for (size_t i = 0; (key = pb_json_key(body, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(body, key, NULL);
        if (value == NULL || pb_json_is_null(value))
            continue;
        char *text = text_of(value);
        if (text != NULL)
            add_plain(query, key, text);
        query->is_malformed = query->is_malformed || text == NULL;
        free(text);
    }
}

char pb_web_query_separator(const struct pb_web_query *query)
{
    return query->body != NULL ? '\n' : ',';
}

const char *pb_web_query_get(const struct pb_web_query *query, const char *name)
{
    for (size_t i = 0; i < query->n; i++)
        if (strcmp(query->arg[i].name, name) == 0)
            return query->arg[i].value;
    return NULL;
}

bool pb_web_query_allows(const struct pb_web_query *query, const char *const *names, size_t n,
                         struct pb_web_document *out)
{
    const char *bad = query->is_malformed ? "a malformed argument" : NULL;
    for (size_t i = 0; i < query->n && bad == NULL; i++) {
        bool is_known = false;
        for (size_t k = 0; k < n; k++)
            is_known = is_known || strcmp(query->arg[i].name, names[k]) == 0;
        if (!is_known)
            bad = query->arg[i].name;
        else if (pb_web_query_get(query, query->arg[i].name) != query->arg[i].value)
            bad = "an argument that is given twice";
    }
    if (bad != NULL)
        pb_web_document_fail(out, 400, NULL, "unknown or malformed parameter", bad);
    return bad == NULL;
}

bool pb_web_query_limit(const struct pb_web_query *query, size_t *out_limit,
                        struct pb_web_document *out)
{
    const char *text = pb_web_query_get(query, "limit");
    size_t limit = PB_WEB_LIMIT;
    if (text != NULL) {
        const size_t digits = strspn(text, "0123456789");
        limit = digits > 9 ? PB_WEB_LIMIT_MAX : (size_t)strtoul(text, NULL, 10);
        if (text[digits] != '\0' || limit == 0) {
            pb_web_document_fail(out, 400, NULL, "malformed parameter", "limit: a number from 1");
            return false;
        }
    }
    *out_limit = limit < PB_WEB_LIMIT_MAX ? limit : PB_WEB_LIMIT_MAX;
    return true;
}

bool pb_web_list_has(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (; list != NULL; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (strncmp(list, word, n) == 0 && (list[n] == ',' || list[n] == '\0'))
            return true;
    return false;
}

/* Reads a time of RFC 3339; "" and ".." are open. Returns 1, 0 for an open one, or -EINVAL. */
static int read_time(const char *text, size_t n, double *out)
{
    char time[64], utc[40];
    if (n == 0 || (n == 2 && strncmp(text, "..", 2) == 0))
        return 0;
    if (n < strlen("2020-01-01T00:00:00Z") || n >= sizeof time)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        time[i] = (char)toupper((unsigned char)text[i]);
    time[n] = '\0';
    const bool has_dot = time[19] == '.';
    const bool has_zone =
        time[n - 1] == 'Z' || ((time[n - 6] == '+' || time[n - 6] == '-') && time[n - 3] == ':');
    if (time[10] != 'T' || !has_zone || (has_dot && !isdigit((unsigned char)time[20])) ||
        pb_meta_time(time, utc, sizeof utc) != 0)
        return -EINVAL;
    *out = pb_meta_julian_day(utc);
    return isfinite(*out) ? 1 : -EINVAL;
}

bool pb_web_interval(const char *text, struct pb_web_interval *out)
{
    const char *slash = strchr(text, '/'), *last = slash ? slash + 1 : text;
    const int from = read_time(text, slash ? (size_t)(slash - text) : strlen(text), &out->from);
    const int to = read_time(last, strlen(last), &out->to);
    out->has_from = from > 0;
    out->has_to = to > 0;
    return from >= 0 && to >= 0 && from + to > 0 && (from + to < 2 || out->from <= out->to);
}

bool pb_web_interval_has(const struct pb_web_interval *interval, const char *time)
{
    char utc[40];
    if (!interval->has_from && !interval->has_to)
        return true;
    if (pb_meta_time(time, utc, sizeof utc) != 0)
        return false;
    const double day = pb_meta_julian_day(utc);
    return (!interval->has_from || day >= interval->from) &&
           (!interval->has_to || day <= interval->to);
}

/* --- links --- */

void pb_web_link(struct pb_json *json, const struct pb_web_query *query, const char *rel,
                 const char *type, const char *title, const char *path)
{
    char href[PB_WEB_HREF_BYTES + PB_WEB_BASE_BYTES];
    (void)snprintf(href, sizeof href, "%s%s", query->base, path);
    pb_json_object(json, NULL);
    pb_json_string(json, "rel", rel);
    pb_json_string(json, "href", href);
    pb_json_string(json, "type", type);
    if (title != NULL)
        pb_json_string(json, "title", title);
    pb_json_end(json);
}

/* Appends an argument to an address. Returns false if it does not fit. */
static bool add_argument(char *href, size_t bytes, bool is_first, const char *name,
                         const char *value)
{
    size_t used = strlen(href);
    if (3 * (strlen(name) + strlen(value)) + 3 > bytes - used)
        return false;
    href[used++] = is_first ? '?' : '&';
    used += pb_href_part(name, href + used, bytes - used);
    href[used++] = '=';
    (void)pb_href_part(value, href + used, bytes - used);
    return true;
}

/* Writes a link to this request. next: cursor of the page that follows; NULL = this page. */
static void link_again(struct pb_json *json, const struct pb_web_query *query, const char *type,
                       const char *path, const char *next)
{
    const size_t bytes = strlen(path) + 3 * sizeof query->text + PB_WEB_HREF_BYTES;
    char *href = malloc(bytes);
    bool is_first = true, fits = href != NULL;
    if (fits)
        (void)snprintf(href, bytes, "%s", path);
    for (size_t i = 0; i < query->n && fits; i++)
        if (next == NULL || strcmp(query->arg[i].name, PB_WEB_CURSOR) != 0) {
            fits = add_argument(href, bytes, is_first, query->arg[i].name, query->arg[i].value);
            is_first = false;
        }
    if (fits && next != NULL)
        fits = add_argument(href, bytes, is_first, PB_WEB_CURSOR, next);
    char *whole = NULL;
    if (fits && asprintf(&whole, "%s%s", query->base, href) >= 0) {
        pb_json_object(json, NULL);
        pb_json_string(json, "rel", next != NULL ? "next" : "self");
        pb_json_string(json, "href", whole);
        pb_json_string(json, "type", type);
        pb_json_end(json);
        free(whole);
    }
    free(href);
}

/* Writes the link to the page that follows this request's, which has a body. */
static void link_body(struct pb_json *json, const struct pb_web_query *query, const char *type,
                      const char *path, const char *next)
{
    char href[PB_WEB_HREF_BYTES + PB_WEB_BASE_BYTES];
    const char *key;
    (void)snprintf(href, sizeof href, "%s%s", query->base, path);
    pb_json_object(json, NULL);
    pb_json_string(json, "rel", "next");
    pb_json_string(json, "href", href);
    pb_json_string(json, "type", type);
    pb_json_string(json, "method", "POST");
    pb_json_object(json, "body");
    for (size_t i = 0; (key = pb_json_key(query->body, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(query->body, key, NULL);
        const char *source = value ? pb_json_source(value) : NULL;
        if (source != NULL && strcmp(key, PB_WEB_CURSOR) != 0)
            pb_json_raw(json, key, source);
    }
    pb_json_string(json, PB_WEB_CURSOR, next);
    pb_json_end(json);
    pb_json_end(json);
}

void pb_web_link_self(struct pb_json *json, const struct pb_web_query *query, const char *type,
                      const char *path)
{
    if (query->body != NULL)
        pb_web_link(json, query, "self", type, NULL, path);
    else
        link_again(json, query, type, path, NULL);
}

void pb_web_link_next(struct pb_json *json, const struct pb_web_query *query, const char *type,
                      const char *path, const char *cursor)
{
    if (query->body != NULL)
        link_body(json, query, type, path, cursor);
    else
        link_again(json, query, type, path, cursor);
}

/* --- documents --- */

void pb_web_document_take(struct pb_web_document *out, struct pb_json *json, const char *media_type)
{
    const char *text = pb_json_text(json, NULL);
    out->status = 200;
    out->media_type = media_type;
    out->text = text ? strdup(text) : NULL;
    pb_json_destroy(json);
}

void pb_web_document_fail(struct pb_web_document *out, unsigned status, const char *type,
                          const char *title, const char *detail)
{
    char uri[160] = "about:blank", code[8];
    if (type != NULL)
        (void)snprintf(uri, sizeof uri,
                       "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0/%s", type);
    (void)snprintf(code, sizeof code, "%u", status);
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "type", uri);
    pb_json_string(json, "title", title);
    pb_json_int(json, "status", status);
    pb_json_string(json, "detail", detail);
    pb_json_string(json, "code", code); /* the names in OGC API Features */
    pb_json_string(json, "description", title);
    pb_json_end(json);
    pb_web_document_take(out, json, PB_WEB_PROBLEM);
    out->status = status;
}
