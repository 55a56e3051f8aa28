/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The assembler includes the files, therefore the program needs none of them where it runs. CMake
 * defines their folder and makes this source depend on them. */
#include "service/web/page.h"

#include <string.h>

#define PB_WEB_INCLUDE(symbol, file)                                                               \
    extern const char symbol[], symbol##_end[];                                                    \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" PB_WEB_PAGE_DIR "/" file              \
            "\"\n" #symbol "_end:\n.byte 0\n.popsection\n")

PB_WEB_INCLUDE(pb_web_page_html, "page.html");
PB_WEB_INCLUDE(pb_web_page_css, "page.css");
PB_WEB_INCLUDE(pb_web_page_js, "page.js");
PB_WEB_INCLUDE(pb_web_page_icon, "icon.svg");
PB_WEB_INCLUDE(pb_web_graphs_css, "graphs.css");
PB_WEB_INCLUDE(pb_web_graphs_js, "graphs.js");
PB_WEB_INCLUDE(pb_web_cog_css, "cog.css");
PB_WEB_INCLUDE(pb_web_cog_view, "cogview.js");
PB_WEB_INCLUDE(pb_web_cog_facts, "cogfacts.js");
PB_WEB_INCLUDE(pb_web_cog_worker, "cog.js");
PB_WEB_INCLUDE(pb_web_zstd, "zstd.js");

const struct pb_web_asset *pb_web_asset_find(const char *path)
{
    static const struct pb_web_asset assets[] = {
        {"/", "text/html; charset=utf-8", pb_web_page_html, pb_web_page_html_end},
        {"/page.css", "text/css; charset=utf-8", pb_web_page_css, pb_web_page_css_end},
        {"/page.js", "text/javascript; charset=utf-8", pb_web_page_js, pb_web_page_js_end},
        {"/icon.svg", "image/svg+xml", pb_web_page_icon, pb_web_page_icon_end},
        {"/graphs.css", "text/css; charset=utf-8", pb_web_graphs_css, pb_web_graphs_css_end},
        {"/graphs.js", "text/javascript; charset=utf-8", pb_web_graphs_js, pb_web_graphs_js_end},
        {"/cog.css", "text/css; charset=utf-8", pb_web_cog_css, pb_web_cog_css_end},
        {"/cogview.js", "text/javascript; charset=utf-8", pb_web_cog_view, pb_web_cog_view_end},
        {"/cogfacts.js", "text/javascript; charset=utf-8", pb_web_cog_facts, pb_web_cog_facts_end},
        {"/cog.js", "text/javascript; charset=utf-8", pb_web_cog_worker, pb_web_cog_worker_end},
        {"/zstd.js", "text/javascript; charset=utf-8", pb_web_zstd, pb_web_zstd_end},
    };
    for (size_t i = 0; i < sizeof assets / sizeof assets[0]; i++)
        if (strcmp(path, assets[i].path) == 0)
            return &assets[i];
    return NULL;
}
