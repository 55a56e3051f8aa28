/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/output/output_path.h"
#include "config/base/glob.h"
#include "config/base/text_clean.h"
#include "config/output/output_template.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define COMPONENT_BYTES  255
#define NAME_BYTES       200 /* leaves room for suffixes */
#define TIME_DEFAULT     "%Y%m%dT%H%M%S"
#define TIME_CONVERSIONS "YmdHMSjy%"

/* --- checks ----------------------------------------------------------------------------------- */

static bool has_control(const char *text)
{
    uint32_t code = 0;
    for (const char *c = text; *c != '\0';) {
        size_t n = pb_text_character(c, &code);
        if (n > 0 && pb_text_is_control(code))
            return true;
        c += n > 0 ? n : 1;
    }
    return false;
}

static bool is_format(const char *format)
{
    for (const char *c = format; *c != '\0'; c++)
        if (*c == '%' && (*++c == '\0' || strchr(TIME_CONVERSIONS, *c) == NULL))
            return false;
    return true;
}

static bool is_placeholder(const struct pb_template_placeholder *p, bool in_name, char why[200])
{
    static const char *const keys[] = {"scene",    "pipeline", "sensor",
                                       "datetime", "product",  "tile"};
    size_t n = in_name ? 6 : 4, i = 0;
    while (i < n && strcmp(keys[i], p->key) != 0)
        i++;
    if (i == n)
        (void)snprintf(why, 200,
                       "has an unknown {%s}; allowed: {scene}, {pipeline}, {sensor}, "
                       "{datetime:%%Y%%m%%d}%s",
                       p->key, in_name ? ", {product}, {tile}" : "");
    else if (strcmp(p->key, "datetime") != 0 && p->format[0] != '\0')
        (void)snprintf(why, 200, "has a format in {%s}, which only {datetime} takes", p->key);
    else if (!is_format(p->format))
        (void)snprintf(why, 200, "has '%s' in {datetime}; allowed: %%Y %%m %%d %%H %%M %%S %%j %%y",
                       p->format);
    else
        return true;
    return false;
}

static bool check_part(const char *part, bool in_name, bool *out_has_scene, char why[200])
{
    struct pb_template_piece piece;
    *out_has_scene = false;
    why[0] = '\0';
    if (part[0] == '\0' || part[0] == '.')
        (void)snprintf(why, 200, "has %s",
                       part[0] == '.' ? "a component that begins with '.'" : "an empty component");
    else if (has_control(part))
        (void)snprintf(why, 200, "has a control character");
    for (const char *c = part; *c != '\0' && why[0] == '\0';) {
        if (!pb_template_next(&c, &piece))
            (void)snprintf(why, 200, "has a brace that belongs to no placeholder");
        else if (piece.is_placeholder && is_placeholder(&piece.placeholder, in_name, why))
            *out_has_scene = *out_has_scene || strcmp(piece.placeholder.key, "scene") == 0;
    }
    return why[0] == '\0';
}

bool pb_output_path_check(const char *path, char why[200])
{
    struct pb_template_parts parts;
    size_t n_scenes = 0, scene = 0;
    if (path[0] == '/') {
        (void)snprintf(why, 200, "is absolute; it begins below the directory of products");
        return false;
    }
    if (strlen(path) >= PB_OUTPUT_PATH_BYTES / 2 || !pb_template_split(path, &parts)) {
        (void)snprintf(why, 200, "is too long; at most %d components are allowed",
                       PB_OUTPUT_PARTS_MAX);
        return false;
    }
    for (size_t i = 0; i < parts.n; i++) {
        bool has_scene;
        if (!check_part(parts.text[i], false, &has_scene, why))
            return false;
        n_scenes += has_scene;
        scene = has_scene ? i : scene;
    }
    if (n_scenes == 1 && scene + 2 >= parts.n)
        return true;
    (void)snprintf(why, 200, "%s",
                   n_scenes == 0  ? "does not name the scene: one component needs {scene}"
                   : n_scenes > 1 ? "has {scene} in several components; one is enough"
                                  : "has several components after {scene}; at most one may follow");
    return false;
}

bool pb_output_path_needs_metadata(const char *path)
{
    return strstr(path, "{sensor") != NULL || strstr(path, "{datetime") != NULL;
}

bool pb_output_name_check(const char *name, char why[200])
{
    bool has_scene;
    if (strchr(name, '/') != NULL || strlen(name) >= PB_TEMPLATE_PART_BYTES) {
        (void)snprintf(why, 200, "%s",
                       strchr(name, '/') ? "has a '/'; directories belong into output.path"
                                         : "is too long");
        return false;
    }
    return check_part(name, true, &has_scene, why);
}

bool pb_output_name_has_tile(const char *name)
{
    return strstr(name, "{tile}") != NULL;
}

/* --- values ----------------------------------------------------------------------------------- */

/* NULL = not known. room: for times. */
static const char *value_of(const struct pb_template_placeholder *p,
                            const struct pb_output_facts *facts, char room[128])
{
    if (strcmp(p->key, "scene") == 0)
        return facts->scene;
    if (strcmp(p->key, "pipeline") == 0)
        return facts->pipeline;
    if (strcmp(p->key, "product") == 0)
        return facts->product;
    if (strcmp(p->key, "tile") == 0)
        return facts->tile;
    if (strcmp(p->key, "sensor") == 0)
        return facts->sensor;
    struct tm tm;
    time_t seconds = (time_t)facts->time_s;
    if (!facts->has_time || gmtime_r(&seconds, &tm) == NULL)
        return NULL;
    char format[66];
    (void)snprintf(format, sizeof format, "%s", p->format[0] ? p->format : TIME_DEFAULT);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t n = strftime(room, 128, format, &tm);
#pragma GCC diagnostic pop
    room[n] = '\0';
    return room;
}

static bool is_name(const char *text)
{
    return text[0] != '\0' && text[0] != '.' && strchr(text, '/') == NULL && !has_control(text);
}

static int unknown(const char *template, const struct pb_template_placeholder *p,
                   struct pb_err *err)
{
    return pb_fail(err, PB_E_OUTPUT_PATH, "%s needs {%s}, which the scene's metadata do not have",
                   template, p->key);
}

/* One component with its values. */
static int expand(const char *template, const char *part, size_t bytes_max,
                  const struct pb_output_facts *facts, struct pb_err *err,
                  char out[PB_TEMPLATE_PART_BYTES])
{
    char room[128];
    size_t n = 0;
    struct pb_template_piece piece;
    for (const char *c = part; *c != '\0';) {
        char letter[2] = "";
        const char *value = letter;
        if (!pb_template_next(&c, &piece))
            return pb_fail(err, PB_E_OUTPUT_PATH, "%s has a brace too many", template);
        letter[0] = piece.letter;
        if (piece.is_placeholder)
            value = value_of(&piece.placeholder, facts, room);
        if (value == NULL)
            return unknown(template, &piece.placeholder, err);
        size_t length = strlen(value);
        if (n + length > bytes_max)
            return pb_fail(err, PB_E_OUTPUT_PATH, "%s makes a name of more than %zu bytes",
                           template, bytes_max);
        (void)memcpy(out + n, value, length);
        n += length;
    }
    out[n] = '\0';
    if (!is_name(out))
        return pb_fail(err, PB_E_OUTPUT_PATH, "%s makes '%.80s', which is not a plain name",
                       template, out);
    return 0;
}

static size_t scene_part(const struct pb_template_parts *parts)
{
    size_t i = 0;
    while (i + 1 < parts->n && strstr(parts->text[i], "{scene}") == NULL)
        i++;
    return i;
}

int pb_output_path_expand(const char *path, const struct pb_output_facts *facts, struct pb_err *err,
                          struct pb_output_place *out)
{
    struct pb_template_parts parts;
    struct pb_output_place place = {.parents = ""};
    char why[200], name[PB_TEMPLATE_PART_BYTES];
    size_t used = 0;
    if (!pb_output_path_check(path, why) || !pb_template_split(path, &parts))
        return pb_fail(err, PB_E_OUTPUT_PATH, "output.path: '%.200s' %s", path, why);
    size_t scene = scene_part(&parts);
    for (size_t i = 0; i < parts.n; i++) {
        int rc = expand(path, parts.text[i], COMPONENT_BYTES, facts, err, name);
        if (rc != 0)
            return rc;
        if (i >= scene)
            (void)snprintf(i == scene ? place.scene : place.inner, PB_TEMPLATE_PART_BYTES, "%s",
                           name);
        else if (used + strlen(name) + 2 > sizeof place.parents)
            return pb_fail(err, PB_E_OUTPUT_PATH, "%s makes a path that is too long", path);
        else
            used += (size_t)snprintf(place.parents + used, sizeof place.parents - used, "%s%s",
                                     i > 0 ? "/" : "", name);
    }
    *out = place;
    return 0;
}

int pb_output_name_expand(const char *name, const struct pb_output_facts *facts, struct pb_err *err,
                          char out[256])
{
    return expand(name, name, NAME_BYTES, facts, err, out);
}

/* --- patterns --------------------------------------------------------------------------------- */

static size_t add_escaped(char *out, size_t bytes, size_t n, const char *text)
{
    for (const char *c = text; *c != '\0' && n + 3 < bytes; c++) {
        if (strchr("*?[]\\", *c) != NULL)
            out[n++] = '\\';
        out[n++] = *c;
    }
    return n;
}

static void make_pattern(const char *part, const struct pb_output_facts *facts,
                         struct pb_output_part *out)
{
    char room[128];
    bool exact = true;
    size_t n = 0;
    struct pb_template_piece piece;
    struct pb_err err;
    for (const char *c = part; *c != '\0' && pb_template_next(&c, &piece);) {
        char letter[2] = {piece.letter, '\0'};
        const char *value =
            piece.is_placeholder ? value_of(&piece.placeholder, facts, room) : letter;
        exact = exact && value != NULL;
        if (value != NULL)
            n = add_escaped(out->pattern, sizeof out->pattern, n, value);
        else if (n + 2 < sizeof out->pattern)
            out->pattern[n++] = '*';
    }
    out->pattern[n] = '\0';
    if (!exact || expand(part, part, COMPONENT_BYTES, facts, &err, out->exact) != 0)
        out->exact[0] = '\0';
}

void pb_output_path_pattern(const char *path, const struct pb_output_facts *facts,
                            struct pb_output_pattern *out)
{
    struct pb_template_parts parts;
    *out = (struct pb_output_pattern){.n = 0};
    if (!pb_template_split(path, &parts))
        return;
    out->n = parts.n;
    out->scene = scene_part(&parts);
    for (size_t i = 0; i < parts.n; i++)
        make_pattern(parts.text[i], facts, &out->part[i]);
}

/* The length of a name without its version. */
static size_t without_version(const char *name)
{
    const char *mark = strrchr(name, '~');
    size_t digits = mark ? strspn(mark + 1, "0123456789") : 0;
    return digits > 0 && digits <= 9 && mark[1 + digits] == '\0' ? (size_t)(mark - name)
                                                                 : strlen(name);
}

bool pb_output_part_fits(const struct pb_output_pattern *pattern, size_t i, const char *component)
{
    char base[PB_TEMPLATE_PART_BYTES];
    const struct pb_output_part *part = &pattern->part[i];
    if (component[0] == '.' || strlen(component) >= sizeof base)
        return false;
    if (pb_glob_fits(part->pattern, component, 0))
        return true;
    (void)snprintf(base, sizeof base, "%.*s", (int)without_version(component), component);
    return i == pattern->scene && pb_glob_fits(part->pattern, base, 0);
}

bool pb_output_path_fits(const struct pb_output_pattern *pattern, const char *relative)
{
    char component[PB_TEMPLATE_PART_BYTES];
    const char *at = relative;
    for (size_t i = 0; i < pattern->n; i++) {
        size_t n = strcspn(at, "/");
        if (n >= sizeof component || (at[n] == '\0') != (i + 1 == pattern->n))
            return false;
        (void)snprintf(component, sizeof component, "%.*s", (int)n, at);
        if (!pb_output_part_fits(pattern, i, component))
            return false;
        at += n + 1;
    }
    return pattern->n > 0;
}
