/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/sidecar_names.h"

#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/scene_walk.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

static size_t without_suffix(const char *main)
{
    const char *dot = strrchr(main, '.');
    return dot != NULL && dot != main ? (size_t)(dot - main) : strlen(main);
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
