/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A manifest decides what may be replaced and removed; therefore it is accepted only completely:
 * if one member is missing, too long or of another type the directory counts as foreign. */
#include "config/base/json_reader.h"
#include "config/base/clock.h"
#include "pipeline/io/file_name.h"
#include "pipeline/publish/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int errno_of_open(void)
{
    /* A link, a device without a driver, a directory: not written by pushbroom. */
    return errno == ELOOP || errno == ENXIO || errno == EISDIR ? -EINVAL : -errno;
}

/* Reads the complete file, malloc'd. */
static int read_text(int directory, char **out_text, size_t *out_bytes)
{
    struct stat st;
    int fd = openat(directory, PB_MANIFEST_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno_of_open();
    char *text = NULL;
    size_t have = 0;
    int rc = fstat(fd, &st) != 0 ? -errno : 0;
    if (rc == 0 && (!S_ISREG(st.st_mode) || st.st_size > (off_t)PB_MANIFEST_BYTES_MAX))
        rc = -EINVAL;
    size_t size = rc == 0 ? (size_t)st.st_size : 0;
    if (rc == 0 && (text = malloc(size + 1)) == NULL)
        rc = -ENOMEM;
    while (rc == 0 && have < size) {
        ssize_t n = read(fd, text + have, size - have);
        if (n > 0)
            have += (size_t)n;
        else if (n == 0 || errno != EINTR)
            rc = n == 0 ? -EINVAL : -errno;
    }
    (void)close(fd);
    if (rc < 0) {
        free(text);
        return rc;
    }
    *out_text = text;
    *out_bytes = have;
    return 0;
}

/* --- parsing --------------------------------------------------------------------------------- */

static bool take_text(const struct pb_json_value *value, const char *key, char *out, size_t bytes)
{
    const char *text = pb_json_get_text(value, key);
    return text != NULL && (size_t)snprintf(out, bytes, "%s", text) < bytes;
}

static bool take_count(const struct pb_json_value *value, const char *key, uint64_t *out)
{
    int64_t number = -1;
    if (pb_json_get_int(value, key, &number) != 0 || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

/* Returns true for the name of an entry of the directory itself that is not hidden. */
static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

/* Returns true for a path of such names. */
static bool is_plain_path(const char *path)
{
    bool plain = true;
    for (const char *part = path; plain && part != NULL;) {
        const char *slash = strchr(part, '/');
        plain = part[0] != '\0' && part[0] != '.' && part[0] != '/';
        part = slash ? slash + 1 : NULL;
    }
    return plain;
}

/* Reads the digits under the kind's name; without them the checksum is absent. */
static bool take_kind(const struct pb_json_value *value, enum pb_checksum kind,
                      char out[PB_CHECKSUM_TEXT_BYTES])
{
    const char *name = pb_checksum_name(kind);
    const char *digits = pb_json_get_text(value, name);
    out[0] = '\0';
    if (digits == NULL)
        return pb_json_get(value, name, NULL) == NULL;
    return snprintf(out, PB_CHECKSUM_TEXT_BYTES, "%s:%s", name, digits) < PB_CHECKSUM_TEXT_BYTES;
}

/* Reads the first kind that is present. */
static bool take_checksum(const struct pb_json_value *value, char out[PB_CHECKSUM_TEXT_BYTES])
{
    out[0] = '\0';
    for (int kind = 0; kind < PB_CHECKSUM_KINDS && out[0] == '\0'; kind++)
        if (!take_kind(value, (enum pb_checksum)kind, out))
            return false;
    return true;
}

static bool take_file(const struct pb_json_value *value, struct pb_manifest_file *out)
{
    if (pb_json_get(value, "name", NULL) != NULL &&
        !take_text(value, "name", out->name, sizeof out->name))
        return false;
    out->mtime_ns = 0;
    (void)pb_json_get_int(value, "mtime_ns", &out->mtime_ns);
    return take_text(value, "type", out->type, sizeof out->type) &&
           take_text(value, "file", out->file, sizeof out->file) && is_plain_name(out->file) &&
           take_count(value, "bytes", &out->bytes) && take_checksum(value, out->checksum) &&
           take_text(value, "media_type", out->media_type, sizeof out->media_type);
}

static int take_files(const struct pb_json_value *files, struct pb_manifest *m)
{
    size_t n = pb_json_count(files);
    if (!pb_json_is_array(files))
        return -EINVAL;
    m->file = calloc(n + 1, sizeof *m->file);
    if (m->file == NULL)
        return -ENOMEM;
    for (m->n_files = 0; m->n_files < n; m->n_files++)
        if (!take_file(pb_json_at(files, m->n_files), &m->file[m->n_files]))
            return -EINVAL;
    return 0;
}

static bool take_input(const struct pb_json_value *value, struct pb_input_id *out)
{
    for (int kind = 0; kind < PB_CHECKSUM_KINDS; kind++)
        if (!take_kind(value, (enum pb_checksum)kind, out->checksum[kind]))
            return false;
    return take_text(value, "name", out->name, sizeof out->name) &&
           take_count(value, "bytes", &out->bytes) &&
           pb_json_get_int(value, "mtime_ns", &out->mtime_ns) == 0;
}

static enum pb_role role_of(const char *name)
{
    for (int role = PB_ROLE_BAND; role < (int)PB_ROLES; role++) {
        const char *known = pb_role_record_name((enum pb_role)role);
        if (known != NULL && strcmp(name, known) == 0)
            return (enum pb_role)role;
    }
    return PB_ROLE_METADATA;
}

/* Adds a file that was read. */
static int take_read(const struct pb_json_value *value, int root, struct pb_scene_manifest *inputs)
{
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    uint64_t bytes;
    const char *role = pb_json_get_text(value, "role"), *name = pb_json_get_text(value, "file");
    if (role == NULL)
        return 0;
    if (name == NULL || !take_count(value, "bytes", &bytes) || !take_checksum(value, checksum))
        return -EINVAL;
    const struct pb_manifest_entry entry = {.path = (char *)name,
                                            .root = (uint16_t)root,
                                            .bytes = (int64_t)bytes,
                                            .checksum = checksum[0] != '\0' ? checksum : NULL};
    const int index = pb_scene_manifest_add(inputs, &entry);
    const struct pb_member member = {.entry = (uint32_t)index, .role = role_of(role)};
    return index < 0 ? index : pb_scene_manifest_assign(inputs, &member);
}

/* Lists an input of one file. A name that is not one of a file is left out. */
static int take_image(const struct pb_input_id *input, struct pb_scene_manifest *inputs)
{
    const struct pb_member member = {.role = PB_ROLE_IMAGE};
    struct pb_manifest_entry entry = {.path = (char *)input->name, .bytes = (int64_t)input->bytes};
    for (int kind = 0; kind < PB_CHECKSUM_KINDS && entry.checksum == NULL; kind++)
        if (input->checksum[kind][0] != '\0')
            entry.checksum = (char *)input->checksum[kind];
    int rc = pb_scene_manifest_root(inputs, "/");
    rc = rc < 0 ? rc : pb_scene_manifest_add(inputs, &entry);
    rc = rc < 0 ? rc : pb_scene_manifest_assign(inputs, &member);
    return rc == -ENOMEM ? rc : 0;
}

static int take_inputs(const struct pb_json_value *files, const struct pb_input_id *input,
                       struct pb_scene_manifest *inputs)
{
    if (files == NULL)
        return take_image(input, inputs);
    if (!pb_json_is_array(files))
        return -EINVAL;
    const int root = pb_scene_manifest_root(inputs, "/");
    int rc = root < 0 ? root : 0;
    for (size_t i = 0; i < pb_json_count(files) && rc == 0; i++)
        rc = take_read(pb_json_at(files, i), root, inputs);
    return rc;
}

static int take_manifest(const struct pb_json_value *root, struct pb_manifest *m)
{
    int64_t format = 0;
    const struct pb_json_value *input = pb_json_get(root, "input", NULL);
    bool fits = pb_json_get_int(root, "manifest", &format) == 0 && format == 1 &&
                take_text(root, "pushbroom", m->version, sizeof m->version) &&
                take_text(root, "scene", m->scene, sizeof m->scene) && is_plain_name(m->scene) &&
                take_input(input, &m->input);
    if (!fits)
        return -EINVAL;
    int rc = take_inputs(pb_json_get(input, "files", NULL), &m->input, &m->inputs);
    if (rc < 0)
        return rc;
    if (pb_json_get(root, "pipeline", NULL) == NULL)
        return 0;
    if (pb_json_get(root, "path", NULL) != NULL &&
        (!take_text(root, "path", m->path, sizeof m->path) || !is_plain_path(m->path)))
        return -EINVAL;
    if (!take_text(root, "pipeline", m->pipeline, sizeof m->pipeline) ||
        !is_plain_name(m->pipeline) || !take_text(root, "job", m->job, sizeof m->job))
        return -EINVAL;
    if (pb_json_get(root, "epoch", NULL) != NULL && !take_count(root, "epoch", &m->epoch))
        return -EINVAL;
    return take_files(pb_json_get(root, "files", NULL), m);
}

int pb_manifest_read(int directory, struct pb_manifest *out)
{
    char *text = NULL;
    size_t bytes = 0;
    struct pb_json_value *root = NULL;
    struct pb_manifest read = {0};
    int rc = read_text(directory, &text, &bytes);
    if (rc < 0)
        return rc;
    rc = pb_json_parse(text, bytes, PB_MANIFEST_BYTES_MAX, &root);
    free(text);
    if (rc == 0)
        rc = take_manifest(root, &read);
    pb_json_release(root);
    if (rc == 0) {
        *out = read;
        return 0;
    }
    pb_manifest_fini(&read);
    return rc == -ENOMEM ? rc : -EINVAL;
}

int pb_manifest_check(int directory, const struct pb_manifest *manifest)
{
    for (size_t i = 0; i < manifest->n_files; i++) {
        struct stat st;
        if (fstatat(directory, manifest->file[i].file, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return -errno;
        if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != manifest->file[i].bytes)
            return -ESTALE;
    }
    return 0;
}

/* --- changes since publication ---------------------------------------------------------------- */

/* Returns true if the open file has that checksum. */
static bool has_checksum(int fd, const char *checksum)
{
    enum { CHUNK = 1 << 18 };
    enum pb_checksum kind;
    const char *digits;
    char found[PB_CHECKSUM_TEXT_BYTES] = "";
    if (pb_checksum_parse(checksum, &kind, &digits) != 0 || digits == NULL)
        return false;
    struct pb_sum *sum = pb_sum_create(kind);
    char *data = malloc(CHUNK);
    ssize_t n = sum != NULL && data != NULL ? 1 : -1;
    while (n > 0)
        if ((n = read(fd, data, CHUNK)) > 0)
            pb_sum_add(sum, data, (size_t)n);
    bool same = n == 0 && pb_sum_text(sum, found) == 0 && strcmp(found, checksum) == 0;
    pb_sum_destroy(sum);
    free(data);
    return same;
}

/* Returns true if the time of the last write is the published one, and the file was not changed
 * after the manifest was written. The write time can be set to any value; the comparison with
 * the manifest fails if a clock was set back. */
static bool is_proved_by_times(int directory, const struct pb_manifest_file *file,
                               const struct stat *st)
{
    struct stat manifest;
    return file->mtime_ns != 0 && pb_clock_ns(&st->st_mtim) == file->mtime_ns &&
           fstatat(directory, PB_MANIFEST_FILE, &manifest, AT_SYMLINK_NOFOLLOW) == 0 &&
           pb_clock_ns(&st->st_ctim) <= pb_clock_ns(&manifest.st_ctim);
}

bool pb_manifest_is_changed(int directory, const struct pb_manifest_file *file)
{
    struct stat st;
    int fd = openat(directory, file->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    bool same = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->bytes;
    if (same && !is_proved_by_times(directory, file, &st))
        same = file->checksum[0] != '\0' ? has_checksum(fd, file->checksum)
                                         : file->mtime_ns == 0 || /* no other evidence */
                                               pb_clock_ns(&st.st_mtim) == file->mtime_ns;
    (void)close(fd);
    return !same;
}
