/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_products.h"

#include "config/base/json_writer.h"
#include "pipeline/io/io_fail.h"
#include "service/worker/core_use.h"
#include "service/worker/run_limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Checks that it is a plain file with one link and the announced size. Makes the service its
 * owner, with the permissions of a product. */
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

int pb_worker_products_check(const char *path, const struct pb_json_value *products,
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

static void copy_text(struct pb_json *json, const char *key, const struct pb_json_value *product)
{
    if (pb_json_get_text(product, key) != NULL)
        pb_json_string(json, key, pb_json_get_text(product, key));
}

/* Adds the work of this process for the job. While its child computes, only CPU time counts; that
 * of the input's checksum, which may end later, also counts as time of the tiles. */
static void add_own_work(const struct pb_worker_job *job, struct pb_core_facts *facts)
{
    static const enum pb_work beside[] = {PB_WORK_INPUT_SUM, PB_WORK_LOAD};
    struct pb_work_times *tiles = &facts->part[PB_RUN_TILES].work;
    for (int p = 0; p < PB_RUN_PARTS; p++) {
        struct pb_part_report own = job->work.part[p];
        for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
            tiles->cpu_ns[beside[i]] += own.work.cpu_ns[beside[i]];
            own.work.cpu_ns[beside[i]] = own.work.wall_ns[beside[i]] = 0;
            own.work.storage_ns[beside[i]] = 0;
        }
        for (int k = 0; p == PB_RUN_TILES && k < PB_WORK_KINDS; k++)
            own.work.wall_ns[k] = own.work.storage_ns[k] = 0;
        pb_work_add(&facts->part[p].work, &own.work);
        facts->part[p].wall_ns += p == PB_RUN_TILES ? 0 : own.wall_ns;
    }
    facts->process_ns += pb_run_work_process_ns() - job->process_ns;
}

static bool is_work(const char *key)
{
    return strcmp(key, "cores") == 0 || strcmp(key, "cpu_ms") == 0 || strcmp(key, "phases") == 0;
}

/* Prints the child's report, with the limit of the run, and as its last member the fault of the
 * publication. */
static void print_report(struct pb_json *json, const struct pb_worker_job *job, const char *text)
{
    const char *warning = pb_publish_warning(job->publish);
    struct pb_core_facts facts;
    struct pb_core_uses uses;
    char limit[PB_RUN_LIMIT_BYTES];
    struct pb_json_value *report = NULL;
    const char *key;
    if (pb_json_parse(text, strlen(text), PB_WORKER_LINE_MAX, &report) != 0) {
        pb_json_raw(json, "report", text);
        return;
    }
    pb_core_facts_read(report, &facts);
    add_own_work(job, &facts);
    pb_core_uses_find(&facts, &uses);
    pb_json_object(json, "report");
    for (size_t i = 0; (key = pb_json_key(report, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(report, key, NULL);
        if (is_work(key))
            continue;
        if (value == NULL)
            pb_json_null(json, key);
        else
            pb_json_raw(json, key, pb_json_source(value));
    }
    pb_core_facts_print(&facts, json);
    pb_core_uses_print(&uses, json);
    pb_run_limit_find(&facts, report, limit);
    if (limit[0] != '\0')
        pb_json_string(json, "limited_by", limit);
    if (warning[0] != '\0')
        pb_json_string(json, "warning", warning);
    pb_json_end(json);
    pb_json_release(report);
}

char *pb_worker_products_line(const struct pb_worker_job *job, const struct pb_json_value *products,
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
        if (pb_json_get_text(product, "checksum") != NULL)
            copy_text(json, "checksum", product);
        else
            pb_json_null(json, "checksum");
        copy_text(json, "media_type", product);
        if (pb_json_get_int(product, "moved_off_nodata", &moved) == 0)
            pb_json_int(json, "moved_off_nodata", moved);
        const struct pb_json_value *corners = pb_json_get(product, "corners", NULL);
        if (corners != NULL)
            pb_json_raw(json, "corners", pb_json_source(corners));
        pb_json_end(json);
    }
    pb_json_end(json);
    print_report(json, job, report);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *line = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return line;
}

struct pb_manifest_file *pb_worker_products_describe(const struct pb_json_value *products)
{
    size_t n = pb_json_count(products);
    struct pb_manifest_file *files = calloc(n + 1, sizeof *files);
    for (size_t i = 0; files != NULL && i < n; i++) {
        const struct pb_json_value *from = pb_json_at(products, i);
        const char *name = pb_json_get_text(from, "name");
        const char *checksum = pb_json_get_text(from, "checksum");
        int64_t bytes = 0;
        (void)pb_json_get_int(from, "bytes", &bytes);
        files[i].bytes = (uint64_t)bytes;
        (void)snprintf(files[i].type, sizeof files->type, "%s", pb_json_get_text(from, "type"));
        (void)snprintf(files[i].name, sizeof files->name, "%s", name ? name : "");
        (void)snprintf(files[i].file, sizeof files->file, "%s", file_of(from));
        (void)snprintf(files[i].media_type, sizeof files->media_type, "%s",
                       pb_json_get_text(from, "media_type"));
        (void)snprintf(files[i].checksum, sizeof files->checksum, "%s", checksum ? checksum : "");
    }
    return files;
}
