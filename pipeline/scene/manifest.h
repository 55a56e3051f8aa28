/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_MANIFEST_H
#define PB_SCENE_MANIFEST_H
/* Files of one scene as data: for each file its place, its state at delivery and its roles. It is
 * stored with a job and sent to the worker that opens the files: no other value has the paths of a
 * scene. The place of a file is a root (an absolute path) and a path below it, therefore a machine
 * that has the same root elsewhere changes the root alone. The service moves a delivered input as
 * a whole; `input` is where it is now, and the other places are those at delivery. A run lists the
 * files that it reads in one (scene_inputs.h); the record of its products
 * (pipeline/publish/manifest.h) and STAC items are written from that. manifest_match.h compares
 * two of them. Plain data without I/O. Thread: any, one at a time an
 * object.
 *
 * JSON form, version 1; members with unknown or zero values are left out:
 *
 *   {"version":1,"input":"/data/work/1/a","roots":[{"path":"/data/inbox","files":[
 *     {"path":"a/x_B4.tif","bytes":5,"inode":7,"mtime_ns":8,"ctime_ns":9,"checksum":"sha256:...",
 *      "folder":true,"gone":true,"verifies":true,"roles":[["band",0,3]]}]}]}
 *
 * A role is its name, its source and its order. Paths are written by config/base/json_path.h. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/io/checksum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beyond the limits of roots and entries, root and add fail with -E2BIG and change nothing. A file
 * of a delivery is then left out; a job that joins earlier ones fails with input.limit. */
#define PB_SCENE_MANIFEST_VERSION     1
#define PB_SCENE_MANIFEST_ROOTS_MAX   1100  /* deliveries of one scene, and its companion */
#define PB_SCENE_MANIFEST_ENTRIES_MAX 20000 /* the same as PB_SCENE_ENTRIES_MAX */
#define PB_SCENE_MANIFEST_PATH_BYTES  4096
#define PB_SCENE_MANIFEST_NAME_BYTES  800        /* limit of a name in published records */
#define PB_SCENE_MANIFEST_BYTES_MAX   (8u << 20) /* limit of the JSON form that is read */
/* Limit of json_bytes for further files. The JSON form can then be read, also after a move, and a
 * line for a worker has room for it and the configuration (PB_CONFIG_ALL_BYTES). */
#define PB_SCENE_MANIFEST_ADD_MAX 6000000

/* Purpose of a file in a scene. */
enum pb_role {
    PB_ROLE_IMAGE,     /* has all bands of its source */
    PB_ROLE_BAND,      /* has one band */
    PB_ROLE_METADATA,  /* input.metadata */
    PB_ROLE_SIDECAR,   /* input.sidecars */
    PB_ROLE_LIST,      /* input.list: order of the counted files */
    PB_ROLE_COMPANION, /* marker or checksum file of the delivery */
    PB_ROLE_SOURCE,    /* pixels of input.sources, which are not part of the scene */
    PB_ROLE_UNUSED     /* was delivered with the scene and is not read */
};
#define PB_ROLES (PB_ROLE_UNUSED + 1)

struct pb_member {
    uint32_t entry; /* index of the file */
    enum pb_role role;
    uint16_t source; /* number of the band or source that it serves, from 0 */
    uint16_t nth;    /* order among the files of that source, from 0 */
};

/* A file or folder, and its state at delivery. */
struct pb_manifest_entry {
    char *path;     /* below the root, without "." and ".." */
    uint16_t root;  /* index */
    bool is_folder; /* a folder with all files in it */
    bool is_gone;   /* it was expected or there, and is not there any more */
    bool verifies;  /* a companion with checksums, with which the scene must be verified */
    int64_t bytes;  /* -1 = unknown */
    uint64_t inode; /* 0 = unknown, like the times */
    int64_t mtime_ns, ctime_ns;
    char *checksum; /* text of pipeline/io/checksum.h; NULL = unknown */
};

/* All-zero: empty. A file may have several roles, or none while its role is unknown. Entries are
 * added and removed, and roles assigned, by the functions below alone. */
struct pb_scene_manifest {
    char **root;
    size_t n_roots;
    struct pb_manifest_entry *entry;
    size_t n_entries;
    size_t first_folder;      /* index of the first entry that is a folder; n_entries = no folder */
    struct pb_member *member; /* sorted by entry */
    size_t n_members;
    /* present path of the file, the archive, or the folder with the files; NULL: it was removed,
     * or the manifest is only a list */
    char *input;
    size_t json_bytes; /* the JSON form has at most as many bytes */
};

void pb_scene_manifest_fini(struct pb_scene_manifest *manifest); /* makes it empty */
/* Sets the present path of the input to a copy; NULL: it was removed. 0 or -ENOMEM. */
int pb_scene_manifest_set_input(struct pb_scene_manifest *manifest, const char *path);
/* Initialises *out with a copy. 0, or -ENOMEM and *out empty. */
int pb_scene_manifest_copy(struct pb_scene_manifest *out, const struct pb_scene_manifest *manifest);
/* Finds or adds the root with that path. Returns its index; -EINVAL: not an absolute path;
 * -E2BIG: a limit is reached (PB_SCENE_MANIFEST_ROOTS_MAX, _ADD_MAX); -ENOMEM. */
int pb_scene_manifest_root(struct pb_scene_manifest *manifest, const char *path);
/* Adds a copy of the entry. Returns its index; -EINVAL: a path that could leave its root, or
 * another invalid value; -E2BIG: a limit is reached (PB_SCENE_MANIFEST_ENTRIES_MAX, _ADD_MAX);
 * -ENOMEM. */
int pb_scene_manifest_add(struct pb_scene_manifest *manifest,
                          const struct pb_manifest_entry *entry);
/* Adds a role of an entry. 0; -EINVAL: there is no such entry; -ENOMEM. */
int pb_scene_manifest_assign(struct pb_scene_manifest *manifest, const struct pb_member *member);
/* Replaces the roles of entry i by role[i]; PB_ROLES: they are unchanged. role has n_entries
 * elements. 0, or -ENOMEM and nothing changed. */
int pb_scene_manifest_set_roles(struct pb_scene_manifest *manifest, const enum pb_role *role);
/* Removes all files of the role, and the role. */
void pb_scene_manifest_remove(struct pb_scene_manifest *manifest, enum pb_role role);
/* Returns the first file of the role; NULL if absent. */
struct pb_manifest_entry *pb_scene_manifest_find(const struct pb_scene_manifest *manifest,
                                                 enum pb_role role);
/* Returns true if the entry has the role. */
bool pb_scene_manifest_is(const struct pb_scene_manifest *manifest, size_t entry,
                          enum pb_role role);
/* Returns the first role of the entry; PB_ROLES = unknown. */
enum pb_role pb_scene_manifest_role(const struct pb_scene_manifest *manifest, size_t entry);
/* Returns true for a role with pixels of the scene. */
bool pb_role_is_pixels(enum pb_role role);
/* Returns true if one image is the scene: it has no other files except companions. */
bool pb_scene_manifest_is_image(const struct pb_scene_manifest *manifest);
/* Count of files with such a role. */
size_t pb_scene_manifest_pixels(const struct pb_scene_manifest *manifest);
/* Name of a role in published records: "pixels", "metadata", "sidecar" or "source"; NULL: files
 * with this role are not recorded. */
const char *pb_role_record_name(enum pb_role role);
/* Returns the entry's path inside the folder of the manifest that contains it; the whole path if
 * there is no such folder. */
const char *pb_scene_manifest_inner(const struct pb_scene_manifest *manifest,
                                    const struct pb_manifest_entry *entry);
/* Writes the same as UTF-8 without control characters (config/base/text_clean.h). */
void pb_scene_manifest_name(const struct pb_scene_manifest *manifest,
                            const struct pb_manifest_entry *entry,
                            char out[PB_SCENE_MANIFEST_NAME_BYTES]);
/* Writes root and path of the entry as one path. 0 or -ENAMETOOLONG. */
int pb_scene_manifest_path(const struct pb_scene_manifest *manifest,
                           const struct pb_manifest_entry *entry,
                           char out[PB_SCENE_MANIFEST_PATH_BYTES]);

/* Sets the place of an entry of the manifest: root and path below it of an absolute path. A root
 * without files is removed; indices of roots change. 0, -EINVAL, -E2BIG, -ENOMEM. */
int pb_scene_manifest_move(struct pb_scene_manifest *manifest, struct pb_manifest_entry *entry,
                           const char *path);

/* Prints the JSON form as member `key`, or (key NULL) as an element. */
void pb_scene_manifest_print(const struct pb_scene_manifest *manifest, struct pb_json *json,
                             const char *key);
/* Reads it from a parsed value, or from text. 0; -EINVAL: another version, an unknown member, a
 * value or a path that add refuses; -EFBIG; -ENOMEM. *out is untouched on failure. */
int pb_scene_manifest_read(const struct pb_json_value *value, struct pb_scene_manifest *out);
int pb_scene_manifest_parse(const char *text, struct pb_scene_manifest *out);
#endif
