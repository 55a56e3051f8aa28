/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the manifest of a scene: they are refused, or every path is below its root, every
 * role is of a file, and the printed form is read back as the same manifest. */
#include "fuzz_check.h"
#include "pipeline/scene/manifest.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Returns true if a part of the path is "..". */
static bool leaves(const char *path)
{
    for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
        if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
            return true;
    return path[0] == '/' || path[0] == '\0';
}

static void check(const struct pb_scene_manifest *manifest)
{
    for (size_t i = 0; i < manifest->n_roots; i++)
        require(manifest->root[i][0] == '/', "a root that is not absolute");
    for (size_t i = 0; i < manifest->n_entries; i++) {
        require(manifest->entry[i].root < manifest->n_roots, "a file without a root");
        require(!leaves(manifest->entry[i].path), "a path that leaves its root");
    }
    for (size_t i = 0; i < manifest->n_members; i++)
        require(manifest->member[i].entry < manifest->n_entries, "a role without a file");
}

static struct pb_json *form_of(const struct pb_scene_manifest *manifest)
{
    struct pb_json *json = pb_json_create(false);
    pb_scene_manifest_print(manifest, json, NULL);
    require(pb_json_text(json, NULL) != NULL, "a manifest that cannot be printed");
    return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct pb_scene_manifest manifest, again;
    char *text = strndup((const char *)data, bytes);
    const bool is_one = text != NULL && pb_scene_manifest_parse(text, &manifest) == 0;
    free(text);
    if (!is_one)
        return 0;
    check(&manifest);
    struct pb_json *first = form_of(&manifest);
    require(pb_scene_manifest_parse(pb_json_text(first, NULL), &again) == 0,
            "a printed form that is refused");
    struct pb_json *second = form_of(&again);
    require(strcmp(pb_json_text(first, NULL), pb_json_text(second, NULL)) == 0,
            "a manifest that changes when it is printed and read");
    pb_json_destroy(first);
    pb_json_destroy(second);
    pb_scene_manifest_fini(&manifest);
    pb_scene_manifest_fini(&again);
    return 0;
}
