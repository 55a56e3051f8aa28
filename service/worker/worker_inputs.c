/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_inputs.h"

#include "pipeline/scene/scene_inputs.h"

#include <stdlib.h>
#include <string.h>

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

struct file {
    struct pb_manifest_entry entry;
    struct pb_member member; /* role PB_ROLES: no role */
};

static int by_source(const void *a, const void *b)
{
    const struct pb_member *left = &((const struct file *)a)->member,
                           *right = &((const struct file *)b)->member;
    const int order = (left->role == PB_ROLE_SOURCE) - (right->role == PB_ROLE_SOURCE);
    if (order == 0 && left->role == PB_ROLE_SOURCE && left->source != right->source)
        return left->source < right->source ? -1 : 1;
    return order != 0 ? order : (left->entry > right->entry) - (left->entry < right->entry);
}

/* Restores the order in which the files are recorded: the JSON form has them by their roots, and
 * sources follow the files of the scene. Without memory the order remains. */
static void sort_sources(struct pb_scene_manifest *inputs)
{
    struct file *file = calloc(inputs->n_entries, sizeof *file);
    size_t n = 0;
    if (file == NULL || inputs->n_members > inputs->n_entries) {
        free(file);
        return;
    }
    for (size_t i = 0; i < inputs->n_entries; i++) {
        file[i] = (struct file){inputs->entry[i], {.entry = (uint32_t)i, .role = PB_ROLES}};
        if (n < inputs->n_members && inputs->member[n].entry == i)
            file[i].member = inputs->member[n++];
    }
    const bool is_known = n == inputs->n_members; /* a file has one role at most */
    if (is_known)
        qsort(file, inputs->n_entries, sizeof *file, by_source);
    n = 0;
    for (size_t i = 0; is_known && i < inputs->n_entries; i++) {
        inputs->entry[i] = file[i].entry;
        file[i].member.entry = (uint32_t)i;
        if (file[i].member.role != PB_ROLES)
            inputs->member[n++] = file[i].member;
    }
    free(file);
}

bool pb_worker_inputs_read(const struct pb_json_value *command, struct pb_scene_manifest *out)
{
    struct pb_scene_manifest read;
    if (pb_scene_manifest_read(pb_json_get(command, "manifest", NULL), &read) != 0)
        return false;
    const bool good = is_complete(&read);
    if (good)
        sort_sources(&read);
    if (good)
        *out = read;
    else
        pb_scene_manifest_fini(&read);
    return good;
}
