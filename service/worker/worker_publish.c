/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_publish.h"
#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "service/worker/worker_products.h"
#include "service/worker/checksum.h"
#include "service/worker/duplicates.h"
#include "service/worker/joined.h"
#include "service/base/files.h"

#include "pipeline/io/io_fail.h"
#include "pipeline/io/nameless.h"
#include "config/base/json_writer.h"
#include "pipeline/io/file_identity.h"
#include "pipeline/product/product.h"
#include "pipeline/scene/scene_inputs.h"
#include "pipeline/scene/sidecars.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS_MAX = 20 }; /* two ticks of the slowest clock */

/* Existing products: the command's setting, otherwise the configuration's. A job that makes
 * products again replaces only its own. */
static enum pb_existing existing_of(const struct pb_json_value *command,
                                    const struct pb_output_config *output)
{
    if (pb_json_get_text(command, "again") != NULL)
        return PB_EXISTING_OWN;
    const char *word = pb_json_get_text(command, "existing");
    int existing = word ? pb_existing_find(word) : -1;
    return existing >= 0 ? (enum pb_existing)existing : output->exists;
}

/* The `earlier` member of the command; NULL if the loose files join nothing. */
static const struct pb_json_value *earlier_of(const struct pb_worker_job *job)
{
    return pb_json_get(job->command, "earlier", NULL);
}

/* Returns true if the job computes one scene of several in an archive. */
static bool is_part(const struct pb_worker_job *job)
{
    return pb_json_get_text(job->command, "part") != NULL;
}

static int open_publish(struct pb_worker_job *job, const struct pb_config *config, unsigned mode,
                        const struct pb_worker_wait *wait, struct pb_err *err)
{
    const struct pb_output_config *output = &job->pipeline->output;
    const struct pb_json_value *command = job->command;
    const struct stat *st = &job->scene.file.stat;
    const struct pb_scene_files *files = pb_scene_several(&job->scene);
    int64_t epoch = 0;
    const char *input = job->scene.path, *name = pb_json_get_text(command, "name"),
               *job_id = pb_json_get_text(command, "job");
    const bool permitted = pb_json_get_text(command, "permit") != NULL;
    bool unnamed = pb_json_get_text(command, "foreground") != NULL;
    struct pb_publish_options options = {
        .products = pb_json_get_text(command, "products"),
        .root = pb_json_get_text(command, "root"),
        .scene = pb_json_get_text(command, "scene"),
        .pipeline = pb_json_get_text(command, "pipeline"),
        .job = unnamed ? NULL : job_id,
        .epoch = pb_json_get_int(command, "epoch", &epoch) == 0 && epoch > 0 ? (uint64_t)epoch : 0,
        .input_path = input,
        .is_folder = files != NULL && job->pipeline->input.group == NULL,
        .set = job->pipeline->input.group != NULL ? files : NULL,
        .is_open =
            earlier_of(job) != NULL || (unnamed && job->pipeline->input.complete.reopen_ms > 0),
        .earlier = earlier_of(job) ? pb_json_get_text(earlier_of(job), "jobs") : NULL,
        .path = output->path,
        .late = true,
        .collection = pb_products_collection(job->pipeline),
        .existing = existing_of(command, output),
        .mode = mode,
        .request_permit = permitted ? wait->request_permit : NULL,
        .permit = permitted ? wait->permit : NULL,
        .permit_user = wait->user};
    pb_input_id_set(&options.input,
                    name    ? name
                    : files ? files->folder
                            : input,
                    files ? files->bytes : (uint64_t)st->st_size,
                    files ? files->mtime_ns : pb_clock_ns(&st->st_mtim));
    const struct pb_scene_inputs inputs = {.config = config,
                                           .pipeline = job->pipeline,
                                           .name = options.scene,
                                           .delivered = options.input.name,
                                           .scene = &job->scene,
                                           .known = is_part(job) ? &job->manifest : NULL};
    int rc = pb_scene_inputs_sum(&inputs, err, &options.files, &options.sum);
    if (rc != 0)
        return rc;
    pb_input_sum_on_wait(options.sum, wait->alive, wait->user);
    const struct pb_duplicates_input all = {&options.files, options.sum};
    rc = pb_duplicates_compare(&all, pb_json_get_text(command, "known"), err);
    rc = rc ? rc : pb_joined_compare(earlier_of(job), &all, err);
    if (rc != 0) {
        pb_input_sum_destroy(options.sum);
        pb_scene_manifest_fini(&options.files);
        return rc;
    }
    return pb_publish_open(&options, err, &job->publish);
}

/* Finds the path of the scene: for a file in a folder of its own with others, that of the file. */
static int find_path(struct pb_worker_job *job, struct pb_err *err)
{
    char main[PATH_MAX];
    const char *path = job->manifest.input;
    bool is_beside = job->pipeline->input.n_files == 0 && pb_sidecar_main(path, main);
    return pb_scene_init(&job->scene, is_beside ? main : path) == 0
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory");
}

static int64_t reader_of(const struct pb_worker_job *job)
{
    const char *reader = pb_json_get_text(job->command, "reader");
    return reader ? strtoll(reader, NULL, 10) : -1;
}

static int open_scene(struct pb_worker_job *job, int64_t reader, struct pb_err *err)
{
    const struct pb_json_value *earlier = earlier_of(job);
    const struct pb_scene_opening how = {.pipeline = job->pipeline,
                                         .name = pb_json_get_text(job->command, "scene"),
                                         .reader = reader,
                                         .manifest = &job->manifest,
                                         .joins = pb_json_get_text(earlier, "by")};
    if (earlier != NULL && how.joins == NULL)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "a run command with a broken 'earlier'");
    return pb_scene_open(&job->scene, &how, err);
}

/* Runs before the computation: an input that was damaged in transfer is not computed. */
static int verify_checksum(const struct pb_worker_job *job, const struct pb_worker_wait *wait,
                           struct pb_err *err)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES] = "";
    const struct pb_manifest_entry *companion =
        pb_scene_manifest_find(&job->manifest, PB_ROLE_COMPANION);
    const struct pb_checksum_job sum = {.file = path,
                                        .input = job->scene.path,
                                        .name = pb_json_get_text(job->command, "name"),
                                        .alive = wait->alive,
                                        .user = wait->user};
    if (companion == NULL || !companion->verifies || sum.name == NULL)
        return 0;
    if (!companion->is_gone && pb_scene_manifest_path(&job->manifest, companion, path) != 0)
        path[0] = '\0';
    return pb_checksum_verify(&sum, err);
}

static int read_manifest(struct pb_worker_job *job, struct pb_err *err)
{
    const struct pb_json_value *value = pb_json_get(job->command, "manifest", NULL);
    const int rc = value != NULL ? pb_scene_manifest_read(value, &job->manifest) : -EINVAL;
    if (rc == -ENOMEM)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return rc == 0 && job->manifest.input != NULL
               ? 0
               : pb_fail(err, PB_E_SERVICE_PROTOCOL, "a run command with a broken manifest");
}

const char *pb_worker_job_directory(const struct pb_worker_job *job)
{
    return job->away != NULL ? job->away : pb_publish_directory(job->publish);
}

static bool is_archive(const struct pb_worker_job *job)
{
    return job->pipeline->input.n_files > 0 && job->scene.file.fd >= 0;
}

/* Waits for the next tick of the clock of file times, a few milliseconds after the last change of
 * the file. A change within a tick does not change the ctime; a checksum that is read after the
 * tick belongs to the state of the file. Returns false if the ctime is in the future, has whole
 * seconds, or may be of the clock of another machine. */
static bool outwait_tick(int fd, const struct stat *st)
{
    const struct timespec pause = {0, 1000000}, *last = &st->st_ctim;
    struct timespec now;
    struct statfs fs;
    if (last->tv_nsec == 0 || fstatfs(fd, &fs) != 0 || !pb_files_is_local_type((uint32_t)fs.f_type))
        return false;
    for (int i = 0; i < TICK_MS_MAX; i++) {
        if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
            return false;
        if (now.tv_sec != last->tv_sec ? now.tv_sec > last->tv_sec : now.tv_nsec > last->tv_nsec)
            return true;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

/* Makes the file for the members of an archive. It has no name, therefore it need not be removed.
 */
static int open_room(struct pb_worker_job *job, struct pb_err *err)
{
    const char *given = pb_json_get_text(job->command, "unpack");
    if (!is_archive(job))
        return 0;
    job->room_name = given != NULL ? given : pb_worker_job_directory(job);
    job->room = pb_nameless_open(job->room_name);
    return job->room >= 0
               ? 0
               : pb_io_fail(err, -job->room, "cannot make a temporary file in", job->room_name);
}

static int read_command(struct pb_worker_job *job, const struct pb_config *config,
                        struct pb_err *err)
{
    const char *pipeline = pb_json_get_text(job->command, "pipeline");
    job->pipeline = pb_config_pipeline(config, pipeline);
    const int rc = read_manifest(job, err);
    return rc != 0 || job->pipeline != NULL
               ? rc
               : pb_fail(err, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s'", pipeline);
}

static void begin_lines(struct pb_worker_job *job)
{
    struct pb_job known = {.id = ""};
    (void)snprintf(known.id, sizeof known.id, "%s", pb_json_get_text(job->command, "job"));
    pb_worker_lines_begin(&job->lines, &known, "", NULL,
                          pb_json_get_text(job->command, "turn") != NULL);
}

static int open_job(struct pb_worker_job *job, const struct pb_config *config, unsigned mode,
                    const struct pb_worker_wait *wait, struct pb_err *err)
{
    pb_file_identity_expect(pb_json_get_text(job->command, "identity"));
    int rc = read_command(job, config, err);
    rc = rc ? rc : find_path(job, err);
    rc = rc ? rc : open_scene(job, reader_of(job), err);
    job->is_settled = rc == 0 && is_archive(job) && !is_part(job) &&
                      outwait_tick(job->scene.file.fd, &job->scene.file.stat);
    begin_lines(job);
    rc = rc ? rc : verify_checksum(job, wait, err);
    rc = rc ? rc : open_publish(job, config, mode, wait, err);
    rc = rc ? rc : open_room(job, err);
    if (rc != 0)
        return rc;
    (void)snprintf(job->lines.directory, sizeof job->lines.directory, "%s",
                   pb_publish_directory(job->publish));
    return 0;
}

static void begin(struct pb_worker_job *job, const struct pb_json_value *command)
{
    memset(job, 0, sizeof *job);
    job->room = -1;
    job->command = command;
    job->process_ns = pb_run_work_process_ns();
    pb_run_work_begin(&job->work);
    pb_work_begin(PB_WORK_OPEN, 0);
}

/* Puts the directory of copies before the path. Returns false if out of memory. */
static bool put_before(char **path, const char *directory)
{
    char *whole = NULL;
    if (asprintf(&whole, "%s%s", directory, *path) < 0)
        return false;
    free(*path);
    *path = whole;
    return true;
}

static int open_copies(struct pb_worker_job *job, const char *input, struct pb_err *err)
{
    struct pb_scene_manifest *manifest = &job->manifest;
    bool is_good = put_before(&manifest->input, input);
    for (size_t i = 0; i < manifest->n_roots && is_good; i++)
        is_good = put_before(&manifest->root[i], input);
    if (!is_good)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_file_identity_expect(NULL);
    int rc = find_path(job, err);
    return rc ? rc : open_scene(job, -1, err);
}

int pb_worker_job_open_away(struct pb_worker_job *job, const struct pb_json_value *command,
                            const struct pb_config *config, const char *input, const char *products,
                            struct pb_err *err)
{
    begin(job, command);
    job->away = strdup(products);
    int rc = job->away != NULL ? read_command(job, config, err)
                               : pb_fail(err, PB_E_MEMORY, "out of memory");
    rc = rc ? rc : open_copies(job, input, err);
    begin_lines(job);
    rc = rc ? rc : open_room(job, err);
    if (rc == 0)
        (void)snprintf(job->lines.directory, sizeof job->lines.directory, "%s", job->away);
    pb_work_end();
    pb_run_work_end(&job->work, PB_RUN_OPEN);
    return rc;
}

int pb_worker_job_open(struct pb_worker_job *job, const struct pb_json_value *command,
                       const struct pb_config *config, unsigned mode,
                       const struct pb_worker_wait *wait, struct pb_err *err)
{
    begin(job, command);
    int rc = open_job(job, config, mode, wait, err);
    pb_work_end();
    pb_run_work_end(&job->work, PB_RUN_OPEN);
    return rc;
}

int pb_worker_job_identify(struct pb_worker_job *job, struct pb_err *err)
{
    pb_run_work_begin(&job->work);
    int rc = pb_publish_identify(job->publish, err);
    pb_run_work_end(&job->work, PB_RUN_TILES);
    return rc;
}

int pb_worker_job_archive(const struct pb_worker_job *job, struct pb_scene_manifest *out)
{
    const struct pb_scene_manifest *files = NULL;
    struct pb_err ignored = {0};
    *out = (struct pb_scene_manifest){.n_roots = 0};
    if (!job->is_settled || pb_publish_inputs(job->publish, &ignored, &files) != 0 ||
        files->n_entries == 0 || files->entry[0].checksum == NULL)
        return -ENODATA;
    struct pb_manifest_entry file = files->entry[0];
    pb_scene_inputs_state(&job->scene.file.stat, &file);
    file.root = 0;
    int rc = pb_scene_manifest_root(out, files->root[files->entry[0].root]);
    rc = rc < 0 ? rc : pb_scene_manifest_add(out, &file);
    if (rc < 0)
        pb_scene_manifest_fini(out);
    return rc < 0 ? rc : 0;
}

int pb_worker_job_lend(struct pb_worker_job *job, const struct pb_worker_user *user,
                       struct pb_err *err)
{
    struct stat st;
    const char *path = pb_worker_job_directory(job);
    if (!user->own)
        return 0;
    if (stat(path, &st) != 0 || chown(path, (uid_t)-1, user->gid) != 0 || chmod(path, 0770) != 0)
        return pb_fail(err, PB_E_OUTPUT_DENIED, "cannot let %s write in %s: %s", user->why, path,
                       strerror(errno));
    job->lent = true;
    job->mode = st.st_mode & 07777u;
    (void)snprintf(job->lines.directory, sizeof job->lines.directory, ".");
    return 0;
}

struct pb_json *pb_worker_job_command(const struct pb_worker_job *job, const char *place)
{
    struct pb_json *json = pb_json_create(false);
    const char *key;
    pb_json_object(json, NULL);
    for (size_t i = 0; (key = pb_json_key(job->command, i)) != NULL; i++) {
        const char *value = pb_json_get_text(job->command, key);
        if (value != NULL && strcmp(key, "directory") != 0 && strcmp(key, "known") != 0)
            pb_json_string(json, key, value);
    }
    pb_json_string(json, "directory", job->lines.directory);
    if (job->publish != NULL && pb_publish_is_placed(job->publish))
        place = pb_publish_place(job->publish);
    if (place != NULL)
        pb_json_string(json, "place", place);
    pb_json_end(json);
    return json;
}

static int take_back(struct pb_worker_job *job, struct pb_err *err)
{
    const char *path = pb_worker_job_directory(job);
    if (!job->lent)
        return 0;
    if (chown(path, (uid_t)-1, getegid()) != 0 || chmod(path, job->mode) != 0)
        return pb_io_fail(err, errno, "cannot take back", path);
    job->lent = false;
    return 0;
}

int pb_worker_job_collect(struct pb_worker_job *job, const struct pb_worker_line *done,
                          struct pb_err *err, struct pb_json_value **out_products)
{
    struct pb_json_value *products = NULL;
    if (pb_json_parse(done->products, strlen(done->products), PB_WORKER_LINE_MAX, &products) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the list of products");
    int rc = take_back(job, err);
    rc = rc ? rc : pb_worker_products_check(pb_worker_job_directory(job), products, err);
    if (rc == 0)
        *out_products = products;
    else
        pb_json_release(products);
    return rc;
}

int pb_worker_job_prepare(struct pb_worker_job *job, struct pb_err *err)
{
    pb_run_work_begin(&job->work);
    pb_work_begin(PB_WORK_PUBLISH, 0);
    int rc = pb_publish_prepare(job->publish, err);
    pb_work_end();
    pb_run_work_end(&job->work, PB_RUN_TILES);
    return rc;
}

static int append_to_series(const struct pb_worker_job *job, const struct pb_json_value *products,
                            struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < pb_json_count(products) && rc == 0; i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        const char *kind = pb_json_get_text(product, "type");
        const char *file = strrchr(pb_json_get_text(product, "path"), '/') + 1;
        const char *series = kind != NULL ? pb_products_series(job->pipeline, kind,
                                                               pb_json_get_text(product, "name"))
                                          : NULL;
        if (series != NULL)
            rc = pb_publish_append(job->publish, file, series, err);
    }
    return rc;
}

int pb_worker_job_publish(struct pb_worker_job *job, const struct pb_worker_line *done,
                          struct pb_err *err, char **out_line)
{
    char directory[PATH_MAX];
    struct pb_json_value *products = NULL;
    if (pb_json_parse(done->products, strlen(done->products), PB_WORKER_LINE_MAX, &products) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the list of products");
    struct pb_manifest_file *files = pb_worker_products_describe(products);
    pb_run_work_begin(&job->work);
    pb_work_begin(PB_WORK_PUBLISH, 0);
    int rc = files ? take_back(job, err)
                   : pb_fail(err, PB_E_MEMORY, "out of memory for the list of products");
    rc = rc ? rc : pb_worker_products_check(pb_publish_directory(job->publish), products, err);
    rc = rc ? rc : append_to_series(job, products, err);
    rc = rc ? rc : pb_publish_commit(job->publish, files, pb_json_count(products), err, directory);
    pb_work_end();
    pb_run_work_end(&job->work, PB_RUN_PUBLISH);
    if (rc == 0 && pb_publish_warning(job->publish)[0] != '\0')
        (void)fprintf(stderr, "%s\n", pb_publish_warning(job->publish));
    if (rc == 0 &&
        (*out_line = pb_worker_products_line(job, products, done->report, directory)) == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the result");
    free(files);
    pb_json_release(products);
    return rc;
}

void pb_worker_job_close(struct pb_worker_job *job)
{
    if (job->command == NULL)
        return;
    pb_publish_close(job->publish);
    free(job->away);
    pb_scene_close(&job->scene);
    pb_scene_manifest_fini(&job->manifest);
    if (job->room >= 0)
        (void)close(job->room);
    memset(job, 0, sizeof *job);
    job->room = -1;
}
