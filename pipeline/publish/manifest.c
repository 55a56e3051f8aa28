/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/manifest.h"
#include "pipeline/io/io_fail.h"
#include "config/base/json_writer.h"
#include "pipeline/io/file_name.h"
#include "pipeline/product/product.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- identity --------------------------------------------------------------------------------*/

/* Writes a name so that different names stay different: bytes that are not UTF-8 are escaped,
 * after a prefix. */
static void spell_name(const char *name, char *out, size_t bytes)
{
    size_t n = (size_t)snprintf(out, bytes, "bytes:");
    for (const unsigned char *s = (const unsigned char *)name; *s != '\0' && n + 4 <= bytes; s++) {
        if (*s > 0x20 && *s < 0x7f && *s != '%')
            out[n++] = (char)*s;
        else
            n += (size_t)snprintf(out + n, bytes - n, "%%%02X", *s);
    }
    out[n] = '\0';
}

void pb_input_id_set(struct pb_input_id *id, const char *path, uint64_t bytes, int64_t mtime_ns)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    memset(id, 0, sizeof *id);
    if (pb_file_name_is_utf8(name))
        (void)snprintf(id->name, sizeof id->name, "%s", name);
    else
        spell_name(name, id->name, sizeof id->name);
    id->bytes = bytes;
    id->mtime_ns = mtime_ns;
}

bool pb_input_id_alike(const struct pb_input_id *a, const struct pb_input_id *b)
{
    return a->bytes == b->bytes;
}

/* Counts the kinds of checksums that are known of both, and those of them that are equal. */
static void compare(const struct pb_input_id *a, const struct pb_input_id *b, int *out_known,
                    int *out_equal)
{
    *out_known = *out_equal = 0;
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++) {
        bool known = a->checksum[k][0] != '\0' && b->checksum[k][0] != '\0';
        *out_known += known;
        *out_equal += known && strcmp(a->checksum[k], b->checksum[k]) == 0;
    }
}

bool pb_input_id_comparable(const struct pb_input_id *a, const struct pb_input_id *b)
{
    int known, equal;
    compare(a, b, &known, &equal);
    return known > 0;
}

bool pb_input_id_equal(const struct pb_input_id *a, const struct pb_input_id *b)
{
    int known, equal;
    compare(a, b, &known, &equal);
    return pb_input_id_alike(a, b) && known > 0 && equal == known;
}

/* --- writing ---------------------------------------------------------------------------------*/

/* Writes the digits under the name of the kind; nothing without a checksum. */
static void print_checksum(struct pb_json *json, const char *checksum)
{
    enum pb_checksum kind;
    const char *digits;
    if (pb_checksum_parse(checksum, &kind, &digits) == 0 && digits != NULL)
        pb_json_string(json, pb_checksum_name(kind), digits);
}

static void print_file(struct pb_json *json, const struct pb_manifest_file *file)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "type", file->type);
    if (file->name[0] != '\0')
        pb_json_string(json, "name", file->name);
    pb_json_string(json, "file", file->file);
    pb_json_int(json, "bytes", (int64_t)file->bytes);
    if (file->mtime_ns != 0)
        pb_json_int(json, "mtime_ns", file->mtime_ns);
    print_checksum(json, file->checksum);
    pb_json_string(json, "media_type", file->media_type);
    pb_json_end(json);
}

/* Writes the files that were read, unless the only one is the input itself. */
static void print_inputs(struct pb_json *json, const struct pb_scene_manifest *inputs)
{
    const size_t n = inputs->n_entries;
    if (n == 0 || pb_scene_manifest_is_image(inputs))
        return;
    pb_json_array(json, "files");
    for (size_t i = 0; i < n; i++) {
        char name[PB_SCENE_MANIFEST_NAME_BYTES];
        const struct pb_manifest_entry *file = &inputs->entry[i];
        const char *role = pb_role_record_name(pb_scene_manifest_role(inputs, i));
        if (role == NULL)
            continue;
        pb_scene_manifest_name(inputs, file, name);
        pb_json_object(json, NULL);
        pb_json_string(json, "role", role);
        pb_json_string(json, "file", name);
        pb_json_int(json, "bytes", file->bytes);
        print_checksum(json, file->checksum != NULL ? file->checksum : "");
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void print_manifest(struct pb_json *json, const struct pb_manifest *m)
{
    pb_json_object(json, NULL);
    pb_json_int(json, "manifest", 1);
    pb_json_string(json, "pushbroom", PB_VERSION);
    pb_json_string(json, "scene", m->scene);
    if (m->pipeline[0] != '\0') {
        if (m->path[0] != '\0')
            pb_json_string(json, "path", m->path);
        pb_json_string(json, "pipeline", m->pipeline);
        pb_json_string(json, "job", m->job);
        if (m->epoch > 0)
            pb_json_int(json, "epoch", (int64_t)m->epoch);
    }
    pb_json_object(json, "input");
    pb_json_string(json, "name", m->input.name);
    pb_json_int(json, "bytes", (int64_t)m->input.bytes);
    pb_json_int(json, "mtime_ns", m->input.mtime_ns);
    for (int k = 0; k < PB_CHECKSUM_KINDS; k++)
        print_checksum(json, m->input.checksum[k]);
    print_inputs(json, &m->inputs);
    pb_json_end(json);
    if (m->pipeline[0] != '\0') {
        pb_json_array(json, "files");
        for (size_t i = 0; i < m->n_files; i++)
            print_file(json, &m->file[i]);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static int write_all(int fd, const char *text, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(fd, text + done, bytes - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return n == 0 ? -ENOSPC : -errno;
    }
    return 0;
}

/* The old or the new manifest exists at any time. A file with the temporary name is unlinked
 * first: a manifest is never written through a link. out_fd: see pb_manifest_put; NULL: synced
 * before the rename. */
static int write_text(int directory, const char *text, size_t bytes, unsigned mode, int *out_fd)
{
    if (unlinkat(directory, PB_MANIFEST_NEW_FILE, 0) != 0 && errno != ENOENT)
        return -errno;
    int fd = openat(directory, PB_MANIFEST_NEW_FILE,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int rc = write_all(fd, text, bytes);
    if (rc == 0 && out_fd == NULL && fsync(fd) != 0)
        rc = -errno;
    if (out_fd == NULL && close(fd) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && renameat(directory, PB_MANIFEST_NEW_FILE, directory, PB_MANIFEST_FILE) != 0)
        rc = -errno;
    if (rc < 0)
        (void)unlinkat(directory, PB_MANIFEST_NEW_FILE, 0);
    if (out_fd != NULL && rc == 0)
        *out_fd = fd;
    else if (out_fd != NULL)
        (void)close(fd);
    return rc;
}

int pb_manifest_write(int directory, const struct pb_manifest *manifest, unsigned mode,
                      const char *shown, struct pb_err *err)
{
    return pb_manifest_put(directory, manifest, mode, shown, err, NULL);
}

int pb_manifest_put(int directory, const struct pb_manifest *manifest, unsigned mode,
                    const char *shown, struct pb_err *err, int *out_fd)
{
    struct pb_json *json = pb_json_create(true);
    size_t bytes = 0;
    print_manifest(json, manifest);
    const char *text = pb_json_document(json, &bytes);
    int rc;
    if (text == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "no memory for the manifest of %s", shown);
    else if (bytes > PB_MANIFEST_BYTES_MAX)
        rc = pb_fail(err, PB_E_OUTPUT_WRITE, "the manifest of %s is too long", shown);
    else if ((rc = write_text(directory, text, bytes, mode, out_fd)) < 0)
        rc = pb_io_fail(err, -rc, "cannot write " PB_MANIFEST_FILE " in", shown);
    pb_json_destroy(json);
    return rc;
}

void pb_manifest_fini(struct pb_manifest *manifest)
{
    pb_scene_manifest_fini(&manifest->inputs);
    free(manifest->file);
    manifest->file = NULL;
    manifest->n_files = 0;
}
