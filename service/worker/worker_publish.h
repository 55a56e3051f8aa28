/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PUBLISH_H
#define PB_WORKER_PUBLISH_H
/* Job in the worker, which acts for its child: the input's descriptor, the directory that the
 * child writes to, and the commit, for which the child has no rights. The child's files are
 * checked before: plain files, with the announced names and sizes. One thread. */
#include "config/base/json_reader.h"
#include "pipeline/publish/publish.h"
#include "pipeline/run/base/run_work.h"
#include "pipeline/scene/manifest.h"
#include "pipeline/scene/scene.h"
#include "service/confine/worker_user.h"
#include "service/worker/worker_lines.h"

struct pb_config;
struct pb_pipeline_config;

struct pb_worker_job {
    const struct pb_json_value *command;       /* "run", borrowed until close */
    const struct pb_pipeline_config *pipeline; /* borrowed until close; NULL if absent */
    struct pb_scene_manifest manifest;         /* files of the scene, from the command */
    struct pb_scene
        scene; /* its path is that of the input, or of the file in it (pb_sidecar_main) */
    int room;  /* an archive is unpacked into it; -1 if the input is no archive */
    const char *room_name;        /* directory of that file */
    struct pb_publish *publish;   /* NULL: another node publishes */
    char *away;                   /* directory of the products then */
    struct pb_worker_lines lines; /* limits for the lines of the child */
    bool describes;               /* not a job: metadata of the input are read */
    /* the input is an archive, and a change of it since it was opened changes its ctime */
    bool is_settled;
    bool lent;               /* the directory is lent to the child's user */
    unsigned mode;           /* previous permissions of the lent directory */
    struct pb_run_work work; /* work of this process for the job; its child has its own */
    uint64_t process_ns;     /* CPU time of this process before the job */
};

/* Waits of a job. user must outlive it. */
struct pb_worker_wait {
    /* called repeatedly, with the number of bytes read, while open or publish waits for the
     * checksum of the input */
    void (*alive)(void *user, uint64_t bytes);
    /* called by publish if the command has "permit" (struct pb_publish_options) */
    void (*request_permit)(void *user);
    int (*permit)(void *user, struct pb_err *err);
    void *user;
};

/* Opens the input for the command's pipeline in config, and the directory. The command is that of
 * worker.h. mode: permissions of the products, see struct pb_publish_options. Needs close also
 * after a failure. */
int pb_worker_job_open(struct pb_worker_job *job, const struct pb_json_value *command,
                       const struct pb_config *config, unsigned mode,
                       const struct pb_worker_wait *wait, struct pb_err *err);
/* Opens the copies of a run whose home is another node: paths of the manifest are below `input`,
 * and the child writes to the directory `products`. That node has checked the input and publishes,
 * so that identify, archive, prepare and publish are not for such a job. Needs close as well. */
int pb_worker_job_open_away(struct pb_worker_job *job, const struct pb_json_value *command,
                            const struct pb_config *config, const char *input, const char *products,
                            struct pb_err *err);
/* Directory that the child writes to. */
const char *pb_worker_job_directory(const struct pb_worker_job *job);
/* Starts computing the input's checksum, while the child works. */
int pb_worker_job_identify(struct pb_worker_job *job, struct pb_err *err);
/* Waits for the checksum of the input, an archive, and describes the archive for jobs of its
 * scenes: one file with its checksum and its state when it was opened. 0, or a negative errno and
 * *out empty: unknown, or changed since. */
int pb_worker_job_archive(const struct pb_worker_job *job, struct pb_scene_manifest *out);
/* Lets the child's user make files in the directory, without owning it; the child gets "." as its
 * name. Publishing revokes the right. */
int pb_worker_job_lend(struct pb_worker_job *job, const struct pb_worker_user *user,
                       struct pb_err *err);
/* Makes the run command for the child; owned by the caller. place: of the products, if another node
 * publishes them; NULL = unknown yet. */
struct pb_json;
struct pb_json *pb_worker_job_command(const struct pb_worker_job *job, const char *place);
/* Revokes the right, and checks the announced files of a job whose products another node publishes.
 * Returns 0 and *out_products, the list. */
int pb_worker_job_collect(struct pb_worker_job *job, const struct pb_worker_line *done,
                          struct pb_err *err, struct pb_json_value **out_products);
/* Does the part of the publication that needs no files, while the child that wrote the files ends.
 */
int pb_worker_job_prepare(struct pb_worker_job *job, struct pb_err *err);
/* Checks the announced files, publishes them and writes the "done" line for the service; malloc'd,
 * owned by the caller. PB_PUBLISH_MOVED: another input took the place meanwhile; the job must run
 * again, because its products contain the place. */
int pb_worker_job_publish(struct pb_worker_job *job, const struct pb_worker_line *done,
                          struct pb_err *err, char **out_line);
/* Removes files that were not published. An all-zero job is allowed. */
void pb_worker_job_close(struct pb_worker_job *job);
#endif
