/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Checks the section `web`. The host of the base map becomes part of a header of the page
 * (Content-Security-Policy), therefore it has the characters of host names only. */
#include "config/config_parts.h"

#include "config/web_config.h"
#include "config/yaml/yaml_tree.h"

#include <string.h>

static void wrong(struct pb_load *load, const struct pb_yaml *section, const char *key,
                  const char *message)
{
    const struct pb_yaml *at = pb_yaml_find(section, key, NULL);
    at = at != NULL ? at : section;
    pb_report(&load->report, PB_E_CONFIG_VALUE, at->line, at->col, "web.%s %s", key, message);
}

/* True for https://HOST/..., or https://HOST:PORT/...; http in place of https as well. */
static bool is_address(const char *url)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:";
    const char *host = strstr(url, "://");
    if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
        return false;
    const size_t n = strspn(host + 3, allowed);
    return n > 0 && n < 256 && host[3 + n] == '/' && strchr(".-:", host[3]) == NULL;
}

/* True if {z}, {x} and {y} are there, and no other braces, which Leaflet would replace as well. */
static bool has_tile(const char *url)
{
    size_t n = 0;
    for (const char *at = url; *at != '\0'; at++)
        n += *at == '{' || *at == '}';
    return n == 6 && strstr(url, "{z}") != NULL && strstr(url, "{x}") != NULL &&
           strstr(url, "{y}") != NULL;
}

void pb_check_web(struct pb_load *load, const struct pb_yaml *section,
                  const struct pb_web_config *web)
{
    const char *url = web->basemap;
    if (url == NULL && web->attribution != NULL)
        wrong(load, section, "attribution", "needs web.basemap");
    if (url == NULL)
        return;
    if (!is_address(url))
        wrong(load, section, "basemap", "is no address; write https://host/{z}/{x}/{y}.png");
    else if (!has_tile(url))
        wrong(load, section, "basemap", "needs {z}, {x} and {y} once each, and no other braces");
    else if (web->attribution == NULL)
        wrong(load, section, "basemap",
              "needs web.attribution: the text that its owner wants to have on the map");
}
