/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The assembler includes the files, therefore the program needs none of them where it runs. CMake
 * defines their folder and makes this source depend on them. Leaflet is the system's: without it
 * the page has no map, and names the package. */
#include "service/web/page.h"

#include "service/web/document.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAFLET_BYTES_MAX 4000000

#define PB_WEB_INCLUDE(symbol, file)                                                               \
    extern const char symbol[], symbol##_end[];                                                    \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" PB_WEB_PAGE_DIR "/" file              \
            "\"\n" #symbol "_end:\n.byte 0\n.popsection\n")

PB_WEB_INCLUDE(pb_web_page_html, "page.html");
PB_WEB_INCLUDE(pb_web_page_css, "page.css");
PB_WEB_INCLUDE(pb_web_page_js, "page.js");
PB_WEB_INCLUDE(pb_web_page_icon, "icon.svg");
PB_WEB_INCLUDE(pb_web_actions_js, "actions.js");
PB_WEB_INCLUDE(pb_web_streams_js, "streams.js");
PB_WEB_INCLUDE(pb_web_graphs_css, "graphs.css");
PB_WEB_INCLUDE(pb_web_graphs_js, "graphs.js");
PB_WEB_INCLUDE(pb_web_cog_css, "cog.css");
PB_WEB_INCLUDE(pb_web_cog_view, "cogview.js");
PB_WEB_INCLUDE(pb_web_cog_facts, "cogfacts.js");
PB_WEB_INCLUDE(pb_web_cog_worker, "cog.js");
PB_WEB_INCLUDE(pb_web_zstd, "zstd.js");
PB_WEB_INCLUDE(pb_web_page_map_css, "map.css");
PB_WEB_INCLUDE(pb_web_page_map_js, "map.js");
PB_WEB_INCLUDE(pb_web_page_coast, "coast.js");
PB_WEB_INCLUDE(pb_web_page_api, "api.json");

/* Read once, and kept until the process ends; empty without the package. */
static const char nothing[] = "";
static struct pb_web_asset leaflet[] = {
    {"/leaflet.js", "text/javascript; charset=utf-8", nothing, nothing},
    {"/leaflet.css", "text/css; charset=utf-8", nothing, nothing}};

static void read_file(const char *path, struct pb_web_asset *out)
{
    struct stat st = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool fits = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                      st.st_size <= LEAFLET_BYTES_MAX;
    char *content = fits ? malloc((size_t)st.st_size) : NULL;
    if (content != NULL && read(fd, content, (size_t)st.st_size) == st.st_size) {
        out->content = content;
        out->end = content + st.st_size;
    } else {
        free(content);
    }
    if (fd >= 0)
        (void)close(fd);
}

static void read_leaflet(void)
{
    read_file(PB_WEB_LEAFLET_DIR "leaflet.min.js", &leaflet[0]);
    read_file(PB_WEB_LEAFLET_DIR "leaflet.css", &leaflet[1]);
}

const struct pb_web_asset *pb_web_asset_find(const char *path)
{
    static const struct pb_web_asset assets[] = {
        {"/", "text/html; charset=utf-8", pb_web_page_html, pb_web_page_html_end},
        {"/page.css", "text/css; charset=utf-8", pb_web_page_css, pb_web_page_css_end},
        {"/page.js", "text/javascript; charset=utf-8", pb_web_page_js, pb_web_page_js_end},
        {"/icon.svg", "image/svg+xml", pb_web_page_icon, pb_web_page_icon_end},
        {"/actions.js", "text/javascript; charset=utf-8", pb_web_actions_js, pb_web_actions_js_end},
        {"/streams.js", "text/javascript; charset=utf-8", pb_web_streams_js, pb_web_streams_js_end},
        {"/graphs.css", "text/css; charset=utf-8", pb_web_graphs_css, pb_web_graphs_css_end},
        {"/graphs.js", "text/javascript; charset=utf-8", pb_web_graphs_js, pb_web_graphs_js_end},
        {"/cog.css", "text/css; charset=utf-8", pb_web_cog_css, pb_web_cog_css_end},
        {"/cogview.js", "text/javascript; charset=utf-8", pb_web_cog_view, pb_web_cog_view_end},
        {"/cogfacts.js", "text/javascript; charset=utf-8", pb_web_cog_facts, pb_web_cog_facts_end},
        {"/cog.js", "text/javascript; charset=utf-8", pb_web_cog_worker, pb_web_cog_worker_end},
        {"/zstd.js", "text/javascript; charset=utf-8", pb_web_zstd, pb_web_zstd_end},
        {"/map.css", "text/css; charset=utf-8", pb_web_page_map_css, pb_web_page_map_css_end},
        {"/map.js", "text/javascript; charset=utf-8", pb_web_page_map_js, pb_web_page_map_js_end},
        {"/coast.js", "text/javascript; charset=utf-8", pb_web_page_coast, pb_web_page_coast_end},
        {PB_WEB_SERVICE_DESC, PB_WEB_OPENAPI, pb_web_page_api, pb_web_page_api_end},
    };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_leaflet);
    for (size_t i = 0; i < sizeof leaflet / sizeof leaflet[0]; i++)
        if (strcmp(path, leaflet[i].path) == 0)
            return &leaflet[i];
    for (size_t i = 0; i < sizeof assets / sizeof assets[0]; i++)
        if (strcmp(path, assets[i].path) == 0)
            return &assets[i];
    return NULL;
}
