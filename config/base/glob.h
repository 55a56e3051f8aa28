/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GLOB_H
#define PB_GLOB_H
/* Shell patterns for names and paths, in place of fnmatch(3), whose time grows exponentially with
 * the stars of a pattern: a name from outside could keep a thread busy for ever. Here the places in
 * the name up to which a part of the pattern fits are a set, so each part is looked at once for all
 * of them, and a limit of steps ends what groups inside groups still make long. Bytes; upper and
 * lower case of ASCII. Pure: no allocation. Thread: any. */
#include <stdbool.h>

/* Longer patterns, and groups deeper inside each other, are mistakes (pb_glob_wrong). A pattern of
 * more than PB_GLOB_FITS_MAX bytes, which placeholders may make of one, fits nothing; nor does one
 * fit a longer name. */
#define PB_GLOB_PATTERN_MAX 500
#define PB_GLOB_DEPTH_MAX   4
#define PB_GLOB_FITS_MAX    4095

enum {
    PB_GLOB_ANY_CASE = 1, /* upper and lower case are the same */
    PB_GLOB_GROUPS = 2,   /* ?(a|b) *(a|b) +(a|b) @(a|b) !(a|b) are groups, as in bash */
    PB_GLOB_PATH = 4      /* only a slash of the pattern fits one of the name */
};

/* ? is one byte, * any number of them, [a-z], [!a-z] or [^a-z] one of a set, also with [:alpha:]
 * and the like; a backslash takes the special meaning from the next byte. A bracket or a group
 * without its end stands for itself. */
bool pb_glob_fits(const char *pattern, const char *name, unsigned flags);
/* NULL, or what is wrong with a pattern: static words that follow its text. */
const char *pb_glob_wrong(const char *pattern);
#endif
