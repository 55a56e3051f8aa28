/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_CONFIG_H
#define PB_WEB_CONFIG_H
/* The section `web` of a configuration. Its owner is struct pb_config. Read-only; any thread. */
#include <stdint.h>

struct pb_web_config {
    int32_t actions;   /* 1: service.web_user may retry, repeat, cancel and drop jobs */
    char *basemap;     /* address of tiles; NULL = the coasts only */
    char *attribution; /* text that names the owner of the tiles; NULL without tiles */
};
#endif
