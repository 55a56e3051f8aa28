/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_host.h"

#include "config/base/json_path.h"
#include "config/base/json_reader.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/path.h"
#include "service/base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 16384,
    DEPTH_MAX = 64,
    REQUEST_S = 30 /* the other node sends its request with its first line */
};

/* Files that are being sent. */
struct sending {
    int socket;
    const struct pb_transfer_wait *wait;
    struct pb_err *err;
};

static int lost(struct pb_err *err)
{
    return pb_fail(err, PB_E_INPUT_FETCH, "the other node closed the connection");
}

static struct pb_json *begin_line(const char *event, const char *path)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", event);
    if (path != NULL)
        pb_json_path(json, "path", path);
    return json;
}

static int send_file(const struct sending *sending, const char *path, int fd, const struct stat *st)
{
    struct pb_json *json = begin_line("file", path);
    pb_json_int(json, "bytes", st->st_size);
    pb_json_int(json, "mtime_s", st->st_mtim.tv_sec);
    pb_json_int(json, "mtime_ns", st->st_mtim.tv_nsec);
    pb_json_end(json);
    const int rc = pb_transfer_send(sending->socket, json, fd, st->st_size, PB_CHECKSUM_SHA2_256,
                                    sending->wait);
    if (rc == -EPIPE)
        return lost(sending->err);
    if (rc == -ESTALE)
        return pb_fail(sending->err, PB_E_INPUT_CHANGED, "%s became shorter while it was sent",
                       path);
    return rc == 0 ? 0 : pb_io_fail(sending->err, -rc, "cannot read", path);
}

static int send_entry(const struct sending *sending, const char *path, int depth);

static int send_folder(const struct sending *sending, const char *path, int fd, int depth)
{
    struct pb_json *json = begin_line("folder", path);
    char inner[PB_FILES_PATH_BYTES];
    int rc = 0;
    pb_json_end(json);
    if (!pb_transfer_line(sending->socket, json))
        return lost(sending->err);
    DIR *dir = pb_path_entries(fd);
    if (dir == NULL)
        return pb_io_fail(sending->err, errno, "cannot list", path);
    for (const struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;)
        if (!pb_path_is_dots(e->d_name))
            rc = pb_files_join(inner, path, e->d_name) == 0
                     ? send_entry(sending, inner, depth + 1)
                     : pb_fail(sending->err, PB_E_INPUT_LIMIT, "the path of '%.200s' is too long",
                               e->d_name);
    (void)closedir(dir);
    return rc;
}

/* Sends the file, or the folder with its content. Links and devices are left out, as every run
 * refuses them. */
static int send_entry(const struct sending *sending, const char *path, int depth)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP || errno == ENOENT || errno == ENXIO
                   ? 0
                   : pb_io_fail(sending->err, errno, "cannot open", path);
    int rc = fstat(fd, &st) == 0 ? 0 : pb_io_fail(sending->err, errno, "cannot stat", path);
    if (rc == 0 && S_ISREG(st.st_mode))
        rc = send_file(sending, path, fd, &st);
    else if (rc == 0 && S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
        rc = send_folder(sending, path, fd, depth);
    (void)close(fd);
    return rc;
}

static bool is_in(const char *path, const char *directory)
{
    const size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Sends the input; loose files one by one, if it is only their name, or the scene joins files of
 * earlier jobs. */
static int send_files(const struct sending *sending, const struct pb_worker_job *job)
{
    const struct pb_scene_manifest *manifest = &job->manifest;
    const bool joins = pb_json_get(job->command, "earlier", NULL) != NULL;
    const bool is_there = access(manifest->input, F_OK) == 0;
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    int rc = send_entry(sending, manifest->input, 0);
    for (size_t i = 0; rc == 0 && (joins || !is_there) && i < manifest->n_entries; i++)
        if (pb_scene_manifest_path(manifest, &manifest->entry[i], path) == 0 &&
            !is_in(path, manifest->input))
            rc = send_entry(sending, path, 0);
    return rc;
}

/* Limits the time that a read waits for bytes; 0: no limit. */
static void limit_wait(int socket, int seconds)
{
    const struct timeval most = {.tv_sec = seconds};
    (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    errno = 0;
}

int pb_worker_host_send(struct pb_worker_host *host, const struct pb_worker_job *job,
                        struct pb_line_reader *reader, struct pb_err *err)
{
    const struct sending sending = {host->fd, &host->wait, err};
    struct pb_json_value *value = NULL;
    bool files = false;
    size_t bytes = 0;
    limit_wait(host->fd, REQUEST_S);
    const char *line = pb_transfer_next(reader, &bytes);
    const bool is_late = line == NULL && errno == EAGAIN;
    limit_wait(host->fd, 0);
    if (is_late)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                       "the other node sent no request for files for %d s", REQUEST_S);
    if (line == NULL)
        return lost(err);
    if (pb_json_parse(line, bytes, LINE_MAX_BYTES, &value) != 0 ||
        pb_json_get_bool(value, "files", &files) != 0) {
        pb_json_release(value);
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "the other node sent no request for files");
    }
    pb_json_release(value);
    int rc = files ? send_files(&sending, job) : 0;
    if (rc != 0)
        return rc;
    struct pb_json *json = begin_line("open", NULL);
    if (pb_publish_is_placed(job->publish))
        pb_json_string(json, "place", pb_publish_place(job->publish));
    pb_json_end(json);
    return pb_transfer_line(host->fd, json) ? 0 : lost(err);
}

/* --- products --------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    return name != NULL && name[0] != '\0' && name[0] != '.' && strlen(name) < 256 &&
           strchr(name, '/') == NULL;
}

static int add(struct pb_worker_host *host, const char *name, const char *sum)
{
    struct pb_host_file *more = realloc(host->files, (host->n_files + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    host->files = more;
    struct pb_host_file *file = &host->files[host->n_files++];
    (void)snprintf(file->name, sizeof file->name, "%s", name);
    (void)snprintf(file->sum, sizeof file->sum, "%s", sum);
    return 0;
}

/* Receives into a new file of the directory. */
static int receive(struct pb_worker_host *host, const char *directory, const char *name,
                   int64_t bytes, enum pb_checksum kind, struct pb_line_reader *reader,
                   struct pb_err *err)
{
    char path[PB_FILES_PATH_BYTES], sum[PB_CHECKSUM_TEXT_BYTES];
    if (pb_files_join(path, directory, name) != 0)
        return pb_fail(err, PB_E_OUTPUT_NAME, "the path of product '%.200s' is too long", name);
    if (pb_files_check_space(directory, (uint64_t)bytes, NULL) != 0)
        return pb_fail(err, PB_E_OUTPUT_FULL, "no space for the %lld bytes of product %s in %s",
                       (long long)bytes, name, directory);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return pb_io_fail(err, errno, "cannot create", path);
    int rc = pb_transfer_receive(reader, fd, bytes, kind, &host->wait, sum);
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    if (rc == -EPIPE)
        return lost(err);
    if (rc == -EBADMSG)
        return pb_fail(err, PB_E_INPUT_FETCH,
                       "product %s arrived with other bytes than the other node sent", name);
    if (rc != 0)
        return pb_io_fail(err, -rc, "cannot write", path);
    return add(host, name, sum) == 0 ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory");
}

bool pb_worker_host_is_alive(struct pb_worker_host *host, const char *line, size_t bytes)
{
    static const char sign[] = "{\"event\":\"alive\"}";
    if (bytes != sizeof sign - 1 || memcmp(line, sign, bytes) != 0)
        return false;
    host->wait.alive(host->wait.user, host->file);
    return true;
}

int pb_worker_host_receive(struct pb_worker_host *host, const struct pb_worker_job *job,
                           const char *line, size_t bytes, struct pb_line_reader *reader,
                           struct pb_err *err)
{
    struct pb_json_value *value = NULL;
    char name[256];
    int64_t n = -1;
    if (bytes > LINE_MAX_BYTES || pb_json_parse(line, bytes, LINE_MAX_BYTES, &value) != 0)
        return 1;
    const char *event = pb_json_get_text(value, "event"), *given = pb_json_get_text(value, "name"),
               *kind = pb_json_get_text(value, "kind");
    if (event == NULL || strcmp(event, "product") != 0) {
        pb_json_release(value);
        return 1;
    }
    const bool is_good = is_name(given) && pb_json_get_int(value, "bytes", &n) == 0 && n >= 0 &&
                         kind != NULL && host->n_files < PB_WORKER_PRODUCTS_MAX;
    const enum pb_checksum sum =
        is_good && strcmp(kind, "blake3") == 0 ? PB_CHECKSUM_BLAKE3 : PB_CHECKSUM_SHA2_256;
    (void)snprintf(name, sizeof name, "%s", is_good ? given : "");
    pb_json_release(value);
    if (!is_good)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                       "the other node sent a product without name or "
                       "size");
    return receive(host, pb_publish_directory(job->publish), name, n, sum, reader, err);
}

int pb_worker_host_check(const struct pb_worker_host *host, const struct pb_json_value *products,
                         struct pb_err *err)
{
    for (size_t i = 0; i < pb_json_count(products); i++) {
        const struct pb_json_value *product = pb_json_at(products, i);
        const char *name = strrchr(pb_json_get_text(product, "path"), '/') + 1;
        const char *sum = pb_json_get_text(product, "checksum");
        size_t at = 0;
        while (at < host->n_files && strcmp(host->files[at].name, name) != 0)
            at++;
        if (at == host->n_files ||
            (sum != NULL && sum[0] != '\0' && strcmp(sum, host->files[at].sum) != 0))
            return pb_fail(err, PB_E_INPUT_FETCH,
                           "product %s is not the file that the other node announced", name);
    }
    return 0;
}

void pb_worker_host_close(struct pb_worker_host *host)
{
    if (host->fd >= 0)
        (void)close(host->fd);
    free(host->files);
    *host = (struct pb_worker_host){.fd = -1};
}
