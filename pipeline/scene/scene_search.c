/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_search.h"

#include "config/base/base_name.h"
#include "config/group_pattern.h"
#include "config/input_config.h"
#include "config/pipeline_config.h"
#include "pipeline/scene/scene_walk.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char SCENE[] = "{scene}";

/* Search for a file. */
struct wish {
    const char *what, *pattern;
    int32_t nth; /* value of nth in struct pb_file_config */
    bool is_needed, optional;
};

/* Entries that match a counted pattern. */
struct counted_list {
    const char *pattern; /* pattern of the configuration */
    const struct pb_scene_entry **entry;
    size_t n;
};

static const struct counted_list no_list;

struct search {
    const struct pb_pipeline_config *pipeline;
    const char *folder, *scene;
    const struct pb_scene_walk *walk;
    struct pb_err *err;
    char missing[300]; /* "SCL (SCL.tif), B (B02.tif)" */
    size_t n_missing, n_wanted, n_absent;
    struct counted_list list[PB_FILES_MAX];
    size_t n_lists;
};

int pb_scene_search_pattern(const char *pattern, const char *scene, char *out, struct pb_err *err)
{
    size_t n = 0;
    for (const char *p = pattern; *p != '\0' && n + 2 < PATH_MAX;) {
        if (strncmp(p, SCENE, sizeof SCENE - 1) != 0) {
            out[n++] = *p++;
            continue;
        }
        for (const char *q = scene; *q != '\0' && n + 3 < PATH_MAX; q++) {
            if (strchr("*?[]\\", *q) != NULL)
                out[n++] = '\\';
            out[n++] = *q;
        }
        p += sizeof SCENE - 1;
    }
    out[n] = '\0';
    return n + 3 < PATH_MAX
               ? 0
               : pb_fail(err, PB_E_CONFIG_VALUE, "the pattern %.100s... is too long", pattern);
}

/* filled: its pattern with the scene's name. */
static void note_missing(struct search *s, const struct wish *wish, const char *filled)
{
    char text[sizeof s->missing - 3], nth[40] = "";
    size_t used = strlen(s->missing);
    if (wish->nth > 0)
        (void)snprintf(nth, sizeof nth, "number %d of ", wish->nth);
    (void)snprintf(text, sizeof text, "%s (%s%.160s)", wish->what, nth, filled);
    s->n_missing++;
    if (used + strlen(text) + 3 < sizeof s->missing)
        (void)snprintf(s->missing + used, sizeof s->missing - used, "%s%s", used ? ", " : "", text);
    else if (used > 3 && strcmp(s->missing + used - 3, "...") != 0 && used + 6 < sizeof s->missing)
        (void)snprintf(s->missing + used, sizeof s->missing - used, ", ...");
}

/* Bytes of "R1C2", the row and column of a tile, at the begin of the text; 0 = something else. */
static size_t tile_bytes(const char *text)
{
    size_t n = 0;
    for (const char *letter = "RC"; *letter != '\0'; letter++) {
        if (text[n] != *letter || !isdigit((unsigned char)text[n + 1]))
            return 0;
        n += 1 + strspn(text + n + 1, "0123456789");
    }
    return isalnum((unsigned char)text[n]) ? 0 : n;
}

/* Returns true for names that differ in the row or column of a tile alone, as Maxar and Airbus
 * name the tiles of one image. */
static bool are_tiles(const char *a, const char *b)
{
    char before = '_';
    bool differ = false;
    while (*a != '\0' && *b != '\0') {
        const size_t n = isalnum((unsigned char)before) ? 0 : tile_bytes(a),
                     m = n ? tile_bytes(b) : 0;
        if (m == 0 && *a != *b)
            return false;
        differ = differ || (m > 0 && (n != m || strncmp(a, b, n) != 0));
        before = *a;
        a += m > 0 ? n : 1;
        b += m > 0 ? m : 1;
    }
    return differ && *a == *b;
}

/* Bytes of the paths up to a folder in which they differ, and its slash; 0: they are in one
 * folder. */
static size_t shared_bytes(const char *a, const char *b, const char **out_slash)
{
    size_t n = 0, begin = 0;
    for (; a[n] != '\0' && a[n] == b[n]; n++)
        begin = a[n] == '/' ? n + 1 : begin;
    *out_slash = strchr(a + begin, '/');
    return *out_slash != NULL && strchr(b + begin, '/') != NULL ? begin : 0;
}

static int two_files(const struct search *s, const char *what, const struct pb_scene_entry *a,
                     const struct pb_scene_entry *b)
{
    const char *slash;
    const size_t shared = shared_bytes(a->path, b->path, &slash);
    if (are_tiles(a->path, b->path))
        return pb_fail_at(s->err, PB_E_INPUT_TILES, s->folder, 0, 0,
                          "%.150s and %.150s fit %s: they are tiles of one image", a->path, b->path,
                          what);
    if (shared > 0)
        return pb_fail_at(s->err, PB_E_INPUT_AMBIGUOUS, s->folder, 0, 0,
                          "two files fit %s: %.120s and %.120s; if each folder of %.*s is a scene "
                          "of its own, let input.scene fit their names and give %.60s/%.*s*",
                          what, a->path, b->path, (int)shared, a->path, s->folder, (int)shared,
                          a->path);
    return pb_fail_at(s->err, PB_E_INPUT_AMBIGUOUS, s->folder, 0, 0,
                      "two files fit %s: %.150s and %.150s", what, a->path, b->path);
}

/* Returns true for x_B4.tif.aux.xml and x_B4.tif: "*_B4.*" matches both, but means the second. */
static bool is_sidecar_of(const struct pb_scene_entry *main, const struct pb_scene_entry *other)
{
    return pb_sidecar_is_any_of(pb_base_name(main->path), NULL, 0, true, pb_base_name(other->path));
}

/* --- files that are counted -------------------------------------------------------------------*/

static size_t without_suffix(const char *main)
{
    const char *dot = strrchr(main, '.');
    return dot != NULL && dot != main ? (size_t)(dot - main) : strlen(main);
}

struct counted {
    const struct pb_scene_entry *entry;
    char date[PB_GROUP_DATE_BYTES];
};

static int by_name(const void *a, const void *b)
{
    const struct counted *left = a, *right = b;
    int order = strcmp(pb_base_name(left->entry->path), pb_base_name(right->entry->path));
    return order != 0 ? order : strcmp(left->entry->path, right->entry->path);
}

static int by_date(const void *a, const void *b)
{
    const struct counted *left = a, *right = b;
    int order = strcmp(left->date, right->date);
    return order != 0 ? order : by_name(a, b);
}

/* Name of a file, with or without its suffix: sidecars of the file have it before their ending. */
struct stem {
    const char *text;
    size_t bytes, number; /* number of the file */
};

static int by_stem(const void *a, const void *b)
{
    const struct stem *left = a, *right = b;
    int order = strncasecmp(left->text, right->text,
                            left->bytes < right->bytes ? left->bytes : right->bytes);
    if (order == 0)
        order = (left->bytes > right->bytes) - (left->bytes < right->bytes);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

/* Returns true if a file other than `number` has this stem. A file has each stem once. */
static bool has_other(const struct stem *stems, size_t n, const char *text, size_t bytes,
                      size_t number)
{
    const struct stem first = {text, bytes, 0};
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (by_stem(&stems[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    low += low < n && stems[low].number == number;
    return low < n && stems[low].bytes == bytes && strncasecmp(stems[low].text, text, bytes) == 0;
}

/* Returns true for the file x_B4.tif.aux.xml next to x_B4.tif: "*_B4.*" matches both, but means
 * only the second. stems NULL: returns true if the name has an ending of a sidecar. */
static bool is_beside(const struct stem *stems, size_t n, const char *name, size_t number)
{
    const char *ending;
    bool is = false;
    for (size_t i = 0; !is && (ending = pb_sidecar_known(i)) != NULL; i++) {
        const size_t bytes = pb_sidecar_stem(name, ending);
        is = bytes > 0 && (stems == NULL || has_other(stems, n, name, bytes, number));
    }
    return is;
}

static bool any_is_beside(const struct counted *file, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = is_beside(NULL, 0, pb_base_name(file[i].entry->path), i);
    return any;
}

/* Removes the sidecars of others. */
static int drop_sidecars(struct counted *file, size_t *n)
{
    size_t kept = 0, n_stems = 0;
    if (!any_is_beside(file, *n))
        return 0;
    struct stem *stems = calloc(2 * *n, sizeof *stems);
    if (stems == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < *n; i++) {
        const char *name = pb_base_name(file[i].entry->path);
        const size_t bytes = strlen(name), bare = without_suffix(name);
        stems[n_stems++] = (struct stem){name, bytes, i};
        if (bare != bytes)
            stems[n_stems++] = (struct stem){name, bare, i};
    }
    qsort(stems, n_stems, sizeof *stems, by_stem);
    for (size_t i = 0; i < *n; i++)
        if (!is_beside(stems, n_stems, pb_base_name(file[i].entry->path), i))
            file[kept++].entry = file[i].entry;
    free(stems);
    *n = kept;
    return 0;
}

/* Sorts the files in input.order, without sidecars. */
static int sort(const struct pb_input_config *input, struct counted *file, size_t *n)
{
    const bool dated = pb_files_by_date(input->order);
    int rc = drop_sidecars(file, n);
    for (size_t i = 0; i < *n && dated; i++)
        pb_group_pattern_date(input->group_pattern, pb_base_name(file[i].entry->path),
                              file[i].date);
    qsort(file, *n, sizeof *file, dated ? by_date : by_name);
    return rc;
}

/* Lists the entries that match a counted pattern, without sidecars of others, in input.order. If
 * their order depends on metadata (cloud), they are numbered by name here and renumbered after the
 * metadata is read. filled: the pattern with the scene's name. Each pattern is listed
 * once. */
static int list_counted(struct search *s, const char *pattern, const char *filled,
                        const struct counted_list **out)
{
    const struct pb_scene_walk *walk = s->walk;
    for (size_t i = 0; i < s->n_lists; i++)
        if (strcmp(s->list[i].pattern, pattern) == 0) {
            *out = &s->list[i];
            return 0;
        }
    const bool down = pb_files_from_the_last(s->pipeline->input.order);
    struct counted_list *list = &s->list[s->n_lists];
    struct counted *file = calloc(walk->n + 1, sizeof *file);
    size_t n = 0;
    for (size_t i = 0; file != NULL && i < walk->n; i++)
        if (pb_scene_walk_fits(filled, walk->entry[i].path))
            file[n++].entry = &walk->entry[i];
    if (file != NULL && sort(&s->pipeline->input, file, &n) == 0)
        list->entry = calloc(n + 1, sizeof *list->entry);
    for (size_t i = 0; list->entry != NULL && i < n; i++)
        list->entry[i] = file[down ? n - 1 - i : i].entry;
    free(file);
    if (list->entry == NULL)
        return pb_fail(s->err, PB_E_MEMORY, "out of memory for the files of %s", s->folder);
    list->pattern = pattern;
    list->n = n;
    s->n_lists++;
    *out = list;
    return 0;
}

/* Finds entry number nth, from 1, of the matching ones, in input.order. */
static int find_nth(struct search *s, const struct wish *wish, const char *filled,
                    const struct pb_scene_entry **out)
{
    const struct counted_list *list = &no_list;
    int rc = list_counted(s, wish->pattern, filled, &list);
    if (rc == 0 && (size_t)wish->nth <= list->n)
        *out = list->entry[wish->nth - 1];
    return rc;
}

struct pattern_count {
    const char *pattern; /* pattern of the configuration; NULL = no earlier one */
    char filled[PATH_MAX];
    size_t n;
};

/* A number means the same observation in all patterns; therefore equal counts of files must
 * match. */
static int compare_count(struct search *s, const char *pattern, struct pattern_count *first)
{
    const struct counted_list *list = &no_list;
    char filled[PATH_MAX];
    if (first->pattern != NULL && strcmp(first->pattern, pattern) == 0)
        return 0;
    int rc = pb_scene_search_pattern(pattern, s->scene, filled, s->err);
    rc = rc ? rc : list_counted(s, pattern, filled, &list);
    if (rc == 0 && first->pattern == NULL) {
        first->pattern = pattern;
        first->n = list->n;
        (void)snprintf(first->filled, sizeof first->filled, "%s", filled);
    } else if (rc == 0 && list->n != first->n) {
        rc = pb_fail_at(s->err, PB_E_INPUT_INCOMPLETE, s->folder, 0, 0,
                        "%zu files fit %.100s and %zu fit %.100s: one of an observation is missing",
                        first->n, first->filled, list->n, filled);
    }
    return rc;
}

/* A missing file would shift the numbers of those after it. */
static int check_counts(struct search *s)
{
    const struct pb_input_config *input = &s->pipeline->input;
    const bool all = input->complete.all != 0;
    struct pattern_count first = {.pattern = NULL};
    int rc = input->file_nth > 0 ? compare_count(s, input->file, &first) : 0;
    for (size_t i = 0; i < input->n_sources && rc == 0; i++) {
        const struct pb_source_config *source = &input->sources[i];
        if (source->of_scene && source->nth > 0 && (all || source->is_needed))
            rc = compare_count(s, source->file, &first);
    }
    return rc;
}

/* --- each file --------------------------------------------------------------------------------*/

/* Finds the one entry that matches; *out NULL: no match. */
static int find(struct search *s, const struct wish *wish, const struct pb_scene_entry **out)
{
    char filled[PATH_MAX];
    *out = NULL;
    int rc = pb_scene_search_pattern(wish->pattern, s->scene, filled, s->err);
    if (rc == 0 && wish->nth > 0)
        rc = find_nth(s, wish, filled, out);
    for (size_t i = 0; i < s->walk->n && rc == 0 && wish->nth == 0; i++) {
        const struct pb_scene_entry *entry = &s->walk->entry[i];
        if (!pb_scene_walk_fits(filled, entry->path))
            continue;
        if (*out != NULL && is_sidecar_of(*out, entry))
            continue;
        if (*out != NULL && !is_sidecar_of(entry, *out))
            return two_files(s, wish->what, *out, entry);
        *out = entry;
    }
    if (rc == 0 && *out == NULL && !wish->optional)
        note_missing(s, wish, filled);
    return rc;
}

/* Handles one file of the scene: searched if it belongs to a complete scene, returned if needed. */
static int take(struct search *s, const struct wish *wish, const struct pb_scene_entry **out)
{
    const struct pb_scene_entry *entry = NULL;
    if (!wish->is_needed && s->pipeline->input.complete.all == 0)
        return 0;
    s->n_wanted += !wish->optional;
    int rc = find(s, wish, &entry);
    s->n_absent += rc == 0 && entry == NULL && wish->optional;
    if (rc == 0 && wish->is_needed)
        *out = entry;
    return rc;
}

/* --- files to choose from ----------------------------------------------------------------------
 */

static bool is_found(const struct pb_scene_found *found, const struct pb_scene_entry *entry)
{
    bool is = false;
    for (size_t i = 0; i < PB_FILES_MAX && !is; i++)
        is = found->file[i] == entry;
    for (size_t i = 0; i < found->n_spare && !is; i++)
        is = found->spare[i] == entry;
    return is;
}

/* Adds the files that match the pattern of a counted file, but whose number no nth refers to. */
static int take_spares(struct search *s, const char *pattern, struct pb_scene_found *found)
{
    const struct counted_list *list = &no_list;
    char filled[PATH_MAX];
    int rc = pb_scene_search_pattern(pattern, s->scene, filled, s->err);
    rc = rc ? rc : list_counted(s, pattern, filled, &list);
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        if (is_found(found, list->entry[i]))
            continue;
        if (found->n_spare == PB_SPARE_FILES_MAX)
            rc = pb_fail_at(s->err, PB_E_INPUT_LIMIT, s->folder, 0, 0,
                            "input.order would have to choose among more than %d files in addition "
                            "to those that input.files counts; %zu fit %.150s",
                            PB_SPARE_FILES_MAX, list->n, filled);
        else
            found->spare[found->n_spare++] = list->entry[i];
    }
    return rc;
}

/* Adds the metadata of one counted file; several files may have the same metadata. */
static int take_metadata_of(struct search *s, const struct pb_scene_entry *file,
                            const char *pattern, struct pb_scene_found *found)
{
    const struct pb_scene_entry *own = NULL;
    char what[200];
    (void)snprintf(what, sizeof what, "metadata of %.180s", pb_base_name(file->path));
    for (size_t i = 0; i < s->walk->n; i++) {
        const struct pb_scene_entry *entry = &s->walk->entry[i];
        if (!pb_scene_counted_is_metadata(pattern, s->scene, file->path, entry->path))
            continue;
        if (own != NULL)
            return two_files(s, what, own, entry);
        own = entry;
    }
    s->n_wanted++;
    if (own == NULL) {
        note_missing(s, &(struct wish){what, pattern, .nth = 0}, pattern);
        return 0;
    }
    for (size_t i = 0; i < found->n_metadata; i++)
        if (found->metadata[i] == own)
            return 0;
    if (found->n_metadata == PB_METADATA_OPEN_MAX)
        return pb_fail_at(s->err, PB_E_INPUT_LIMIT, s->folder, 0, 0,
                          "its files have more than %d files with metadata", PB_METADATA_OPEN_MAX);
    found->metadata[found->n_metadata++] = own;
    return 0;
}

static int take_metadata_each(struct search *s, const struct pb_scene_entry *file,
                              struct pb_scene_found *found)
{
    const struct pb_input_config *input = &s->pipeline->input;
    int rc = 0;
    for (size_t i = 0; file != NULL && i < input->n_metadata && rc == 0; i++)
        rc = take_metadata_of(s, file, input->metadata[i], found);
    return rc;
}

/* Returns true if an earlier file is the same. */
static bool is_twice(const struct pb_scene_found *found, size_t file)
{
    bool is = false;
    for (size_t i = 0; i < file && !is; i++)
        is = found->file[i] == found->file[file];
    return is;
}

static int take_all_spares(struct search *s, struct pb_scene_found *found)
{
    const struct pb_input_config *input = &s->pipeline->input;
    int rc = found->file[0] != NULL && input->file_nth > 0 ? take_spares(s, input->file, found) : 0;
    for (size_t i = 0; i < input->n_sources && rc == 0; i++)
        if (found->file[i + 1] != NULL && input->sources[i].nth > 0)
            rc = take_spares(s, input->sources[i].file, found);
    return rc;
}

static int take_metadata_of_all(struct search *s, struct pb_scene_found *found)
{
    const struct pb_input_config *input = &s->pipeline->input;
    int rc = 0;
    if (input->file_nth > 0)
        rc = take_metadata_each(s, found->file[0], found);
    for (size_t i = 0; i < input->n_sources && rc == 0; i++)
        if (input->sources[i].nth > 0 && !is_twice(found, i + 1))
            rc = take_metadata_each(s, found->file[i + 1], found);
    for (size_t i = 0; i < found->n_spare && rc == 0; i++)
        rc = take_metadata_each(s, found->spare[i], found);
    return rc;
}

static int take_metadata(struct search *s, struct pb_scene_found *found)
{
    const struct pb_input_config *input = &s->pipeline->input;
    int rc = 0;
    for (size_t i = 0; i < input->n_metadata && rc == 0; i++) {
        const struct pb_scene_entry *entry = NULL;
        const struct wish wish = {"metadata", input->metadata[i], .is_needed = true};
        rc = take(s, &wish, &entry);
        if (rc == 0 && entry != NULL)
            found->metadata[found->n_metadata++] = entry;
    }
    return rc;
}

/* Returns true if an entry of input.files is number nth of the files that match the pattern. */
static bool is_counted(const struct pb_input_config *input, const char *pattern, size_t nth)
{
    bool is = (size_t)input->file_nth == nth && strcmp(input->file, pattern) == 0;
    for (size_t i = 0; i < input->n_sources && !is; i++)
        is = input->sources[i].of_scene && (size_t)input->sources[i].nth == nth &&
             strcmp(input->sources[i].file, pattern) == 0;
    return is;
}

/* Records files of a counted pattern that no entry of input.files uses. */
static int leave_out(struct search *s, const char *pattern, struct pb_scene_found *found)
{
    const struct counted_list *list = &no_list;
    char filled[PATH_MAX];
    size_t used;
    int rc = pb_scene_search_pattern(pattern, s->scene, filled, s->err);
    rc = rc ? rc : list_counted(s, pattern, filled, &list);
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        const char *name = pb_base_name(list->entry[i]->path);
        if (is_counted(&s->pipeline->input, pattern, i + 1))
            continue;
        used = strlen(found->left_out);
        if (used + strlen(name) + sizeof ", ..., " < sizeof found->left_out)
            (void)snprintf(found->left_out + used, sizeof found->left_out - used, "%s%s",
                           used ? ", " : "", name);
        else if (used < 3 || strcmp(found->left_out + used - 3, "...") != 0)
            (void)snprintf(found->left_out + used, sizeof found->left_out - used, "%s...",
                           used ? ", " : "");
        found->n_left_out++;
    }
    return rc;
}

/* Handles each pattern once. */
static int leave_all_out(struct search *s, struct pb_scene_found *found)
{
    const struct pb_input_config *input = &s->pipeline->input;
    int rc = input->file_nth > 0 ? leave_out(s, input->file, found) : 0;
    for (size_t i = 0; i < input->n_sources && rc == 0; i++) {
        const struct pb_source_config *source = &input->sources[i];
        bool before =
            input->file_nth > 0 && source->of_scene && strcmp(input->file, source->file) == 0;
        for (size_t k = 0; k < i && !before; k++)
            before = input->sources[k].nth > 0 && source->of_scene &&
                     strcmp(input->sources[k].file, source->file) == 0;
        if (source->of_scene && source->nth > 0 && !before)
            rc = leave_out(s, source->file, found);
    }
    return rc;
}

int pb_scene_search(const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                    const char *folder, const char *scene, struct pb_err *err,
                    struct pb_scene_found *out)
{
    const struct pb_input_config *input = &pipeline->input;
    struct search s = {
        .pipeline = pipeline, .folder = folder, .scene = scene, .walk = walk, .err = err};
    char what[100];
    memset(out, 0, sizeof *out);
    (void)snprintf(what, sizeof what, "band %s", input->bands[0].name);
    struct wish wish = {what, input->file, input->file_nth, .is_needed = true};
    int rc = take(&s, &wish, &out->file[0]);
    for (size_t i = 0; i < input->n_sources && rc == 0; i++) {
        const struct pb_source_config *source = &input->sources[i];
        (void)snprintf(what, sizeof what, "band %s", source->name);
        wish = (struct wish){what, source->file, source->nth, source->is_needed, source->optional};
        if (source->of_scene)
            rc = take(&s, &wish, &out->file[i + 1]);
    }
    if (rc == 0 && pb_files_by_content(input->order))
        rc = take_all_spares(&s, out);
    if (rc == 0)
        rc = input->metadata_each ? take_metadata_of_all(&s, out) : take_metadata(&s, out);
    if (rc == 0 && s.n_missing == 0 && input->order != PB_FILES_BY_LIST)
        rc = check_counts(&s);
    if (rc == 0 && s.n_missing == 0 && !pb_files_by_content(input->order))
        rc = leave_all_out(&s, out);
    wish = (struct wish){"the list of its files", input->list, .is_needed = true};
    if (rc == 0 && input->list != NULL)
        rc = take(&s, &wish, &out->list);
    for (size_t i = 0; i < s.n_lists; i++)
        free(s.list[i].entry);
    out->n_absent = s.n_absent;
    if (rc == 0 && s.n_missing > 0)
        rc = pb_fail_at(err, PB_E_INPUT_INCOMPLETE, input->group != NULL ? NULL : folder, 0, 0,
                        "%zu of %zu files of the scene %s missing: %s", s.n_missing, s.n_wanted,
                        s.n_missing == 1 ? "is" : "are", s.missing);
    return rc;
}

/* --- files that belong to others ----------------------------------------------------------------
 */

/* Sidecars of GDAL's GTiff and JP2OpenJPEG drivers and their readers of vendors' metadata,
 * without endings that other files have too (.xml, .txt, _metadata.txt). */
static const char *const known[] = {
    ".aux.xml", ".msk",  ".msk.ovr", ".ovr", ".ovr.aux.xml", ".tfw",     ".tifw", ".tiffw",
    ".j2w",     ".jp2w", ".wld",     ".tab", ".prj",         "_RPC.TXT", ".RPB",  ".IMD",
    ".ATT",     ".EPH",  ".GEO",     ".TIL", ".PVL",         ".rrd",     ".aux",
};

const char *pb_sidecar_known(size_t i)
{
    return i < sizeof known / sizeof known[0] ? known[i] : NULL;
}

size_t pb_sidecar_stem(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcasecmp(name + n - m, ending) == 0 ? n - m : 0;
}

size_t pb_sidecar_shared(const char *main, const char *name)
{
    size_t n = strlen(main);
    return strncasecmp(name, main, n) == 0 ? n : without_suffix(main);
}

bool pb_sidecar_is_of(const char *main, const char *ending, const char *name)
{
    size_t stem = pb_sidecar_stem(name, ending), n = strlen(main), bare = without_suffix(main);
    return stem > 0 && (stem == n || stem == bare) && strncasecmp(name, main, stem) == 0;
}

bool pb_sidecar_is_any_of(const char *main, char *const *endings, size_t n, bool with_known,
                          const char *name)
{
    bool is = false;
    for (size_t i = 0; i < n && !is; i++)
        is = pb_sidecar_is_of(main, endings[i], name);
    for (size_t i = 0; with_known && !is && pb_sidecar_known(i) != NULL; i++)
        is = pb_sidecar_is_of(main, pb_sidecar_known(i), name);
    return is;
}

/* Returns true if a non-empty part of the name that is a prefix of main's matches the *. It ends
 * at the end of a word of main's: a_1.json does not belong to a_10.tif. */
static bool shares_its_begin(const char *rest, const char *main, const char *name)
{
    size_t common = 0;
    while (name[common] != '\0' && strncasecmp(name + common, main + common, 1) == 0)
        common++;
    for (size_t n = 1; n <= common; n++)
        if (!isalnum((unsigned char)main[n]) && pb_scene_walk_fits(rest, name + n))
            return true;
    return false;
}

bool pb_metadata_is_of(const char *pattern, const char *scene, const char *main, const char *name)
{
    char filled[PATH_MAX];
    if (strcasecmp(main != NULL ? main : "", name) == 0)
        return false;
    if (scene == NULL) {
        size_t n = 0;
        for (const char *at = pattern; *at != '\0' && n + 1 < sizeof filled;) {
            bool is_scene = strncmp(at, "{scene}", strlen("{scene}")) == 0;
            filled[n++] = is_scene ? '*' : *at;
            at += is_scene ? strlen("{scene}") : 1;
        }
        filled[n] = '\0';
        return pb_scene_walk_fits(filled, name);
    }
    if (pb_scene_search_pattern(pattern, scene, filled, NULL) != 0 ||
        !pb_scene_walk_fits(filled, name))
        return false;
    return main == NULL || filled[0] != '*' || shares_its_begin(filled + 1, main, name);
}

bool pb_scene_counted_is_metadata(const char *pattern, const char *scene, const char *file,
                                  const char *path)
{
    const bool whole = strchr(pattern, '/') != NULL;
    return pb_metadata_is_of(pattern, scene, whole ? file : pb_base_name(file),
                             whole ? path : pb_base_name(path));
}
