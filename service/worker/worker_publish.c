/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_publish.h"
#include "service/worker/checksum.h"
#include "service/worker/duplicates.h"

#include "config/base/archive_name.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/nameless.h"
#include "config/base/json_writer.h"
#include "pipeline/io/file_identity.h"
#include "pipeline/product/product.h"
#include "pipeline/scene/scene_inputs.h"
#include "pipeline/scene/sidecar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The command's word, else the configuration's. */
static enum pb_existing existing_of(const struct pb_json_value *command,
                                    const struct pb_output_config *output)
{
    const char *word = pb_json_get_text(command, "existing");
    int existing = word ? pb_existing_find(word) : -1;
    return existing >= 0 ? (enum pb_existing)existing : output->exists;
}

static int open_publish(struct pb_worker_job *job, const struct pb_config *config, unsigned mode,
                        const struct pb_worker_wait *wait, struct pb_err *err)
{
    const struct pb_output_config *output = &job->pipeline->output;
    const struct pb_json_value *command = job->command;
    const struct stat *st = &job->input.stat;
    const struct pb_scene_files *files = job->files.folder != NULL ? &job->files : NULL;
    const char *input = job->path, *name = pb_json_get_text(command, "name"),
               *job_id = pb_json_get_text(command, "job");
    bool unnamed = pb_json_get_text(command, "foreground") != NULL;
    struct pb_publish_options options = {.products = pb_json_get_text(command, "products"),
                                         .scene = pb_json_get_text(command, "scene"),
                                         .pipeline = pb_json_get_text(command, "pipeline"),
                                         .job = unnamed ? NULL : job_id,
                                         .input_path = input,
                                         .is_folder =
                                             files != NULL && job->pipeline->input.group == NULL,
                                         .path = output->path,
                                         .late = true,
                                         .collection = pb_products_collection(job->pipeline),
                                         .existing = existing_of(command, output),
                                         .mode = mode};
    pb_input_id_set(&options.input,
                    name    ? name
                    : files ? files->folder
                            : input,
                    files ? files->bytes : (uint64_t)st->st_size,
                    files ? files->mtime_ns
                          : (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
    const struct pb_scene_inputs inputs = {.config = config,
                                           .pipeline = job->pipeline,
                                           .scene = options.scene,
                                           .files = files,
                                           .file = &job->input,
                                           .metadata = &job->metadata,
                                           .sidecars = job->sidecars};
    int rc = pb_scene_inputs_sum(&inputs, err, &options.sum);
    if (rc != 0)
        return rc;
    pb_input_sum_on_wait(options.sum, wait->alive, wait->user);
    rc = pb_duplicates_compare(options.sum, pb_json_get_text(command, "known"), err);
    if (rc != 0) {
        pb_input_sum_destroy(options.sum);
        return rc;
    }
    return pb_publish_open(&options, err, &job->publish);
}

/* The folder is the one that was submitted. */
static int check_folder(const char *path, struct pb_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !pb_file_identity_is_expected(&st))
        return pb_fail_at(err, PB_E_INPUT_CHANGED, path, 0, 0,
                          "it is not the folder that was submitted: replaced, or files were added "
                          "or removed since; submit it again");
    return 0;
}

/* The path of the scene: of a file that lies with others in a folder of its own, that file's. */
static int find_path(struct pb_worker_job *job, struct pb_err *err)
{
    char main[PATH_MAX];
    const char *path = pb_json_get_text(job->command, "input");
    bool is_beside = job->pipeline->input.n_files == 0 && pb_sidecar_main(path, main);
    job->path = strdup(is_beside ? main : path);
    return job->path != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory");
}

static int64_t reader_of(const struct pb_worker_job *job)
{
    const char *reader = pb_json_get_text(job->command, "reader");
    return reader ? strtoll(reader, NULL, 10) : -1;
}

static int open_sidecars(struct pb_worker_job *job, struct pb_err *err)
{
    job->sidecars = calloc(1, sizeof *job->sidecars);
    if (job->sidecars == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return pb_sidecars_open(job->pipeline, job->path, reader_of(job), err, job->sidecars);
}

static int open_input(struct pb_worker_job *job, struct pb_err *err)
{
    const char *path = job->path;
    struct stat st;
    bool takes_folders = job->pipeline->input.n_files > 0;
    bool is_there = stat(path, &st) == 0, is_folder = is_there && S_ISDIR(st.st_mode);
    pb_metadata_files_init(&job->metadata);
    if (takes_folders && is_folder) {
        int rc = pb_scene_files_open(job->pipeline, path, pb_json_get_text(job->command, "scene"),
                                     reader_of(job), err, &job->files);
        return rc ? rc : check_folder(path, err);
    }
    if (takes_folders && !is_there && job->pipeline->input.group_pattern != NULL)
        return pb_scene_files_open_group(job->pipeline, path, -1, err, &job->files);
    int rc = pb_raster_file_open(&job->input, path, err);
    if (rc == 0 && takes_folders && pb_archive_name_stem(path) == 0)
        rc = pb_fail_at(err, PB_E_INPUT_NO_PIPELINE, path, 0, 0,
                        "pipeline %s takes folders (input.scene) and archives of them "
                        "(" PB_ARCHIVE_NAME_SUFFIXES "), and this is another file",
                        job->pipeline->name);
    if (rc == 0 && !takes_folders)
        rc = pb_sidecar_open(job->pipeline, path, pb_json_get_text(job->command, "scene"),
                             reader_of(job), &job->metadata, err);
    return rc ? rc : open_sidecars(job, err);
}

/* Before anything is computed: what is not what was sent is not worth it. */
static int verify_checksum(const struct pb_json_value *command, const struct pb_worker_wait *wait,
                           struct pb_err *err)
{
    char main[PATH_MAX];
    const char *input = pb_json_get_text(command, "input");
    const struct pb_checksum_job sum = {.file = pb_json_get_text(command, "checksum"),
                                        .input = pb_sidecar_main(input, main) ? main : input,
                                        .name = pb_json_get_text(command, "name"),
                                        .alive = wait->alive,
                                        .user = wait->user};
    return sum.file == NULL || sum.name == NULL ? 0 : pb_checksum_verify(&sum, err);
}

/* Of an archive: where its members go. Without a name, so that nothing has to be removed. */
static int open_room(struct pb_worker_job *job, struct pb_err *err)
{
    const char *given = pb_json_get_text(job->command, "unpack");
    if (job->pipeline->input.n_files == 0 || job->input.fd < 0)
        return 0;
    job->room_name = given != NULL ? given : pb_publish_directory(job->publish);
    job->room = pb_nameless_open(job->room_name);
    return job->room >= 0
               ? 0
               : pb_io_fail(err, -job->room, "cannot make a temporary file in", job->room_name);
}

int pb_worker_job_open(struct pb_worker_job *job, const struct pb_json_value *command,
                       const struct pb_config *config, unsigned mode,
                       const struct pb_worker_wait *wait, struct pb_err *err)
{
    struct pb_job known = {.id = ""};
    memset(job, 0, sizeof *job);
    job->input.fd = job->room = -1;
    job->command = command;
    job->pipeline = pb_config_pipeline(config, pb_json_get_text(command, "pipeline"));
    (void)snprintf(known.id, sizeof known.id, "%s", pb_json_get_text(command, "job"));
    pb_file_identity_expect(pb_json_get_text(command, "identity"));
    int rc = job->pipeline ? find_path(job, err)
                           : pb_fail(err, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s'",
                                     pb_json_get_text(command, "pipeline"));
    rc = rc ? rc : open_input(job, err);
    pb_worker_lines_begin(&job->lines, &known, "", NULL);
    rc = rc ? rc : verify_checksum(command, wait, err);
    rc = rc ? rc : open_publish(job, config, mode, wait, err);
    rc = rc ? rc : open_room(job, err);
    if (rc != 0)
        return rc;
    (void)snprintf(job->lines.directory, sizeof job->lines.directory, "%s",
                   pb_publish_directory(job->publish));
    return 0;
}

int pb_worker_job_lend(struct pb_worker_job *job, const struct pb_worker_user *user,
                       struct pb_err *err)
{
    struct stat st;
    const char *path = pb_publish_directory(job->publish);
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

struct pb_json *pb_worker_job_command(const struct pb_worker_job *job)
{
    struct pb_json *json = pb_json_create(false);
    const char *key;
    pb_json_object(json, NULL);
    for (size_t i = 0; (key = pb_json_key(job->command, i)) != NULL; i++) {
        const char *value = pb_json_get_text(job->command, key);
        if (value != NULL && strcmp(key, "directory") != 0 && strcmp(key, "input") != 0 &&
            strcmp(key, "known") != 0)
            pb_json_string(json, key, value);
    }
    pb_json_string(json, "input", job->path);
    pb_json_string(json, "directory", job->lines.directory);
    if (pb_publish_is_placed(job->publish))
        pb_json_string(json, "place", pb_publish_place(job->publish));
    pb_json_end(json);
    return json;
}

static int take_back(struct pb_worker_job *job, struct pb_err *err)
{
    const char *path = pb_publish_directory(job->publish);
    if (!job->lent)
        return 0;
    if (chown(path, (uid_t)-1, getegid()) != 0 || chmod(path, job->mode) != 0)
        return pb_io_fail(err, errno, "cannot take back", path);
    job->lent = false;
    return 0;
}

/* --- what lies in the directory ---------------------------------------------------------------*/

static const char *file_of(const struct pb_json_value *product)
{
    return strrchr(pb_json_get_text(product, "path"), '/') + 1;
}

static const struct pb_json_value *find(const struct pb_json_value *products, const char *file)
{
    for (size_t i = 0; i < pb_json_count(products); i++) {
        if (strcmp(file_of(pb_json_at(products, i)), file) == 0)
            return pb_json_at(products, i);
    }
    return NULL;
}

/* Checks that it is a plain file with one link and the announced size. Makes it the service's, with
 * the permissions of a product. */
static bool is_sound(int directory, const struct pb_json_value *product)
{
    mode_t mask = umask(0), mode = 0644 & ~mask;
    (void)umask(mask);
    struct stat st;
    int64_t bytes = -1;
    const char *file = file_of(product);
    if (pb_json_get_int(product, "bytes", &bytes) != 0 ||
        fstatat(directory, file, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_size != bytes)
        return false;
    if (st.st_uid != geteuid() &&
        fchownat(directory, file, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    return (st.st_mode & 07777) == mode || fchmodat(directory, file, mode, 0) == 0;
}

static int check_directory(const char *path, const struct pb_json_value *products,
                           struct pb_err *err)
{
    size_t found = 0;
    const char *wrong = NULL;
    char name[NAME_MAX + 1] = "";
    DIR *dir = opendir(path);
    if (dir == NULL)
        return pb_io_fail(err, errno, "cannot open", path);
    for (struct dirent *e; wrong == NULL && (e = readdir(dir)) != NULL;) {
        const struct pb_json_value *product = find(products, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s", e->d_name);
        if (product == NULL)
            wrong = "is no product";
        else if (!is_sound(dirfd(dir), product))
            wrong = "is not the plain file that was announced";
        found++;
    }
    (void)closedir(dir);
    if (wrong != NULL)
        return pb_fail(err, PB_E_JOB_CRASHED, "the worker left '%s' among the products, which %s",
                       name, wrong);
    if (found != pb_json_count(products))
        return pb_fail(err, PB_E_JOB_CRASHED, "the worker announced %zu products and made %zu",
                       pb_json_count(products), found);
    return 0;
}

/* --- done ------------------------------------------------------------------------------------ */

static void copy_text(struct pb_json *json, const char *key, const struct pb_json_value *product)
{
    if (pb_json_get_text(product, key) != NULL)
        pb_json_string(json, key, pb_json_get_text(product, key));
}

/* The child's report, with what is wrong with the publication as its last member. */
static void print_report(struct pb_json *json, const char *text, const char *warning)
{
    struct pb_json_value *report = NULL;
    const char *key;
    if (warning[0] == '\0' || pb_json_parse(text, strlen(text), PB_WORKER_LINE_MAX, &report) != 0) {
        pb_json_raw(json, "report", text);
        return;
    }
    pb_json_object(json, "report");
    for (size_t i = 0; (key = pb_json_key(report, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(report, key, NULL);
        if (value == NULL)
            pb_json_null(json, key);
        else
            pb_json_raw(json, key, pb_json_source(value));
    }
    pb_json_string(json, "warning", warning);
    pb_json_end(json);
    pb_json_release(report);
}

static char *done_line(const struct pb_worker_job *job, const struct pb_json_value *products,
                       const char *report, const char *directory)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", "done");
    pb_json_string(json, "job", job->lines.job);
    pb_json_string(json, "directory", directory);
    pb_json_array(json, "products");
    for (size_t i = 0; i < pb_json_count(products); i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        char path[PATH_MAX + NAME_MAX + 2];
        int64_t bytes = 0, moved = 0;
        (void)snprintf(path, sizeof path, "%s/%s", directory, file_of(product));
        (void)pb_json_get_int(product, "bytes", &bytes);
        pb_json_object(json, NULL);
        copy_text(json, "type", product);
        copy_text(json, "name", product);
        pb_json_string(json, "path", path);
        pb_json_int(json, "bytes", bytes);
        copy_text(json, "checksum", product);
        copy_text(json, "media_type", product);
        if (pb_json_get_int(product, "moved_off_nodata", &moved) == 0)
            pb_json_int(json, "moved_off_nodata", moved);
        pb_json_end(json);
    }
    pb_json_end(json);
    print_report(json, report, pb_publish_warning(job->publish));
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *line = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return line;
}

/* The products as the manifest lists them. */
static struct pb_manifest_file *describe(const struct pb_json_value *products)
{
    size_t n = pb_json_count(products);
    struct pb_manifest_file *files = calloc(n + 1, sizeof *files);
    for (size_t i = 0; files != NULL && i < n; i++) {
        const struct pb_json_value *from = pb_json_at(products, i);
        const char *name = pb_json_get_text(from, "name");
        int64_t bytes = 0;
        (void)pb_json_get_int(from, "bytes", &bytes);
        files[i].bytes = (uint64_t)bytes;
        (void)snprintf(files[i].type, sizeof files->type, "%s", pb_json_get_text(from, "type"));
        (void)snprintf(files[i].name, sizeof files->name, "%s", name ? name : "");
        (void)snprintf(files[i].file, sizeof files->file, "%s", file_of(from));
        (void)snprintf(files[i].media_type, sizeof files->media_type, "%s",
                       pb_json_get_text(from, "media_type"));
        (void)snprintf(files[i].sha256, sizeof files->sha256, "%s",
                       strchr(pb_json_get_text(from, "checksum"), ':') + 1);
    }
    return files;
}

int pb_worker_job_publish(struct pb_worker_job *job, const struct pb_worker_line *done,
                          struct pb_err *err, char **out_line)
{
    char directory[PATH_MAX];
    struct pb_json_value *products = NULL;
    if (pb_json_parse(done->products, strlen(done->products), PB_WORKER_LINE_MAX, &products) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the list of products");
    struct pb_manifest_file *files = describe(products);
    int rc = files ? take_back(job, err)
                   : pb_fail(err, PB_E_MEMORY, "out of memory for the list of products");
    rc = rc ? rc : check_directory(pb_publish_directory(job->publish), products, err);
    rc = rc ? rc : pb_publish_commit(job->publish, files, pb_json_count(products), err, directory);
    if (rc == 0 && pb_publish_warning(job->publish)[0] != '\0')
        (void)fprintf(stderr, "%s\n", pb_publish_warning(job->publish));
    if (rc == 0 && (*out_line = done_line(job, products, done->report, directory)) == NULL)
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
    pb_raster_file_close(&job->input);
    pb_metadata_files_close(&job->metadata);
    pb_scene_files_close(&job->files);
    if (job->room >= 0)
        (void)close(job->room);
    if (job->sidecars != NULL)
        pb_sidecars_close(job->sidecars);
    free(job->sidecars);
    free(job->path);
    memset(job, 0, sizeof *job);
    job->input.fd = job->room = -1;
}
