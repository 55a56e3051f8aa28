/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_search.h"

#include "config/base/base_name.h"
#include "pipeline/scene/sidecar_names.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char SCENE[] = "{scene}";

struct search {
    const struct pb_pipeline_config *pipeline;
    const char *folder, *scene;
    const struct pb_scene_walk *walk;
    struct pb_err *err;
    char missing[300]; /* "SCL (SCL.tif), B (B02.tif)" */
    size_t n_missing, n_wanted;
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

static void note_missing(struct search *s, const char *what, const char *pattern)
{
    size_t used = strlen(s->missing);
    s->n_missing++;
    if (used + strlen(what) + strlen(pattern) + 6 < sizeof s->missing)
        (void)snprintf(s->missing + used, sizeof s->missing - used, "%s%s (%s)", used ? ", " : "",
                       what, pattern);
    else if (used > 3 && strcmp(s->missing + used - 3, "...") != 0 && used + 6 < sizeof s->missing)
        (void)snprintf(s->missing + used, sizeof s->missing - used, ", ...");
}

static int two_files(const struct search *s, const char *what, const struct pb_scene_entry *a,
                     const struct pb_scene_entry *b)
{
    return pb_fail_at(s->err, PB_E_INPUT_AMBIGUOUS, s->folder, 0, 0,
                      "two files fit %s: %.150s and %.150s", what, a->path, b->path);
}

/* "*_B4.*" fits x_B4.tif and x_B4.tif.aux.xml, and means the first. */
static bool is_sidecar_of(const struct pb_scene_entry *main, const struct pb_scene_entry *other)
{
    return pb_sidecar_is_any_of(pb_base_name(main->path), NULL, 0, true, pb_base_name(other->path));
}

/* The one entry that fits; *out NULL: none does. */
static int find(struct search *s, const char *what, const char *pattern,
                const struct pb_scene_entry **out)
{
    char filled[PATH_MAX];
    *out = NULL;
    int rc = pb_scene_search_pattern(pattern, s->scene, filled, s->err);
    for (size_t i = 0; i < s->walk->n && rc == 0; i++) {
        const struct pb_scene_entry *entry = &s->walk->entry[i];
        if (!pb_scene_walk_fits(filled, entry->path))
            continue;
        if (*out != NULL && is_sidecar_of(*out, entry))
            continue;
        if (*out != NULL && !is_sidecar_of(entry, *out))
            return two_files(s, what, *out, entry);
        *out = entry;
    }
    if (rc == 0 && *out == NULL)
        note_missing(s, what, pattern);
    return rc;
}

/* One file of the scene: looked for when it belongs to a complete one, told when needed. */
static int take(struct search *s, const char *what, const char *pattern, bool is_needed,
                const struct pb_scene_entry **out)
{
    const struct pb_scene_entry *entry = NULL;
    if (!is_needed && s->pipeline->input.complete.all == 0)
        return 0;
    s->n_wanted++;
    int rc = find(s, what, pattern, &entry);
    if (rc == 0 && is_needed)
        *out = entry;
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
    int rc = take(&s, what, input->file, true, &out->file[0]);
    for (size_t i = 0; i < input->n_sources && rc == 0; i++) {
        const struct pb_source_config *source = &input->sources[i];
        (void)snprintf(what, sizeof what, "band %s", source->name);
        if (source->of_scene)
            rc = take(&s, what, source->file, source->is_needed, &out->file[i + 1]);
    }
    for (size_t i = 0; i < input->n_metadata && rc == 0; i++)
        rc = take(&s, "metadata", input->metadata[i], true, &out->metadata[i]);
    if (rc == 0 && s.n_missing > 0)
        rc = pb_fail_at(err, PB_E_INPUT_INCOMPLETE, folder, 0, 0,
                        "%zu of %zu files of the scene %s missing: %s", s.n_missing, s.n_wanted,
                        s.n_missing == 1 ? "is" : "are", s.missing);
    return rc;
}
