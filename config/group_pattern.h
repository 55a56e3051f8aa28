/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GROUP_PATTERN_H
#define PB_GROUP_PATTERN_H
/* The regular expression of input.group (Perl's syntax, PCRE2), or a word for that of a product's
 * files: it fits the whole name of a file, upper and lower case being alike, and tells the scene
 * that the file belongs to: its named group `scene`, or what input.by makes of its named groups and
 * of what metadata say of the file ({meta.date}, {meta.tile}), which who may read them tells.
 * Matching is bounded: an expression that takes too long for a name does not fit it. A compiled one
 * is read-only; any thread. */
#include <stdbool.h>
#include <stddef.h>

#define PB_GROUP_DATE_BYTES 16 /* "20260604T105031" */
#define PB_GROUP_FACT_BYTES 40

struct pb_group_pattern;

/* What metadata say of a file, for input.by; "" = nothing says it. */
struct pb_group_facts {
    char date[PB_GROUP_FACT_BYTES]; /* of the acquisition, RFC 3339 in UTC */
    char tile[PB_GROUP_FACT_BYTES]; /* of the producer's grid: letters, digits, '-', '_', '.' */
};

/* Why one cannot be used. */
struct pb_group_wrong {
    char text[280]; /* "" = out of memory */
    bool of_by;     /* input.by, not the expression */
};

/* pattern: the expression, "sentinel2" or "landsat"; by: input.by, or NULL. Both are borrowed for
 * the pattern's life. NULL and *out_wrong when one of them cannot be used. */
struct pb_group_pattern *pb_group_pattern_create(const char *pattern, const char *by,
                                                 struct pb_group_wrong *out_wrong);
void pb_group_pattern_destroy(struct pb_group_pattern *group); /* NULL is fine */
/* input.by with its words written out: "{date:%Y%m%d}" of "date"; borrowed. */
const char *pb_group_pattern_by(const struct pb_group_pattern *group);
/* Whether input.by is made of what metadata say. */
bool pb_group_pattern_asks(const struct pb_group_pattern *group);
/* The first of these that the facts lack, as input.by calls it ("meta.date"); NULL: none. */
const char *pb_group_pattern_lacks(const struct pb_group_pattern *group,
                                   const struct pb_group_facts *facts);
/* Whether it fits; the scene, which has no slash, into out_scene (256 bytes): "" when it asks and
 * facts is NULL or lacks one. A name whose date is none of the calendar does not fit where input.by
 * has the date. */
bool pb_group_pattern_fits(const struct pb_group_pattern *group, const char *name,
                           const struct pb_group_facts *facts, char *out_scene);
/* Whether a name that it fits may begin with the first `length` bytes of the text: an archive of a
 * scene's files has such a name. */
bool pb_group_pattern_begins(const struct pb_group_pattern *group, const char *text, size_t length);
/* Whether it has the group `date`. */
bool pb_group_pattern_has_date(const struct pb_group_pattern *group);
/* That group's digits and T of a name that it fits, which sort by time; "" = there is none. */
void pb_group_pattern_date(const struct pb_group_pattern *group, const char *name,
                           char out[PB_GROUP_DATE_BYTES]);
#endif
