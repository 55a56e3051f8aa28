/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PUBLISH_H
#define PB_WORKER_PUBLISH_H
/* The job as the worker holds it for its child: the input's descriptor, the directory that the
 * child writes in, and the commit, for which the child has no rights. The child's files are checked
 * before: plain files, with the announced names and sizes. One thread. */
#include "config/base/json_reader.h"
#include "config/config.h"
#include "pipeline/publish/publish.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/run/base/run_work.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/sidecars.h"
#include "service/worker/worker_lines.h"
#include "service/confine/worker_user.h"

struct pb_worker_job {
    const struct pb_json_value *command;       /* "run", borrowed until close */
    const struct pb_pipeline_config *pipeline; /* borrowed until close; NULL if absent */
    char *path;                  /* path of the input, or of the file in it (pb_sidecar_main) */
    struct pb_raster_file input; /* a scene that is one file; else fd -1 */
    struct pb_scene_files files; /* a scene that is a folder; else zeroed */
    struct pb_metadata_files metadata; /* metadata next to the input */
    struct pb_sidecars *sidecars;      /* sidecars next to the input; NULL if absent */
    int room;              /* an archive is unpacked into it; -1 if the input is no archive */
    const char *room_name; /* its directory */
    struct pb_publish *publish;
    struct pb_worker_lines lines; /* limits for the lines of the child */
    bool describes;               /* it is no job: metadata of the input are read */
    bool lent;                    /* the directory, to the child's user */
    unsigned mode;                /* permissions of the lent directory before */
    struct pb_run_work work;      /* work of this process for the job; its child has its own */
    uint64_t process_ns;          /* CPU time of this process before it */
};

/* Called repeatedly while open or publish waits for the input's checksum. */
struct pb_worker_wait {
    void (*alive)(void *user, uint64_t bytes); /* called with the number of bytes read */
    void *user;
};

/* Opens the input, as the command's pipeline in config takes it, and the directory. The command is
 * that of worker.h. mode: of the products, see struct
 * pb_publish_options. On failure it needs close, too. */
int pb_worker_job_open(struct pb_worker_job *job, const struct pb_json_value *command,
                       const struct pb_config *config, unsigned mode,
                       const struct pb_worker_wait *wait, struct pb_err *err);
/* Begins the input's checksum, while the child works. */
int pb_worker_job_identify(struct pb_worker_job *job, struct pb_err *err);
/* Lets the child's user make files in the directory, without owning it; the child gets "." as its
 * name. Publishing revokes the right. */
int pb_worker_job_lend(struct pb_worker_job *job, const struct pb_worker_user *user,
                       struct pb_err *err);
/* The run command as the child gets it; the caller's. */
struct pb_json;
struct pb_json *pb_worker_job_command(const struct pb_worker_job *job);
/* Does the part of the publication that needs no files, while the child that wrote them ends. */
int pb_worker_job_prepare(struct pb_worker_job *job, struct pb_err *err);
/* Checks the announced files, publishes them and writes the "done" line for the service; malloc'd,
 * the caller's. PB_PUBLISH_MOVED: another input took the place meanwhile; the job has to run again,
 * as its products name the place. */
int pb_worker_job_publish(struct pb_worker_job *job, const struct pb_worker_line *done,
                          struct pb_err *err, char **out_line);
/* Removes what was not published. A zeroed job is fine. */
void pb_worker_job_close(struct pb_worker_job *job);
#endif
