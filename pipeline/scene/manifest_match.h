/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MANIFEST_MATCH_H
#define PB_MANIFEST_MATCH_H
/* Statements about two manifests, whose files are matched by their recorded names: whether a scene
 * is the same, newer or another, and which files of a delivery were read. Pure. Thread: any, one at
 * a time a manifest. */
#include "pipeline/scene/manifest.h"

/* Relation of the files that are read now to those that were read before. */
enum pb_manifest_relation {
    PB_MANIFEST_SAME,  /* the same files with the same content */
    PB_MANIFEST_NEWER, /* all pixels of before are there and unchanged; other files differ */
    PB_MANIFEST_FEWER, /* files with pixels of before are missing; the common files are unchanged */
    PB_MANIFEST_OTHER, /* a file has other content, or there is no common file */
    PB_MANIFEST_UNKNOWN /* it depends on a checksum that is not known now */
};

struct pb_manifest_comparison {
    enum pb_manifest_relation relation;
    /* Entries of before, files with pixels first, then by name; NULL = none. Both may be set. */
    const struct pb_manifest_entry *changed; /* a file with other content */
    const struct pb_manifest_entry *missing; /* a file with pixels that is missing now */
    enum pb_checksum kind; /* kind of the checksums of before; UNKNOWN: it decides */
    /* the relation if all contents that are not known are the same */
    enum pb_manifest_relation at_best;
};

/* Compares the files of two manifests by their recorded names, sizes and checksums. Two scenes of
 * one image are compared by content alone. Companions, sources, folders and unused files of before
 * are ignored; an unused file of now is there, but its content is not compared. A file of before
 * without a checksum counts as changed. 0 or -ENOMEM. */
int pb_scene_manifest_compare(const struct pb_scene_manifest *before,
                              const struct pb_scene_manifest *now,
                              struct pb_manifest_comparison *out);
/* Completes the manifest of a delivery by the files that were read of it: their roles and
 * checksums, the files inside its folder, and the role UNUSED of the others. Files of earlier
 * deliveries and members of archives are left out. 0 or -ENOMEM. */
int pb_scene_manifest_complete(struct pb_scene_manifest *manifest,
                               const struct pb_scene_manifest *read);
#endif
