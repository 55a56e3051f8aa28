/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAM_SCENE_H
#define PB_STREAM_SCENE_H
/* A scene of a stream: lines of a writer in a segment (pipeline/lines/segment.h) in work/<job id>/,
 * which becomes the input of a job. The origin link of the claim (service/inbox/staging.h) has
 * the name of the stream, so that the next start finds scenes of a service that was killed.
 * Thread: one at a time for each scene, except pb_scene_offer. */
#include "service/inbox/intake.h"
#include "service/stream/handshake.h"

struct pb_stream_scene;

/* Settings of a stream, as its pipeline configures it. */
struct pb_stream_rules {
    char stream[PB_STREAM_NAME_BYTES];
    char pipeline[PB_JOB_NAME_BYTES];
    int32_t every;
    int64_t silence_ms;
    bool drops; /* when_full: drop-oldest */
    bool has_nodata;
    double nodata;
    uint32_t least_bands; /* largest number of input.bands */
};

struct pb_scene_source {
    struct pb_intake *intake;
    struct pb_stream_rules rules;
    struct pb_stream_request request;
    bool is_geographic; /* the coordinate system is one of degrees */
    int64_t uid;        /* user of the writer */
};

/* Finds the rules of the stream; false: there is no such stream. */
bool pb_stream_rules_find(struct pb_intake *intake, const char *stream,
                          struct pb_stream_rules *out);

/* Creates the segment of a scene that begins with that line. time_ns: of the line, 0 = unknown.
 * source: copied; its intake is borrowed. */
int pb_scene_begin(const struct pb_scene_source *source, uint64_t line, int64_t time_ns,
                   struct pb_err *err, struct pb_stream_scene **out_scene);
/* Stores the job of the scene, which may start while lines arrive. Returns 0 and *out_job, which
 * the caller must fini; or negative and *err: pb_scene_end tries again. Call before pb_scene_end.
 * Thread: any; another thread may append meanwhile. */
int pb_scene_offer(struct pb_stream_scene *scene, struct pb_err *err, struct pb_job *out_job);
/* Returns true if pb_scene_offer has stored the job. */
bool pb_scene_is_offered(const struct pb_stream_scene *scene);
/* Appends the lines of a group from line `skip` of the group on, as many as fit. Returns their
 * count, or negative and *err: the disk failed, and no line was added. */
int pb_scene_append(struct pb_stream_scene *scene, const struct pb_stream_group *group,
                    const int64_t *times_ns, const void *pixels, uint32_t skip, struct pb_err *err);
/* Returns true if n lines that never arrived fit, and at least one line after them. */
bool pb_scene_fits(const struct pb_stream_scene *scene, uint64_t n);
/* Adds n lines that never arrived; they must fit. Returns negative and *err if the disk failed. */
int pb_scene_gap(struct pb_stream_scene *scene, uint64_t n, struct pb_err *err);
bool pb_scene_is_full(const struct pb_stream_scene *scene);
int32_t pb_scene_lines(const struct pb_stream_scene *scene);
const char *pb_scene_name(const struct pb_stream_scene *scene);
/* Closes the segment; a run that computes the growing scene waits for this. */
void pb_scene_complete(struct pb_stream_scene *scene);
/* Writes the closed segment to the disk, and stores its job unless pb_scene_offer has. Frees the
 * scene in any case. Returns 0; *out_job: the job if it was stored now, which the caller must fini,
 * else an empty one; 1: the scene had no line and is removed; or *err: the scene stays in work/ and
 * is adopted by a later sweep. */
int pb_scene_end(struct pb_stream_scene *scene, struct pb_err *err, struct pb_job *out_job);
#endif
