/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PATTERN_LIMITS_H
#define WIC_PATTERN_LIMITS_H
/* A communication pattern by name only, and the limits of its texts and arguments, for headers that
 * need nothing else of wic/pattern/pattern.h. */

struct wic_pattern;

#define WIC_PATTERN_NAME_MAX 32  /* with the terminator; a-z, then a-z 0-9 _ */
#define WIC_PATTERN_DOC_MAX  512 /* with the terminator */
#define WIC_PATTERN_ARGS_MAX 16
#endif
