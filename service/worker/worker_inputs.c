/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_inputs.h"

#include <errno.h>
#include <stdlib.h>

struct pb_json *pb_worker_inputs_command(const struct pb_scene_manifest *inputs)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "inputs");
    pb_scene_manifest_print(inputs, json, "manifest");
    pb_json_end(json);
    return json;
}

/* Returns true if every file has a role in the record of products, a size and a checksum. */
static bool is_complete(const struct pb_scene_manifest *inputs)
{
    size_t n = 0;
    for (size_t i = 0; i < inputs->n_entries; i++) {
        const struct pb_manifest_entry *entry = &inputs->entry[i];
        if (entry->is_folder)
            continue;
        if (pb_role_record_name(pb_scene_manifest_role(inputs, i)) == NULL || entry->bytes < 0 ||
            entry->checksum == NULL)
            return false;
        n++;
    }
    return n > 0;
}

/* Place of a file in the record of products. */
struct place {
    uint32_t entry;
    struct pb_member member; /* role PB_ROLES: no role, as a folder */
};

static int by_source(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    const bool is_source = left->member.role == PB_ROLE_SOURCE;
    int order = is_source - (right->member.role == PB_ROLE_SOURCE);
    if (order == 0 && is_source)
        order = (int)left->member.source - (int)right->member.source;
    return order != 0 ? order : (left->entry > right->entry) - (left->entry < right->entry);
}

/* Copies the files in the order in which they are recorded: the JSON form has them by their roots,
 * and sources follow the files of the scene. */
static int copy_sorted(const struct pb_scene_manifest *read, struct pb_scene_manifest *out)
{
    struct place *place = calloc(read->n_entries, sizeof *place);
    int rc = place != NULL ? 0 : -ENOMEM;
    *out = (struct pb_scene_manifest){.n_roots = 0};
    for (size_t i = 0; rc >= 0 && i < read->n_roots; i++)
        rc = pb_scene_manifest_root(out, read->root[i]);
    for (size_t i = 0; rc >= 0 && i < read->n_entries; i++)
        place[i] = (struct place){(uint32_t)i, {.role = PB_ROLES}};
    for (size_t i = 0; rc >= 0 && i < read->n_members; i++) /* a file has one role at most */
        place[read->member[i].entry].member = read->member[i];
    if (rc >= 0)
        qsort(place, read->n_entries, sizeof *place, by_source);
    for (size_t i = 0; rc >= 0 && i < read->n_entries; i++) {
        rc = pb_scene_manifest_add(out, &read->entry[place[i].entry]);
        place[i].member.entry = (uint32_t)i;
        if (rc >= 0 && place[i].member.role != PB_ROLES)
            rc = pb_scene_manifest_assign(out, &place[i].member);
    }
    free(place);
    if (rc < 0)
        pb_scene_manifest_fini(out);
    return rc < 0 ? rc : 0;
}

bool pb_worker_inputs_read(const struct pb_json_value *command, struct pb_scene_manifest *out)
{
    struct pb_scene_manifest read;
    if (pb_scene_manifest_read(pb_json_get(command, "manifest", NULL), &read) != 0)
        return false;
    const bool good = is_complete(&read) && copy_sorted(&read, out) == 0;
    pb_scene_manifest_fini(&read);
    return good;
}
