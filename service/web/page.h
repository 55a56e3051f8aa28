/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_PAGE_H
#define PB_WEB_PAGE_H
/* The files of the page: service/web/page/, which are part of the program, and the map library
 * Leaflet, if the system has it. Thread: any. */
#include <stddef.h>

#define PB_WEB_LEAFLET_DIR "/usr/share/javascript/leaflet/" /* the package libjs-leaflet */

struct pb_web_asset {
    const char *path; /* in addresses: "/page.js" */
    const char *media_type;
    const char *content, *end;
};

/* Finds a file by the path of its address; NULL if absent. Valid until the process ends. */
const struct pb_web_asset *pb_web_asset_find(const char *path);
#endif
