/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_PLUGIN_PATTERN_H
#define PB_TEST_PLUGIN_PATTERN_H
/* The patterns that this build makes plugins of, in PB_PATTERNS. */
#include "wic/pattern/plugin.h"

#include <check.h>

/* Loads the plugin; the test fails when that does. The pattern lives as long as the process. */
static inline const struct wic_pattern *plugin_pattern(const char *name)
{
    const struct wic_pattern *pattern = NULL;
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_msg(wic_plugin_load(PB_PATTERNS, name, &pattern, text, sizeof(text)) == 0, "%s",
                  text);
    return pattern;
}
#endif
