/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A delivery has up to 20,000 files, therefore each step is one pass over them or a binary search.
 */
#include "pipeline/scene/manifest_match.h"

#include "config/base/base_name.h"
#include "config/base/text_clean.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- files by their names --------------------------------------------------------------------- */

/* File of a manifest by its recorded name. */
struct named {
    char *name;
    const struct pb_manifest_entry *entry;
    enum pb_role role;
    size_t n_taken; /* count of files with that name that were taken; kept in the first one */
};

/* Files of a manifest that identify its scene, sorted by name, then as in the manifest. */
struct names {
    struct named *file;
    size_t n;
};

static void fini_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->file[i].name);
    free(names->file);
}

static int by_name(const void *a, const void *b)
{
    const struct named *one = a, *other = b;
    const int order = strcmp(one->name, other->name);
    return order ? order : (one->entry > other->entry) - (one->entry < other->entry);
}

/* is_delivery: loose files were delivered in any folder and are recorded by their base names. */
static int list_names(const struct pb_scene_manifest *manifest, bool is_delivery, struct names *out)
{
    char name[PB_SCENE_MANIFEST_NAME_BYTES];
    const bool is_loose = is_delivery && manifest->first_folder == manifest->n_entries;
    *out = (struct names){calloc(manifest->n_entries + 1, sizeof *out->file), 0};
    if (out->file == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < manifest->n_entries; i++) {
        const struct pb_manifest_entry *entry = &manifest->entry[i];
        const enum pb_role role = pb_scene_manifest_role(manifest, i);
        if (entry->is_folder || role == PB_ROLE_COMPANION || role == PB_ROLE_SOURCE)
            continue;
        const char *path =
            is_loose ? pb_base_name(entry->path) : pb_scene_manifest_inner(manifest, entry);
        (void)pb_text_clean(path, name, sizeof name);
        out->file[out->n] = (struct named){strdup(name), entry, role, 0};
        if (out->file[out->n].name == NULL)
            return -ENOMEM;
        out->n++;
    }
    qsort(out->file, out->n, sizeof *out->file, by_name);
    return 0;
}

/* Finds the first file of that name; NULL = absent. */
static struct named *find_first(const struct names *names, const char *name)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(names->file[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->n && strcmp(names->file[low].name, name) == 0 ? &names->file[low] : NULL;
}

/* --- comparison ------------------------------------------------------------------------------- */

static bool is_one_image(const struct names *names)
{
    return names->n == 1 && names->file[0].role == PB_ROLE_IMAGE;
}

/* Finds the file of that name and of a possible size, if it is unused; NULL = absent. */
static const struct named *find_named(const struct names *now, const struct named *before)
{
    const struct named *found = find_first(now, before->name);
    const int64_t bytes = before->entry->bytes;
    const bool is_other = found != NULL && found->role == PB_ROLE_UNUSED && bytes >= 0 &&
                          found->entry->bytes >= 0 && found->entry->bytes != bytes;
    return is_other ? NULL : found;
}

/* Compares the content of a file: SAME, OTHER or UNKNOWN; *kind: that of its checksum before. */
static enum pb_manifest_relation compare_content(const struct pb_manifest_entry *before,
                                                 const struct pb_manifest_entry *now,
                                                 enum pb_checksum *kind)
{
    enum pb_checksum known;
    const char *digits;
    if ((before->bytes >= 0 && now->bytes >= 0 && before->bytes != now->bytes) ||
        before->checksum == NULL || pb_checksum_parse(before->checksum, kind, &digits) != 0)
        return PB_MANIFEST_OTHER;
    if (now->checksum == NULL || pb_checksum_parse(now->checksum, &known, &digits) != 0 ||
        known != *kind)
        return PB_MANIFEST_UNKNOWN;
    return strcmp(before->checksum, now->checksum) == 0 ? PB_MANIFEST_SAME : PB_MANIFEST_OTHER;
}

/* Counts of files by the result of their comparison. */
struct tally {
    size_t n_same, n_unknown, n_absent;
};

static void compare_file(const struct named *before, const struct named *now,
                         struct pb_manifest_comparison *out, struct tally *tally)
{
    if (now == NULL || now->role == PB_ROLE_UNUSED)
        tally->n_absent++;
    if (now == NULL && out->missing == NULL &&
        (pb_role_is_pixels(before->role) || before->role == PB_ROLES))
        out->missing = before->entry;
    if (now == NULL || now->role == PB_ROLE_UNUSED)
        return;
    const enum pb_manifest_relation content =
        compare_content(before->entry, now->entry, &out->kind);
    tally->n_same += content == PB_MANIFEST_SAME;
    tally->n_unknown += content == PB_MANIFEST_UNKNOWN;
    if (content == PB_MANIFEST_OTHER && out->changed == NULL)
        out->changed = before->entry;
}

/* n_now: count of files that are read now */
static enum pb_manifest_relation at_best_of(const struct pb_manifest_comparison *result,
                                            const struct tally *tally, size_t n_now)
{
    const size_t n_common = tally->n_same + tally->n_unknown;
    if (result->changed != NULL || n_common == 0)
        return PB_MANIFEST_OTHER;
    if (result->missing != NULL)
        return PB_MANIFEST_FEWER;
    return tally->n_absent == 0 && n_common == n_now ? PB_MANIFEST_SAME : PB_MANIFEST_NEWER;
}

int pb_scene_manifest_compare(const struct pb_scene_manifest *before,
                              const struct pb_scene_manifest *now,
                              struct pb_manifest_comparison *out)
{
    struct names was = {NULL, 0}, is = {NULL, 0};
    struct tally tally = {0, 0, 0};
    int rc = list_names(before, false, &was);
    rc = rc ? rc : list_names(now, false, &is);
    *out = (struct pb_manifest_comparison){.relation = PB_MANIFEST_OTHER};
    const bool by_content = is_one_image(&was) && is_one_image(&is);
    size_t n_now = 0;
    for (size_t i = 0; i < is.n; i++)
        n_now += is.file[i].role != PB_ROLE_UNUSED;
    for (int pixels = 1; pixels >= 0; pixels--)
        for (size_t i = 0; rc == 0 && i < was.n; i++)
            if (was.file[i].role != PB_ROLE_UNUSED &&
                pb_role_is_pixels(was.file[i].role) == (pixels == 1))
                compare_file(&was.file[i], by_content ? &is.file[0] : find_named(&is, &was.file[i]),
                             out, &tally);
    out->at_best = at_best_of(out, &tally, n_now);
    out->relation = tally.n_unknown > 0 && out->at_best != PB_MANIFEST_OTHER ? PB_MANIFEST_UNKNOWN
                                                                             : out->at_best;
    fini_names(&was);
    fini_names(&is);
    return rc;
}

/* --- completion ------------------------------------------------------------------------------- */

/* Returns true for a file of the scene itself. */
static bool is_of_scene(const struct pb_scene_manifest *read, size_t i)
{
    const enum pb_role role = pb_scene_manifest_role(read, i);
    return !read->entry[i].is_folder && role != PB_ROLE_SOURCE && role != PB_ROLES;
}

/* Returns the index of the file of that name; -1 if absent. Several files with one name are found
 * in turn. */
static int64_t take_named(const struct pb_scene_manifest *manifest, const struct names *names,
                          const char *name)
{
    struct named *first = find_first(names, name), *next = first;
    if (first == NULL)
        return -1;
    if (first->n_taken < names->n - (size_t)(first - names->file) &&
        strcmp(first[first->n_taken].name, name) == 0)
        next = first + first->n_taken++;
    return next->entry - manifest->entry;
}

/* Adds a file inside the folder of the delivery. Returns its index, or a negative errno. */
static int add_inner(struct pb_scene_manifest *manifest, const struct pb_manifest_entry *file)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    const struct pb_manifest_entry *folder = &manifest->entry[manifest->first_folder];
    const struct pb_manifest_entry entry = {
        .path = path, .root = folder->root, .bytes = file->bytes};
    if (snprintf(path, sizeof path, "%s/%s", folder->path, file->path) >= (int)sizeof path)
        return -E2BIG;
    return pb_scene_manifest_add(manifest, &entry);
}

/* Sets role and checksum of a file that was read. A role of the delivery is more precise. */
static int note_read(struct pb_scene_manifest *manifest, size_t at, enum pb_role role,
                     const char *checksum, enum pb_role *out_role)
{
    struct pb_manifest_entry *entry = &manifest->entry[at];
    const enum pb_role known = pb_scene_manifest_role(manifest, at);
    char *copy = checksum != NULL ? strdup(checksum) : NULL;
    if (checksum != NULL && copy == NULL)
        return -ENOMEM;
    free(entry->checksum);
    entry->checksum = copy;
    if (pb_role_record_name(known) == NULL || pb_role_is_pixels(known) != pb_role_is_pixels(role))
        *out_role = role;
    return 0;
}

/* Marks the delivered files without a checksum, which were not read. */
static void mark_unused(const struct pb_scene_manifest *manifest, enum pb_role *role)
{
    for (size_t i = 0; i < manifest->n_entries; i++) {
        const struct pb_manifest_entry *entry = &manifest->entry[i];
        if (!entry->is_folder && entry->checksum == NULL &&
            !pb_scene_manifest_is(manifest, i, PB_ROLE_COMPANION))
            role[i] = PB_ROLE_UNUSED;
    }
}

/* at[i]: index of the delivered file that is file i of read; -1 = absent. role: new role of each
 * entry, also of those that are added; PB_ROLES = unchanged. */
static int take_all(struct pb_scene_manifest *manifest, const struct pb_scene_manifest *read,
                    int64_t *at, enum pb_role *role)
{
    const bool has_folder = manifest->first_folder < manifest->n_entries;
    bool any = false;
    int rc = 0;
    for (size_t i = 0; i < read->n_entries && rc == 0; i++) {
        const struct pb_manifest_entry *file = &read->entry[i];
        const enum pb_role own = pb_scene_manifest_role(read, i);
        if (!is_of_scene(read, i))
            continue;
        if (at[i] < 0 && has_folder)
            at[i] = add_inner(manifest, file);
        if (at[i] == -ENOMEM)
            return -ENOMEM;
        if (at[i] >= 0)
            rc = note_read(manifest, (size_t)at[i], own, file->checksum, &role[at[i]]);
        any = any || at[i] >= 0;
    }
    if (rc != 0 || !any)
        return rc;
    mark_unused(manifest, role);
    return pb_scene_manifest_set_roles(manifest, role);
}

int pb_scene_manifest_complete(struct pb_scene_manifest *manifest,
                               const struct pb_scene_manifest *read)
{
    struct names names;
    const size_t n_roles = manifest->n_entries + read->n_entries;
    enum pb_role *role = calloc(n_roles + 1, sizeof *role);
    int64_t *at = calloc(read->n_entries + 1, sizeof *at);
    int rc = list_names(manifest, true, &names);
    if (role == NULL || at == NULL)
        rc = -ENOMEM;
    for (size_t i = 0; rc == 0 && i < n_roles; i++)
        role[i] = PB_ROLES;
    for (size_t i = 0; rc == 0 && i < read->n_entries; i++)
        if (is_of_scene(read, i))
            at[i] = take_named(manifest, &names, read->entry[i].path);
    rc = rc ? rc : take_all(manifest, read, at, role);
    fini_names(&names);
    free(role);
    free(at);
    return rc;
}
