/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_H
#define PB_JOB_H
/* A job: one scene processed by one pipeline. States and their legal changes are in one table; no
 * other part of the service sets a status. Plain memory without I/O or locks. Thread: any, one at
 * a time for each job. */
#include "config/base/err.h"
#include "config/base/json_writer.h"
#include "pipeline/scene/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_JOB_ID_BYTES       24  /* "20261121-081530-4f2a" */
#define PB_JOB_NAME_BYTES     256 /* a file name */
#define PB_JOB_BBOX_BYTES     96  /* bounds as JSON */
#define PB_JOB_NODE_BYTES     64
#define PB_JOB_NEEDS_BYTES    33
#define PB_JOB_SHUNNED_BYTES  256
#define PB_JOB_IDENTITY_BYTES 128
#define PB_JOB_PRIORITY_MAX   100   /* the lowest is -100 */
#define PB_JOB_PRIORITY_AGAIN (-50) /* default of job.again */
#define PB_JOB_DATETIME_BYTES 40
#define PB_JOB_DELIVERED_MAX  100 /* paths that are printed */

enum pb_job_status {
    PB_JOB_ACCEPTED,
    PB_JOB_RUNNING,
    PB_JOB_SUCCESSFUL,
    PB_JOB_FAILED,
    PB_JOB_DISMISSED,
    PB_JOB_STATUS_COUNT
};
#define PB_JOB_MASK(status) (1u << (unsigned)(status))
#define PB_JOB_MASK_ALL     ((1u << PB_JOB_STATUS_COUNT) - 1u)
#define PB_JOB_MASK_FINISHED                                                                       \
    (PB_JOB_MASK(PB_JOB_SUCCESSFUL) | PB_JOB_MASK(PB_JOB_FAILED) | PB_JOB_MASK(PB_JOB_DISMISSED))

/* code "" = no error */
struct pb_job_error {
    char code[48];
    char message[1024];
    char hint[256];
    int64_t memory_bytes; /* plan.memory: the least compute.memory that is enough; 0 = unknown */
};

struct pb_job {
    char id[PB_JOB_ID_BYTES];
    int64_t seq;                      /* order of creation, set by the store */
    int priority;                     /* a higher one is processed earlier; default 0 */
    enum pb_job_status status;        /* changed only by pb_job_move */
    bool owned;                       /* delivered to an inbox: the service moves its input */
    char name[PB_JOB_NAME_BYTES];     /* base name of the input */
    char scene[PB_JOB_NAME_BYTES];    /* name of the directory below products/ */
    char pipeline[PB_JOB_NAME_BYTES]; /* "" = no pipeline was found yet */
    /* its files at delivery, with their roles as far as known; the input and its companion
     * (PB_ROLE_COMPANION) at their present places */
    struct pb_scene_manifest manifest;
    char *inbox;  /* inbox of its delivery; NULL if not delivered to an inbox, or unknown */
    char *folder; /* sub-folder of the inbox at delivery; NULL = the inbox itself */
    int64_t uid;  /* owner of the file or of the submission; -1 if unknown */
    char identity[PB_JOB_IDENTITY_BYTES]; /* identity of a submitted file that its client could
                                             read, in the form of pipeline/io/file_identity.h; "" if
                                             unknown */
    /* For loose files that form a scene together (set_parts.h); "" for all other jobs. */
    char set_id[PB_JOB_ID_BYTES]; /* id of the first job of the set */
    /* id of the job whose products this one makes again with more files; "" = not set */
    char replaces[PB_JOB_ID_BYTES];
    char again[PB_JOB_ID_BYTES]; /* id of the job whose products this one makes again from the same
                                    input, never one with such an id itself; "" = not set */
    /* If its input is an archive of several scenes, of which it computes `scene`: id of the
     * archive's job, which owns the input (archive_rows.h). "" = the whole input. */
    char archive[PB_JOB_ID_BYTES];
    /* If it joins a scene: the manifest of all its files, with those of the earlier jobs of its set
     * at their present places; otherwise empty. JSON about these jobs, or NULL
     * (service/worker/joined.h). Set when the job starts, not stored. */
    struct pb_scene_manifest joined;
    char *earlier;
    /* Name of the node from which the input is fetched, and that node's directory of products;
     * NULL: this node has the input. Owned. Set when the job starts, not stored. */
    char *home, *home_products;
    char *published; /* JSON array: its products with the content of STAC items, for events; not
                        stored (published.h) */
    /* requested again by a client: it runs even if its content was processed before */
    bool anyway;
    /* size of its files at delivery, as far as known; 0 = unknown. Set by the store. */
    int64_t bytes;
    /* digest of the text of its pipeline in the configuration of `node` (pb_store_set_needs); "" =
     * unknown: of an older version, or of a job without a pipeline. Set by the store. */
    char needs[PB_JOB_NEEDS_BYTES];
    bool needs_gpu; /* compute.device of `node` requires a GPU. Set by the store. */
    bool is_long;   /* a run ended because it took longer than service.express */
    int attempts;
    /* number of its starts: unlike attempts it never falls, so that the files of a run can be
     * distinguished from those of any later one (pipeline/publish/publish_temp.h) */
    int64_t epoch;
    char node[PB_JOB_NODE_BYTES]; /* node that took it last; "": the store has no nodes */
    /* names of nodes on which its runs failed, not by its input, the newest last, each followed by
     * a space; the oldest ones are dropped if the text is full */
    char shunned[PB_JOB_SHUNNED_BYTES];
    int64_t delivered_ms; /* arrival of the last file of its input, wall clock; 0 = unknown */
    int64_t created_ms, started_ms, updated_ms, finished_ms; /* wall clock; 0 = not yet */
    /* State of the current or last run. */
    int progress; /* 0 .. 100 */
    char stage[16];
    char device[64];
    char device_why[512]; /* after a device failed: the next try and the reason; "" if no device
                             failed */
    int64_t tiles_done, tiles_total, bytes_read, bytes_written, elapsed_ms;
    char *directory; /* directory of the products; NULL if absent */
    char *products;  /* JSON array; NULL if absent */
    char *report;    /* JSON object; NULL if absent */
    /* bounds of the products: JSON array of west, south, east, north in degrees (west > east:
     * across the antimeridian); NULL = unknown */
    char *bbox;
    char datetime[PB_JOB_DATETIME_BYTES]; /* time of acquisition, RFC 3339; "" = unknown */
    struct pb_job_error error;
};

void pb_job_init(struct pb_job *job); /* accepted, empty */
void pb_job_fini(struct pb_job *job); /* an all-zero job is allowed */
/* Initialises out with a copy. 0, or -ENOMEM and *out empty. */
int pb_job_copy(struct pb_job *out, const struct pb_job *job);
/* Replaces a string member of a job by a copy (NULL clears it). Returns 0 or -ENOMEM. */
int pb_job_set(char **field, const char *value);

/* Adds a file to the manifest that was delivered in a directory (absolute path). file: its name and
 * its state; its root is ignored. member: its role; NULL = not known yet. The root is the inbox
 * (job->inbox) if the directory is in it. Files beyond the limit of a manifest are left out; a job
 * with more files fails. 0, -EINVAL or -ENOMEM. */
int pb_job_add_delivered(struct pb_job *job, const char *directory,
                         const struct pb_manifest_entry *file, const struct pb_member *member);
/* Adds the companion that the inbox requires, as a file of that directory, which is not there yet.
 * verifies: the input must be verified with it. Returns the same. */
int pb_job_expect_companion(struct pb_job *job, const char *directory, const char *name,
                            bool verifies);
/* Sets the present path of the companion; NULL: it is gone. 0, -EINVAL or -ENOMEM. */
int pb_job_set_companion(struct pb_job *job, const char *path);
/* Returns `out` with the present path of the companion; NULL if it is absent. */
const char *pb_job_companion(const struct pb_job *job, char out[PB_SCENE_MANIFEST_PATH_BYTES]);
/* Prints the paths of its files at delivery as a JSON array, at most PB_JOB_DELIVERED_MAX. */
void pb_job_print_delivered(struct pb_json *json, const char *key, const struct pb_job *job);

/* Makes an id "YYYYMMDD-HHMMSS-xxxx": it sorts by creation, and its last part is short enough to
 * type. */
void pb_job_make_id(int64_t wall_ms, uint32_t random, char out[PB_JOB_ID_BYTES]);
bool pb_job_is_id(const char *text);
/* Returns true if text can be an id or the end of one. */
bool pb_job_is_suffix(const char *text);

bool pb_job_may(enum pb_job_status from, enum pb_job_status to);
/* Changes the status and the members that depend on it (times, attempts, progress). 0, or -EPERM
 * and the job unchanged. Beyond pb_job_may, the successful job of an archive of several scenes may
 * become accepted: a retry computes scenes that were skipped as duplicates. */
int pb_job_move(struct pb_job *job, enum pb_job_status to, int64_t wall_ms);
/* Sets a failed job, whose input a person has dropped from quarantine, to dismissed; its error and
 * the time of its end stay. Another job is unchanged. */
void pb_job_drop(struct pb_job *job, int64_t wall_ms);
/* Starts a running job again within its attempt: clears the members of its run, except device_why.
 */
void pb_job_restart(struct pb_job *job, int64_t wall_ms);

const char *pb_job_status_name(enum pb_job_status status);
bool pb_job_status_find(const char *name, enum pb_job_status *out_status);

void pb_job_fail(struct pb_job *job, enum pb_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns true if its input was processed before and was not computed again (service.duplicates):
 * the input is moved like that of a successful job. */
bool pb_job_is_skipped(const struct pb_job *job);
/* Makes a job without products of a run that found no pixel of the scene in the area of its
 * pipeline; it is successful when it is moved. message: explanation, stored in its report as
 * `skipped`. */
void pb_job_leave_out(struct pb_job *job, const char *message);
/* Returns true after pb_job_leave_out: its stage is "skipped". */
bool pb_job_is_left_out(const struct pb_job *job);
/* Returns true for the job of a scene in an archive whose job waits for it. */
bool pb_job_is_scene(const struct pb_job *job);
/* Returns true if its input, or the archive of its scene, was delivered to an inbox; false for a
 * submitted one and for a job that makes products again: a client chose their pipeline. */
bool pb_job_is_delivered(const struct pb_job *job);
/* Returns true for the job of an archive of several scenes since they have jobs of their own
 * (archive_rows.h): its stage is "scenes". */
bool pb_job_has_scenes(const struct pb_job *job);
/* Returns true if a run of the job began, so that there may be products of it. Rows of versions
 * without epochs have attempts, or an error, instead. */
bool pb_job_began(const struct pb_job *job);
/* Returns true if all tiles of the job's run are computed: the run publishes, or has published. A
 * worker in stage "publish" with missing tiles only waits for the checksum of its input. */
bool pb_job_publishes(const struct pb_job *job);
/* Sets the error that a worker sent; a missing code becomes "system". */
void pb_job_fail_words(struct pb_job *job, const char *code, const char *message, const char *hint);

/* Returns true for bounds in degrees: west, south, east and north. */
bool pb_job_is_bbox(const struct pb_json_value *bbox);
/* Sets bbox and datetime from the job's report. */
void pb_job_take_place(struct pb_job *job);
/* Prints the job in the form of the protocol, as a member `key` of json or (key NULL) as an
 * element. */
void pb_job_print(struct pb_json *json, const char *key, const struct pb_job *job);
/* Prints the job without its report, which is its largest part. */
void pb_job_print_brief(struct pb_json *json, const char *key, const struct pb_job *job);
/* Adds a node to job->shunned: a run failed there, not by its input. Node "" changes nothing. */
void pb_job_shun(struct pb_job *job, const char *node);
/* Returns the position of the node in job->shunned, lower for an older failure; -1 = absent. */
int pb_job_shunned_at(const struct pb_job *job, const char *node);
/* Prints {"code", "message", "hint"}, with "memory" if it is known, or null. */
void pb_job_print_error(struct pb_json *json, const char *key, const struct pb_job_error *error);
#endif
