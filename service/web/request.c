/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/request.h"

#include "config/base/href.h"
#include "config/base/json_writer.h"
#include "service/web/page.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- the path --- */

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes the character at *text and moves past it. Returns -1 for a broken escape. */
static int decode(const char **text)
{
    const char *at = *text;
    if (at[0] != '%') {
        *text = at + 1;
        return (unsigned char)at[0];
    }
    const int high = hex_of(at[1]), low = high < 0 ? -1 : hex_of(at[2]);
    *text = at + (low < 0 ? 1 : 3);
    return low < 0 ? -1 : high * 16 + low;
}

/* Appends the part of a path before the next slash. Returns the bytes of `out` in use; 0 if the
 * part is refused: empty, "." or "..", with a slash, a control character or too long. */
static size_t add_part(const char **path, char *out, size_t used)
{
    const size_t start = used;
    while (**path != '/' && **path != '\0') {
        const int c = decode(path);
        if (c < 0x20 || c == 0x7F || c == '/' || used + 2 > PB_WEB_PATH_BYTES)
            return 0;
        out[used++] = (char)c;
    }
    out[used] = '\0';
    const char *part = out + start;
    return part[0] == '\0' || strcmp(part, ".") == 0 || strcmp(part, "..") == 0 ? 0 : used;
}

/* Decodes a path of several parts. Returns false if it is refused. */
static bool decode_path(const char *path, char out[PB_WEB_PATH_BYTES])
{
    size_t used = 0;
    for (int parts = 0; parts < PB_WEB_PATH_PARTS; parts++) {
        used = add_part(&path, out, used);
        if (used == 0)
            return false;
        if (*path == '\0')
            return true;
        path++;
        if (used + 2 > PB_WEB_PATH_BYTES)
            return false;
        out[used++] = '/';
    }
    return false;
}

static int decode_all(const char *text, bool has_spaces, char *out, size_t bytes)
{
    size_t used = 0;
    if (bytes == 0)
        return -1;
    while (*text != '\0') {
        const bool is_space = has_spaces && *text == '+';
        const int c = decode(&text);
        if (c <= 0 || used + 1 >= bytes)
            return -1;
        out[used++] = is_space ? ' ' : (char)c;
    }
    out[used] = '\0';
    return (int)used;
}

int pb_web_value(const char *text, char *out, size_t bytes)
{
    return decode_all(text, true, out, bytes);
}

int pb_web_path(const char *text, char *out, size_t bytes)
{
    return decode_all(text, false, out, bytes);
}

bool pb_web_is_word(const char *text)
{
    const size_t n = strlen(text);
    return n > 0 && n < PB_WEB_ID_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == n;
}

const char *pb_web_action_name(enum pb_web_action action)
{
    static const char *const names[PB_WEB_ACTIONS] = {"cancel", "retry", "again", "drop"};
    return names[action];
}

/* Finds the place of "ID", "ID/events" or "ID/ACTION". */
static void route_job(const char *id, struct pb_web_route *out)
{
    const size_t n = strcspn(id, "/");
    const char *part = id[n] == '/' ? id + n + 1 : NULL;
    (void)snprintf(out->name, sizeof out->name, "%.*s", n < PB_WEB_ID_BYTES ? (int)n : 0, id);
    if (!pb_web_is_word(out->name))
        return;
    if (part == NULL)
        out->place = PB_WEB_JOB;
    else if (strcmp(part, "events") == 0)
        out->place = PB_WEB_STEPS;
    for (int i = 0; part != NULL && i < PB_WEB_ACTIONS; i++) {
        if (strcmp(part, pb_web_action_name((enum pb_web_action)i)) != 0)
            continue;
        out->place = PB_WEB_ACT;
        out->action = (enum pb_web_action)i;
    }
}

const char *pb_web_methods(enum pb_web_place place)
{
    return place == PB_WEB_ACT || place == PB_WEB_EXECUTE ? "POST"
           : place == PB_WEB_SESSION                      ? "GET, HEAD, POST, DELETE"
           : place == PB_WEB_SEARCH                       ? "GET, HEAD, POST"
           : place == PB_WEB_OGC_JOB                      ? "GET, HEAD, DELETE"
                                                          : "GET, HEAD";
}

bool pb_web_allows(enum pb_web_place place, const char *method)
{
    const char *at = pb_web_methods(place);
    const size_t n = strlen(method);
    for (; n > 0 && at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 2 : NULL)
        if (strcspn(at, ",") == n && strncmp(at, method, n) == 0)
            return true;
    return false;
}

bool pb_web_has_body(enum pb_web_place place, const char *method)
{
    return (place == PB_WEB_SEARCH || place == PB_WEB_EXECUTE) && strcmp(method, "POST") == 0;
}

/* Returns true for the paths of OGC API Processes. */
static bool is_ogc(const char *path)
{
    static const char *const roots[] = {"/conformance", "/processes", "/jobs"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        const size_t n = strlen(roots[i]);
        if (strncmp(path, roots[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return true;
    }
    return false;
}

/* Finds the place of a decoded path of OGC API Processes. */
static void route_ogc(struct pb_web_route *out)
{
    const char *first = strchr(out->name, '/'), *last = strrchr(out->name, '/');
    out->place = PB_WEB_OGC;
    if (strncmp(out->name, "jobs/", 5) == 0 && pb_web_is_word(out->name + 5))
        out->place = PB_WEB_OGC_JOB;
    else if (strncmp(out->name, "processes/", 10) == 0 && strcmp(last, "/execution") == 0 &&
             first < last && memchr(first + 1, '/', (size_t)(last - first - 1)) == NULL)
        out->place = PB_WEB_EXECUTE;
}

void pb_web_route(const char *path, struct pb_web_route *out)
{
    static const struct {
        const char *path;
        enum pb_web_place place;
    } places[] = {{"/api/info", PB_WEB_INFO},     {"/api/jobs", PB_WEB_JOBS},
                  {"/api/graphs", PB_WEB_GRAPHS}, {"/api/session", PB_WEB_SESSION},
                  {"/events", PB_WEB_EVENTS},     {"/metrics", PB_WEB_METRICS},
                  {"/stac", PB_WEB_STAC}};
    static const char jobs[] = "/api/jobs/", products[] = PB_WEB_PRODUCTS_PATH, stac[] = "/stac/";
    out->place = PB_WEB_NOT_FOUND;
    out->action = PB_WEB_ACTIONS;
    out->name[0] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strcmp(path, places[i].path) == 0)
            out->place = places[i].place;
    if (out->place != PB_WEB_NOT_FOUND)
        return;
    if (pb_web_asset_find(path) != NULL) {
        out->place = PB_WEB_ASSET;
        (void)snprintf(out->name, sizeof out->name, "%s", path);
    } else if (strncmp(path, jobs, sizeof jobs - 1) == 0) {
        route_job(path + sizeof jobs - 1, out);
    } else if (strncmp(path, products, sizeof products - 1) == 0 &&
               decode_path(path + sizeof products - 1, out->name)) {
        out->place = PB_WEB_PRODUCT;
    } else if (strncmp(path, stac, sizeof stac - 1) == 0 &&
               decode_path(path + sizeof stac - 1, out->name)) {
        out->place = strcmp(out->name, "search") == 0 ? PB_WEB_SEARCH : PB_WEB_STAC;
    } else if (is_ogc(path) && decode_path(path + 1, out->name)) {
        route_ogc(out);
    }
}

/* --- headers --- */

/* Reads digits; a number past the largest is the largest. Returns their count. */
static size_t read_number(const char *text, uint64_t *out)
{
    const size_t n = strspn(text, "0123456789");
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
    }
    *out = value;
    return n;
}

enum pb_web_range pb_web_range(const char *text, uint64_t size, uint64_t *out_first,
                               uint64_t *out_bytes)
{
    uint64_t first = 0, last = 0;
    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0)
        return PB_WEB_RANGE_WHOLE;
    text += 6;
    const size_t n_first = read_number(text, &first);
    if (text[n_first] != '-')
        return PB_WEB_RANGE_WHOLE;
    const char *after = text + n_first + 1;
    const size_t n_last = read_number(after, &last);
    if (after[n_last] != '\0' || (n_first == 0 && n_last == 0) ||
        (n_first > 0 && n_last > 0 && last < first))
        return PB_WEB_RANGE_WHOLE;
    if (n_first == 0) { /* the last bytes */
        if (last == 0 || size == 0)
            return PB_WEB_RANGE_OUTSIDE;
        *out_bytes = last < size ? last : size;
        *out_first = size - *out_bytes;
        return PB_WEB_RANGE_PART;
    }
    if (first >= size)
        return PB_WEB_RANGE_OUTSIDE;
    *out_first = first;
    *out_bytes = (n_last > 0 && last < size ? last + 1 : size) - first;
    return PB_WEB_RANGE_PART;
}

bool pb_web_host_is_ours(const char *host, const char *const *names, size_t n)
{
    char name[256], room[16];
    if (host == NULL || strlen(host) >= sizeof name)
        return false;
    if (host[0] == '[') { /* [::1]:8080 */
        const char *end = strchr(host, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - host - 1), host + 1);
        return inet_pton(AF_INET6, name, room) == 1;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(host, ":"), host);
    if (inet_pton(AF_INET, name, room) == 1 || strcasecmp(name, "localhost") == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

char *pb_web_list_params(const char *before, const char *limit, const char *status)
{
    uint64_t jobs = 200;
    if ((before != NULL && !pb_web_is_word(before)) ||
        (status != NULL && !pb_web_is_word(status)) ||
        (limit != NULL && (read_number(limit, &jobs) != strlen(limit) || jobs == 0)))
        return NULL;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "fields", "brief");
    pb_json_int(json, "limit", jobs < PB_WEB_LIST_MAX ? (int64_t)jobs : PB_WEB_LIST_MAX);
    if (before != NULL)
        pb_json_string(json, "before", before);
    if (status != NULL)
        pb_json_string(json, "status", status);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *params = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return params;
}

bool pb_web_priority(const char *text, int64_t standard, int64_t *out)
{
    uint64_t size;
    if (text == NULL) {
        *out = standard;
        return true;
    }
    const bool minus = text[0] == '-';
    text += minus;
    if (text[0] == '\0' || read_number(text, &size) != strlen(text) || size > 100)
        return false;
    *out = minus ? -(int64_t)size : (int64_t)size;
    return true;
}

/* --- addresses --- */

char *pb_web_href(const char *path, const char *products)
{
    static const char prefix[] = PB_WEB_PRODUCTS_PATH;
    const size_t n_root = strlen(products);
    if (path == NULL || n_root == 0 || strncmp(path, products, n_root) != 0 ||
        path[n_root] != '/' || path[n_root + 1] == '\0')
        return NULL;
    const char *below = path + n_root + 1;
    const size_t room = sizeof prefix + 3 * strlen(below);
    char *href = malloc(room);
    if (href != NULL)
        (void)pb_href_path(below, stpcpy(href, prefix), room - (sizeof prefix - 1));
    return href;
}
