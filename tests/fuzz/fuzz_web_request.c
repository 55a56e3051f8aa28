/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A request of a browser in three lines: path, Range header, Host header. A product is below its
 * directory, a range inside the file, and the address of a product leads back to it. The lines are
 * the query of a search as well, whose answer is JSON. */
#include "fuzz_check.h"

#include "config/base/json_reader.h"
#include "service/web/catalog.h"
#include "service/web/document.h"
#include "service/web/request.h"
#include "service/web/stac.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Takes a line, NUL-terminated, and moves past it. */
static char *take_line(const uint8_t **data, size_t *bytes)
{
    const uint8_t *end = memchr(*data, '\n', *bytes);
    const size_t n = end ? (size_t)(end - *data) : *bytes;
    char *line = malloc(n + 1);
    require(line != NULL, "no memory");
    memcpy(line, *data, n);
    line[n] = '\0';
    *data += n + (end != NULL);
    *bytes -= n + (end != NULL);
    return line;
}

/* No part of a path is empty or leads upwards. */
static void check_parts(const char *path)
{
    for (const char *part = path; part != NULL;) {
        const size_t n = strcspn(part, "/");
        require(n > 0, "an empty part");
        require(!(n == 1 && part[0] == '.') && !(n == 2 && part[0] == '.' && part[1] == '.'),
                "a way out of products");
        part = part[n] == '/' ? part + n + 1 : NULL;
    }
}

static void check_product(const char *path)
{
    static struct pb_web_route again;
    char shown[PB_WEB_PATH_BYTES + 8];
    check_parts(path);
    (void)snprintf(shown, sizeof shown, "/root/%s", path);
    char *href = pb_web_href(shown, "/root");
    require(href != NULL, "no address");
    for (const char *c = href; *c != '\0'; c++)
        require(*c > 0x20 && *c < 0x7F && strchr("<>\"'&\\#?", *c) == NULL, "not escaped");
    pb_web_route(href, &again);
    require(again.place == PB_WEB_PRODUCT && strcmp(again.name, path) == 0, "another product");
    free(href);
}

/* Requests a document of the catalogue of a directory without products. arguments: "a=b&c=d", which
 * is changed, or a body. */
static void check_search(const char *path, const char *host, char *arguments)
{
    static struct pb_web_query query;
    static struct pb_web_catalog *catalog;
    struct pb_web_document document = {0};
    struct pb_json_value *json = NULL, *body = NULL;
    query = (struct pb_web_query){.path = path};
    if (catalog == NULL)
        catalog = pb_web_catalog_create(PB_WEB_ITEMS_MAX);
    if (!pb_web_query_base(&query, host, NULL))
        return;
    if (arguments[0] == '{' && pb_json_parse(arguments, strlen(arguments), 1 << 16, &body) == 0)
        pb_web_query_add_body(&query, body);
    for (char *name, *rest = body ? NULL : arguments; (name = strsep(&rest, "&")) != NULL;) {
        char *value = name;
        (void)strsep(&value, "=");
        pb_web_query_add(&query, name, value);
    }
    pb_web_stac(catalog, "/proc/self/fdinfo", &query, &document);
    pb_json_release(body);
    require(document.text != NULL, "no document");
    require(pb_json_parse(document.text, strlen(document.text), 1 << 20, &json) == 0, "no JSON");
    pb_json_release(json);
    free(document.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const names[] = {"ground.example"};
    static const uint64_t sizes[] = {0, 1, 10, 1u << 31, UINT64_MAX};
    static struct pb_web_route route;
    char *path = take_line(&data, &bytes), *range = take_line(&data, &bytes),
         *host = take_line(&data, &bytes);
    pb_web_route(path, &route);
    if (route.place == PB_WEB_PRODUCT)
        check_product(route.name);
    const bool is_stac = route.place == PB_WEB_STAC || route.place == PB_WEB_SEARCH;
    if ((is_stac && route.name[0] != '\0') || route.place == PB_WEB_OGC)
        check_parts(route.name);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t first = 0, n = 0;
        if (pb_web_range(range, sizes[i], &first, &n) == PB_WEB_RANGE_PART)
            require(n > 0 && first < sizes[i] && n <= sizes[i] - first, "a range outside");
    }
    (void)pb_web_host_is_ours(host, names, 1);
    free(pb_web_list_params(path, range, host));
    if (is_stac && pb_web_host_is_ours(host, names, 1))
        check_search(route.name, host, range);
    free(path);
    free(range);
    free(host);
    return 0;
}
