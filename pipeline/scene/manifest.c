/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/manifest.h"

#include "config/base/base_name.h"
#include "config/base/json_path.h"
#include "config/base/text_clean.h"
#include "pipeline/io/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_names[PB_ROLES] = {
    [PB_ROLE_IMAGE] = "image",     [PB_ROLE_BAND] = "band",     [PB_ROLE_METADATA] = "metadata",
    [PB_ROLE_SIDECAR] = "sidecar", [PB_ROLE_LIST] = "list",     [PB_ROLE_COMPANION] = "companion",
    [PB_ROLE_SOURCE] = "source",   [PB_ROLE_UNUSED] = "unused",
};

/* Greatest bytes of the JSON form of an entry without its path and roles, of a role with the array
 * that it may begin, of a root, and of the input without its path. */
enum { ENTRY_BYTES = 272, ROLE_BYTES = 40, ROOT_BYTES = 32, INPUT_BYTES = 40 };

static void fini_entry(struct pb_manifest_entry *entry)
{
    free(entry->path);
    free(entry->checksum);
}

void pb_scene_manifest_fini(struct pb_scene_manifest *manifest)
{
    for (size_t i = 0; i < manifest->n_roots; i++)
        free(manifest->root[i]);
    for (size_t i = 0; i < manifest->n_entries; i++)
        fini_entry(&manifest->entry[i]);
    free(manifest->root);
    free(manifest->entry);
    free(manifest->member);
    free(manifest->input);
    *manifest = (struct pb_scene_manifest){.n_roots = 0};
}

/* Makes room for one more element; the capacity is the next power of two. */
static bool grow(void **array, size_t n, size_t bytes)
{
    if ((n & (n - 1)) != 0)
        return true;
    void *more = realloc(*array, (n > 0 ? 2 * n : 1) * bytes);
    if (more != NULL)
        *array = more;
    return more != NULL;
}

/* Returns true if every part of the path is a name: not empty, "." or "..". */
static bool has_names_only(const char *path)
{
    for (;; path++) {
        const size_t n = strcspn(path, "/");
        if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && strncmp(path, "..", 2) == 0))
            return false;
        path += n;
        if (*path == '\0')
            return true;
    }
}

/* Greatest bytes of a path in JSON, as UTF-8 or as the text of pb_json_path. */
static size_t path_bytes(const char *path)
{
    size_t bytes = sizeof "bytes:";
    for (const unsigned char *s = (const unsigned char *)path; *s != '\0'; s++)
        bytes += *s < 0x20                               ? 6 /* \u00XX */
                 : *s == '"' || *s == '\\'               ? 2
                 : *s == 0x20 || *s >= 0x7f || *s == '%' ? 3 /* %XX */
                                                         : 1;
    return bytes;
}

int pb_scene_manifest_set_input(struct pb_scene_manifest *manifest, const char *path)
{
    char *copy = path != NULL ? strdup(path) : NULL;
    if (path != NULL && copy == NULL)
        return -ENOMEM;
    if (manifest->input != NULL)
        manifest->json_bytes -= INPUT_BYTES + path_bytes(manifest->input);
    if (copy != NULL)
        manifest->json_bytes += INPUT_BYTES + path_bytes(copy);
    free(manifest->input);
    manifest->input = copy;
    return 0;
}

static bool is_root(const char *path)
{
    return path != NULL && path[0] == '/' && strlen(path) < PB_SCENE_MANIFEST_PATH_BYTES;
}

/* most: limit of json_bytes */
static int add_root(struct pb_scene_manifest *manifest, const char *path, size_t most)
{
    const size_t n = manifest->n_roots;
    if (!is_root(path))
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(manifest->root[i], path) == 0)
            return (int)i;
    const size_t bytes = manifest->json_bytes + ROOT_BYTES + path_bytes(path);
    if (n == PB_SCENE_MANIFEST_ROOTS_MAX || bytes > most)
        return -E2BIG;
    if (!grow((void **)&manifest->root, n, sizeof *manifest->root) ||
        (manifest->root[n] = strdup(path)) == NULL)
        return -ENOMEM;
    manifest->json_bytes = bytes;
    return (int)manifest->n_roots++;
}

int pb_scene_manifest_root(struct pb_scene_manifest *manifest, const char *path)
{
    return add_root(manifest, path, PB_SCENE_MANIFEST_ADD_MAX);
}

static bool is_checksum(const char *text)
{
    enum pb_checksum kind;
    const char *digits = NULL;
    return pb_checksum_parse(text, &kind, &digits) == 0 && digits != NULL;
}

static int add_entry(struct pb_scene_manifest *manifest, const struct pb_manifest_entry *entry,
                     size_t most)
{
    const size_t n = manifest->n_entries;
    if (entry->root >= manifest->n_roots || entry->path == NULL ||
        strlen(entry->path) >= PB_SCENE_MANIFEST_PATH_BYTES || !has_names_only(entry->path) ||
        (entry->checksum != NULL && !is_checksum(entry->checksum)) || entry->bytes < -1)
        return -EINVAL;
    const size_t bytes = manifest->json_bytes + ENTRY_BYTES + path_bytes(entry->path);
    if (n == PB_SCENE_MANIFEST_ENTRIES_MAX || bytes > most)
        return -E2BIG;
    if (!grow((void **)&manifest->entry, n, sizeof *manifest->entry))
        return -ENOMEM;
    struct pb_manifest_entry *own = &manifest->entry[n];
    *own = *entry;
    own->path = strdup(entry->path);
    own->checksum = entry->checksum != NULL ? strdup(entry->checksum) : NULL;
    if (own->path == NULL || (entry->checksum != NULL && own->checksum == NULL)) {
        fini_entry(own);
        return -ENOMEM;
    }
    manifest->json_bytes = bytes;
    if (manifest->first_folder == n && !entry->is_folder)
        manifest->first_folder++;
    return (int)manifest->n_entries++;
}

int pb_scene_manifest_add(struct pb_scene_manifest *manifest, const struct pb_manifest_entry *entry)
{
    return add_entry(manifest, entry, PB_SCENE_MANIFEST_ADD_MAX);
}

int pb_scene_manifest_assign(struct pb_scene_manifest *manifest, const struct pb_member *member)
{
    const size_t n = manifest->n_members;
    if (member->entry >= manifest->n_entries || (unsigned)member->role >= PB_ROLES)
        return -EINVAL;
    if (!grow((void **)&manifest->member, n, sizeof *manifest->member))
        return -ENOMEM;
    size_t at = n;
    while (at > 0 && manifest->member[at - 1].entry > member->entry)
        at--;
    memmove(&manifest->member[at + 1], &manifest->member[at], (n - at) * sizeof *manifest->member);
    manifest->member[at] = *member;
    manifest->n_members++;
    manifest->json_bytes += ROLE_BYTES;
    return 0;
}

/* List of members that grows; rc -ENOMEM once it could not. */
struct members {
    struct pb_member *member;
    size_t n;
    int rc;
};

static void append(struct members *list, const struct pb_member *member)
{
    if (list->rc == 0 && grow((void **)&list->member, list->n, sizeof *list->member))
        list->member[list->n++] = *member;
    else
        list->rc = -ENOMEM;
}

int pb_scene_manifest_set_roles(struct pb_scene_manifest *manifest, const enum pb_role *role)
{
    struct members list = {.n = 0};
    size_t before = 0;
    for (uint32_t i = 0; i < manifest->n_entries; i++) {
        const struct pb_member own = {.entry = i, .role = role[i]};
        if (role[i] != PB_ROLES)
            append(&list, &own);
        for (; before < manifest->n_members && manifest->member[before].entry == i; before++)
            if (role[i] == PB_ROLES)
                append(&list, &manifest->member[before]);
    }
    if (list.rc != 0) {
        free(list.member);
        return list.rc;
    }
    manifest->json_bytes += list.n * ROLE_BYTES;
    manifest->json_bytes -= manifest->n_members * ROLE_BYTES;
    free(manifest->member);
    manifest->member = list.member;
    manifest->n_members = list.n;
    return 0;
}

int pb_scene_manifest_copy(struct pb_scene_manifest *out, const struct pb_scene_manifest *manifest)
{
    *out = (struct pb_scene_manifest){.n_roots = 0};
    int rc = pb_scene_manifest_set_input(out, manifest->input);
    for (size_t i = 0; i < manifest->n_roots && rc >= 0; i++)
        rc = add_root(out, manifest->root[i], SIZE_MAX);
    for (size_t i = 0; i < manifest->n_entries && rc >= 0; i++)
        rc = add_entry(out, &manifest->entry[i], SIZE_MAX);
    for (size_t i = 0; i < manifest->n_members && rc >= 0; i++)
        rc = pb_scene_manifest_assign(out, &manifest->member[i]);
    if (rc < 0)
        pb_scene_manifest_fini(out);
    return rc < 0 ? rc : 0;
}

/* Index of the first role of the entry, or of a later entry. */
static size_t first_member(const struct pb_scene_manifest *manifest, size_t entry)
{
    size_t low = 0, high = manifest->n_members;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (manifest->member[middle].entry < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool pb_scene_manifest_is(const struct pb_scene_manifest *manifest, size_t entry, enum pb_role role)
{
    for (size_t i = first_member(manifest, entry);
         i < manifest->n_members && manifest->member[i].entry == entry; i++)
        if (manifest->member[i].role == role)
            return true;
    return false;
}

enum pb_role pb_scene_manifest_role(const struct pb_scene_manifest *manifest, size_t entry)
{
    const size_t i = first_member(manifest, entry);
    return i < manifest->n_members && manifest->member[i].entry == entry ? manifest->member[i].role
                                                                         : PB_ROLES;
}

bool pb_role_is_pixels(enum pb_role role)
{
    return role == PB_ROLE_IMAGE || role == PB_ROLE_BAND;
}

bool pb_scene_manifest_is_image(const struct pb_scene_manifest *manifest)
{
    size_t n = 0, n_images = 0;
    for (size_t i = 0; i < manifest->n_entries; i++) {
        const enum pb_role role = pb_scene_manifest_role(manifest, i);
        n += role != PB_ROLE_COMPANION;
        n_images += role == PB_ROLE_IMAGE;
    }
    return n == 1 && n_images == 1;
}

size_t pb_scene_manifest_pixels(const struct pb_scene_manifest *manifest)
{
    size_t n = 0;
    for (size_t i = 0; i < manifest->n_entries; i++)
        n += pb_role_is_pixels(pb_scene_manifest_role(manifest, i));
    return n;
}

const char *pb_role_record_name(enum pb_role role)
{
    static const char *const names[PB_ROLES] = {
        [PB_ROLE_IMAGE] = "pixels",    [PB_ROLE_BAND] = "pixels",   [PB_ROLE_METADATA] = "metadata",
        [PB_ROLE_SIDECAR] = "sidecar", [PB_ROLE_LIST] = "metadata", [PB_ROLE_SOURCE] = "source",
    };
    return role < PB_ROLES ? names[role] : NULL;
}

const char *pb_scene_manifest_inner(const struct pb_scene_manifest *manifest,
                                    const struct pb_manifest_entry *entry)
{
    const char *inner = NULL;
    for (size_t i = manifest->first_folder; i < manifest->n_entries && inner == NULL; i++) {
        const struct pb_manifest_entry *folder = &manifest->entry[i];
        if (folder->is_folder && folder != entry && folder->root == entry->root)
            inner = pb_path_below(entry->path, folder->path);
    }
    return inner != NULL ? inner : entry->path;
}

void pb_scene_manifest_name(const struct pb_scene_manifest *manifest,
                            const struct pb_manifest_entry *entry,
                            char out[PB_SCENE_MANIFEST_NAME_BYTES])
{
    (void)pb_text_clean(pb_scene_manifest_inner(manifest, entry), out,
                        PB_SCENE_MANIFEST_NAME_BYTES);
}

struct pb_manifest_entry *pb_scene_manifest_find(const struct pb_scene_manifest *manifest,
                                                 enum pb_role role)
{
    for (size_t i = 0; i < manifest->n_members; i++)
        if (manifest->member[i].role == role)
            return &manifest->entry[manifest->member[i].entry];
    return NULL;
}

/* Removes an entry with all its roles. */
static void remove_entry(struct pb_scene_manifest *manifest, size_t entry)
{
    size_t n = 0;
    manifest->json_bytes -= ENTRY_BYTES + path_bytes(manifest->entry[entry].path);
    fini_entry(&manifest->entry[entry]);
    manifest->n_entries--;
    memmove(&manifest->entry[entry], &manifest->entry[entry + 1],
            (manifest->n_entries - entry) * sizeof *manifest->entry);
    manifest->first_folder -= entry < manifest->first_folder;
    while (manifest->first_folder < manifest->n_entries &&
           !manifest->entry[manifest->first_folder].is_folder)
        manifest->first_folder++;
    for (size_t i = 0; i < manifest->n_members; i++) {
        struct pb_member member = manifest->member[i];
        if (member.entry == entry)
            continue;
        member.entry -= member.entry > entry;
        manifest->member[n++] = member;
    }
    manifest->json_bytes -= (manifest->n_members - n) * ROLE_BYTES;
    manifest->n_members = n;
}

void pb_scene_manifest_remove(struct pb_scene_manifest *manifest, enum pb_role role)
{
    for (size_t i = manifest->n_entries; i-- > 0;)
        if (pb_scene_manifest_is(manifest, i, role))
            remove_entry(manifest, i);
}

int pb_scene_manifest_path(const struct pb_scene_manifest *manifest,
                           const struct pb_manifest_entry *entry,
                           char out[PB_SCENE_MANIFEST_PATH_BYTES])
{
    const char *root = manifest->root[entry->root];
    int n = snprintf(out, PB_SCENE_MANIFEST_PATH_BYTES, "%s/%s", root[1] != '\0' ? root : "",
                     entry->path);
    return n >= 0 && n < PB_SCENE_MANIFEST_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

/* Removes a root without files. */
static void drop_root(struct pb_scene_manifest *manifest, size_t root)
{
    for (size_t i = 0; i < manifest->n_entries; i++)
        if (manifest->entry[i].root == root)
            return;
    manifest->json_bytes -= ROOT_BYTES + path_bytes(manifest->root[root]);
    free(manifest->root[root]);
    manifest->n_roots--;
    memmove(&manifest->root[root], &manifest->root[root + 1],
            (manifest->n_roots - root) * sizeof *manifest->root);
    for (size_t i = 0; i < manifest->n_entries; i++)
        if (manifest->entry[i].root > root)
            manifest->entry[i].root--;
}

int pb_scene_manifest_move(struct pb_scene_manifest *manifest, struct pb_manifest_entry *entry,
                           const char *path)
{
    char directory[PATH_MAX];
    const char *name = pb_base_name(path);
    if (!has_names_only(name) || strlen(path) >= sizeof directory)
        return -EINVAL;
    pb_path_parent(path, directory);
    const int root = add_root(manifest, directory, SIZE_MAX);
    char *copy = root >= 0 ? strdup(name) : NULL;
    if (copy == NULL)
        return root < 0 ? root : -ENOMEM;
    const size_t before = entry->root;
    manifest->json_bytes += path_bytes(copy);
    manifest->json_bytes -= path_bytes(entry->path);
    free(entry->path);
    entry->path = copy;
    entry->root = (uint16_t)root;
    drop_root(manifest, before);
    return 0;
}

/* --- JSON form ------------------------------------------------------------------------------- */

static void print_roles(const struct pb_scene_manifest *manifest, size_t entry,
                        struct pb_json *json)
{
    const size_t first = first_member(manifest, entry);
    size_t i = first;
    for (; i < manifest->n_members && manifest->member[i].entry == entry; i++) {
        const struct pb_member *member = &manifest->member[i];
        if (i == first)
            pb_json_array(json, "roles");
        pb_json_array(json, NULL);
        pb_json_string(json, NULL, role_names[member->role]);
        pb_json_int(json, NULL, member->source);
        pb_json_int(json, NULL, member->nth);
        pb_json_end(json);
    }
    if (i > first)
        pb_json_end(json);
}

static void print_number(struct pb_json *json, const char *key, int64_t value, int64_t unknown)
{
    if (value != unknown)
        pb_json_int(json, key, value);
}

static void print_flag(struct pb_json *json, const char *key, bool value)
{
    if (value)
        pb_json_bool(json, key, true);
}

static void print_entry(const struct pb_scene_manifest *manifest, size_t i, struct pb_json *json)
{
    const struct pb_manifest_entry *entry = &manifest->entry[i];
    pb_json_object(json, NULL);
    pb_json_path(json, "path", entry->path);
    print_number(json, "bytes", entry->bytes, -1);
    print_number(json, "inode", (int64_t)entry->inode, 0);
    print_number(json, "mtime_ns", entry->mtime_ns, 0);
    print_number(json, "ctime_ns", entry->ctime_ns, 0);
    if (entry->checksum != NULL)
        pb_json_string(json, "checksum", entry->checksum);
    print_flag(json, "folder", entry->is_folder);
    print_flag(json, "gone", entry->is_gone);
    print_flag(json, "verifies", entry->verifies);
    print_roles(manifest, i, json);
    pb_json_end(json);
}

void pb_scene_manifest_print(const struct pb_scene_manifest *manifest, struct pb_json *json,
                             const char *key)
{
    pb_json_object(json, key);
    pb_json_int(json, "version", PB_SCENE_MANIFEST_VERSION);
    if (manifest->input != NULL)
        pb_json_path(json, "input", manifest->input);
    pb_json_array(json, "roots");
    for (size_t root = 0; root < manifest->n_roots; root++) {
        pb_json_object(json, NULL);
        pb_json_path(json, "path", manifest->root[root]);
        pb_json_array(json, "files");
        for (size_t i = 0; i < manifest->n_entries; i++)
            if (manifest->entry[i].root == root)
                print_entry(manifest, i, json);
        pb_json_end(json);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

/* Returns true if the value is an object without other members than these. */
static bool has_known_keys(const struct pb_json_value *value, const char *const *known, size_t n)
{
    const char *key;
    bool good = pb_json_is_object(value);
    for (size_t i = 0; good && (key = pb_json_key(value, i)) != NULL; i++) {
        good = false;
        for (size_t k = 0; k < n && !good; k++)
            good = strcmp(key, known[k]) == 0;
    }
    return good;
}

#define HAS_KNOWN_KEYS(value, known) has_known_keys(value, known, sizeof known / sizeof known[0])

/* Reads optional members; returns false for one of another type. */
static bool read_number(const struct pb_json_value *value, const char *key, int64_t *out)
{
    return pb_json_get_int(value, key, out) != -EINVAL;
}

static bool read_flag(const struct pb_json_value *value, const char *key, bool *out)
{
    return pb_json_get_bool(value, key, out) != -EINVAL;
}

static bool read_index(const struct pb_json_value *value, uint16_t *out)
{
    const double number = pb_json_number_of(value, -1);
    if (!(number >= 0 && number <= UINT16_MAX) || number != (double)(uint16_t)number)
        return false;
    *out = (uint16_t)number;
    return true;
}

static int read_role(const struct pb_json_value *value, size_t entry,
                     struct pb_scene_manifest *manifest)
{
    struct pb_member member = {.entry = (uint32_t)entry, .role = PB_ROLES};
    const char *name = pb_json_text_of(pb_json_at(value, 0));
    for (int i = 0; name != NULL && i < (int)PB_ROLES; i++)
        if (strcmp(name, role_names[i]) == 0)
            member.role = (enum pb_role)i;
    if (pb_json_count(value) != 3 || !read_index(pb_json_at(value, 1), &member.source) ||
        !read_index(pb_json_at(value, 2), &member.nth))
        return -EINVAL;
    return pb_scene_manifest_assign(manifest, &member);
}

static int read_entry(const struct pb_json_value *value, uint16_t root,
                      struct pb_scene_manifest *manifest)
{
    static const char *const known[] = {"path",     "bytes",  "inode", "mtime_ns", "ctime_ns",
                                        "checksum", "folder", "gone",  "verifies", "roles"};
    char room[PB_JSON_PATH_BYTES];
    int64_t inode = 0;
    bool has_sum = false;
    struct pb_manifest_entry entry = {.root = root, .bytes = -1};
    entry.path = (char *)pb_json_get_path(value, "path", room);
    entry.checksum = (char *)pb_json_get_text(value, "checksum");
    (void)pb_json_get(value, "checksum", &has_sum);
    if (!HAS_KNOWN_KEYS(value, known) || has_sum != (entry.checksum != NULL) ||
        !read_number(value, "bytes", &entry.bytes) || !read_number(value, "inode", &inode) ||
        !read_number(value, "mtime_ns", &entry.mtime_ns) ||
        !read_number(value, "ctime_ns", &entry.ctime_ns) ||
        !read_flag(value, "folder", &entry.is_folder) ||
        !read_flag(value, "gone", &entry.is_gone) || !read_flag(value, "verifies", &entry.verifies))
        return -EINVAL;
    entry.inode = (uint64_t)inode;
    int index = add_entry(manifest, &entry, SIZE_MAX), rc = index < 0 ? index : 0;
    const struct pb_json_value *roles = pb_json_get(value, "roles", NULL);
    if (rc == 0 && roles != NULL &&
        (!pb_json_is_array(roles) || pb_json_count(roles) > (size_t)UINT16_MAX))
        rc = -EINVAL;
    for (size_t i = 0; rc == 0 && i < pb_json_count(roles); i++)
        rc = read_role(pb_json_at(roles, i), (size_t)index, manifest);
    return rc;
}

static int read_root(const struct pb_json_value *value, struct pb_scene_manifest *manifest)
{
    static const char *const known[] = {"path", "files"};
    char room[PB_JSON_PATH_BYTES];
    const struct pb_json_value *files = pb_json_get(value, "files", NULL);
    if (!HAS_KNOWN_KEYS(value, known) || !pb_json_is_array(files))
        return -EINVAL;
    const size_t n = manifest->n_roots;
    int root = add_root(manifest, pb_json_get_path(value, "path", room), SIZE_MAX);
    int rc = root < 0 ? root : (size_t)root < n ? -EINVAL : 0; /* a root is listed once */
    for (size_t i = 0; rc == 0 && i < pb_json_count(files); i++)
        rc = read_entry(pb_json_at(files, i), (uint16_t)root, manifest);
    return rc;
}

int pb_scene_manifest_read(const struct pb_json_value *value, struct pb_scene_manifest *out)
{
    static const char *const known[] = {"version", "input", "roots"};
    struct pb_scene_manifest read = {.n_roots = 0};
    int64_t version = 0;
    char room[PB_JSON_PATH_BYTES];
    bool has_input = false;
    const char *input = pb_json_get_path(value, "input", room);
    const struct pb_json_value *roots = pb_json_get(value, "roots", NULL);
    (void)pb_json_get(value, "input", &has_input);
    if (!HAS_KNOWN_KEYS(value, known) || !pb_json_is_array(roots) || has_input != (input != NULL) ||
        pb_json_get_int(value, "version", &version) != 0 || version != PB_SCENE_MANIFEST_VERSION)
        return -EINVAL;
    int rc = pb_scene_manifest_set_input(&read, input);
    for (size_t i = 0; rc == 0 && i < pb_json_count(roots); i++)
        rc = read_root(pb_json_at(roots, i), &read);
    if (rc == 0)
        *out = read;
    else
        pb_scene_manifest_fini(&read);
    return rc;
}

int pb_scene_manifest_parse(const char *text, struct pb_scene_manifest *out)
{
    struct pb_json_value *value = NULL;
    int rc = pb_json_parse(text, strlen(text), PB_SCENE_MANIFEST_BYTES_MAX, &value);
    rc = rc ? rc : pb_scene_manifest_read(value, out);
    pb_json_release(value);
    return rc;
}
