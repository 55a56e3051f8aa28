/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GROUP_PATTERN_H
#define PB_GROUP_PATTERN_H
/* The regular expression of input.group (Perl's syntax, PCRE2): it fits the whole name of a file,
 * upper and lower case being alike, and its named group `scene` is the scene that the file belongs
 * to. Matching is bounded: an expression that takes too long for a name does not fit it. A compiled
 * one is read-only; any thread. */
#include <stdbool.h>
#include <stddef.h>

struct pb_group_pattern;

/* NULL and why in text when it is none, or has no group `scene`. */
struct pb_group_pattern *pb_group_pattern_create(const char *pattern, char *text, size_t bytes);
void pb_group_pattern_destroy(struct pb_group_pattern *group); /* NULL is fine */
/* Whether it fits; the scene, which is not empty and has no slash, into out_scene (256 bytes). */
bool pb_group_pattern_fits(const struct pb_group_pattern *group, const char *name, char *out_scene);
/* Whether a name that it fits may begin with the first `length` bytes of the text: an archive of a
 * scene's files has such a name. */
bool pb_group_pattern_begins(const struct pb_group_pattern *group, const char *text, size_t length);
#endif
