/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ASSEMBLE_H
#define PB_ASSEMBLE_H
/* Assembles scenes from a listing: which entries are one scene, through which pipeline, and whether
 * the scene is ready. The result follows from the entries, the configuration, the known facts and
 * the time alone; nothing of an earlier listing has an effect. Therefore a restart or a reload in
 * the middle of a delivery changes nothing. An assembly remembers the last listing only to match,
 * sort and check nothing again that has not changed; debug builds compare with a full assembly. The
 * entries are in the order of their paths then. No I/O, no clock of its own. Thread: any, one at a
 * time.
 *
 * A listing of a folder that is a scene, or of an archive, is assembled by the same rules.
 *
 * Two steps, because the second needs facts about the result of the first: pb_assembly_group forms
 * the scenes, pb_assembly_judge decides about sets. A set is ready when none of its files arrived
 * or changed for a while (pb_entry.is_settled), and either all files of a complete scene are
 * present or the last change is input.complete.expire ago: then its job reports the missing files.
 * A single file with its metadata and sidecars is such a set as well. Files that join a processed
 * set (input.complete.reopen) are judged with those of its earlier jobs, and wait while one of its
 * jobs is not over, so that all files that arrive meanwhile become one job. */
#include "pipeline/scene/entry.h"
#include "pipeline/scene/manifest.h"

struct pb_config;
struct pb_pipeline_config;

enum pb_scene_form {
    PB_FORM_ALONE,      /* one file or folder, which is an input by itself */
    PB_FORM_COMPOUND,   /* a file, and the metadata and sidecars that belong to it */
    PB_FORM_GROUP,      /* loose files of one scene (input.group) */
    PB_FORM_UNASSIGNED, /* a loose file whose metadata determine its scene, and the files of it */
    PB_FORM_ORPHAN,     /* a sidecar, or metadata, whose file is absent */
    PB_FORM_CONTENT     /* files of a scene that is a folder, or of one in an archive */
};

enum pb_scene_state {
    PB_SCENE_READY,      /* complete, or it has waited for long enough */
    PB_SCENE_UNSETTLED,  /* complete, but its files still change, or others may belong to it */
    PB_SCENE_INCOMPLETE, /* it lacks what `missing` names */
    PB_SCENE_NEEDS_FACTS /* the metadata of its file must be read (pb_entry_facts) */
};

/* Earlier jobs of a set. All-zero: no earlier jobs. */
struct pb_scene_earlier {
    char **name; /* names of its files; array and names are malloc'd */
    size_t n;
    char busy[24]; /* id of a waiting or running job of the set; "" = no such job */
};

/* Pointers are borrowed from the assembly until its next group; `entry` from the caller. */
struct pb_assembled {
    /* GROUP, CONTENT: the scene, for {scene}; COMPOUND: base name of the file; others: path of the
     * first member */
    const char *name;
    const char *pipeline;   /* "" = no pipeline takes it */
    size_t pipeline_number; /* in the configuration; SIZE_MAX = no pipeline takes it */
    enum pb_scene_form form;
    enum pb_scene_state state;
    const struct pb_entry *entry; /* all entries of the listing */
    const struct pb_member
        *member; /* GROUP, COMPOUND: sorted by path; UNASSIGNED: its file is first */
    size_t n;
    /* CONTENT: entries that are not its own, but that each scene of the archive may use */
    const struct pb_member *shared;
    size_t n_shared;
    size_t root;         /* CONTENT: bytes of the paths up to the folder that is the scene */
    const char *missing; /* description of absent files, also if it is ready without them; "" */
    int64_t due_ms;      /* wall clock: end of the wait for these files; 0 = no limit, or no wait */
    const struct pb_described *answer; /* failed query of metadata of a member; NULL: none */
    uint64_t digest;                   /* UNASSIGNED: state of the file and of its metadata */
    bool may_be_asked;                 /* UNASSIGNED: file and metadata stopped changing */
    /* GROUP, COMPOUND, CONTENT: */
    uint64_t bytes;
    int64_t youngest_ns; /* latest ctime of the files */
    /* period after its last job in which files may join it; 0 = they may not join */
    int64_t reopen_ms;
    struct pb_scene_earlier earlier; /* set by pb_assembly_know */
};

struct pb_assembly;

enum pb_listing {
    PB_LISTING_LOOSE,  /* files and folders, each an input or a part of one */
    PB_LISTING_FOLDER, /* a folder that is a scene (the first entry), and all files in it */
    PB_LISTING_ARCHIVE /* all members of an archive */
};

struct pb_assembly_input {
    /* Until the next group or clear it exists. Another one after that: clear first. */
    const struct pb_config *config;
    enum pb_listing listing;
    /* FOLDER, ARCHIVE: name of the scene, unless the listing determines it */
    const char *name;
    /* takes all files; NULL: the names select pipelines; not NULL for FOLDER and ARCHIVE */
    const struct pb_pipeline_config *only;
    const struct pb_entry *entry; /* borrowed until the next group */
    size_t n;
    const struct pb_entry_facts *facts; /* NULL: no facts are known */
    int64_t wall_ms;
    bool wall_is_trusted; /* the wall clock may be compared with ctimes */
};

struct pb_assembly *pb_assembly_create(void);           /* NULL = out of memory */
void pb_assembly_destroy(struct pb_assembly *assembly); /* NULL is allowed */
/* Removes all scenes, and forgets the last listing. */
void pb_assembly_clear(struct pb_assembly *assembly);
/* Forms the scenes: each entry is a member of one, except companions and, in an archive, those that
 * are shared or outside its scenes. First those that are neither GROUP nor COMPOUND, in the order
 * of the entries, then these by pipeline and name. -ENOMEM: there are no scenes. */
int pb_assembly_group(struct pb_assembly *assembly, const struct pb_assembly_input *input);
/* Forms and judges the scene of a walked folder, which is settled: scene 0. name: of the scene. The
 * walk is borrowed as long as the scene is used. -ENOMEM: it is not judged. */
struct pb_scene_walk;
int pb_assembly_folder(struct pb_assembly *assembly, const struct pb_config *config,
                       const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                       const char *name, int64_t wall_ms);
/* Sets the earlier jobs of scene i; takes ownership of the content. */
void pb_assembly_know(struct pb_assembly *assembly, size_t i,
                      const struct pb_scene_earlier *earlier);
/* Decides about the scenes that are GROUP, COMPOUND or CONTENT. config: with the same content as
 * for group. The caller may have changed is_settled of entries since. Call it once. -ENOMEM. */
int pb_assembly_judge(struct pb_assembly *assembly, const struct pb_config *config);
void pb_scene_earlier_fini(struct pb_scene_earlier *earlier); /* all-zero is allowed */

size_t pb_assembly_count(const struct pb_assembly *assembly);
const struct pb_assembled *pb_assembly_at(const struct pb_assembly *assembly, size_t i);
/* The scene of an entry; NULL: none, a companion. */
const struct pb_assembled *pb_assembly_of(const struct pb_assembly *assembly, size_t entry);
/* The reason why an archive has no scene; NULL if it has one. */
const char *pb_assembly_why_none(const struct pb_assembly *assembly);
/* The entry that is member i of a scene. */
const struct pb_entry *pb_assembled_entry(const struct pb_assembled *scene, size_t i);
/* The image of a COMPOUND scene; another scene's first image or band, else its first member. */
const struct pb_entry *pb_assembled_main(const struct pb_assembled *scene);
/* Returns true for GROUP and COMPOUND: loose files that are taken together. */
bool pb_assembled_is_set(const struct pb_assembled *scene);
/* Makes a walk of the files of a GROUP, and of its earlier jobs, by their names, or of those of a
 * CONTENT, and the shared ones, by their paths in the scene. Its entries have the numbers of those
 * of the listing. Returns 0 or -ENOMEM; *out needs close in any case. */
int pb_assembled_walk(const struct pb_assembled *scene, struct pb_scene_walk *out);
/* Milliseconds until the first wait for missing files ends; -1 if no wait ends. Sets whose files
 * still change count when they are settled. */
int64_t pb_assembly_due_ms(const struct pb_assembly *assembly, int64_t wall_ms);
#endif
