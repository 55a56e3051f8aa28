/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/tuning.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_PATH "/var/cache/pushbroom/tuning.json"

enum { VERSION = 1, FILE_MAX = 256 * 1024, GPUS_MAX = 64 };

static const char *const results_words[] = {[WIC_PUSH_BULK] = "bulk", [WIC_PUSH_STORES] = "stores"};

/* --- rows
 * ----------------------------------------------------------------------------------------- */

/* An octave of the ratio outweighs any difference of size. */
#define RATIO_WEIGHT 100

static double octaves(double a, double b)
{
    return fabs(log2(a / b));
}

static double at_least_one(uint64_t bytes)
{
    return bytes > 0 ? (double)bytes : 1;
}

static double distance(const struct pb_tuning_row *row, double in, double out)
{
    double row_in = at_least_one(row->in_bytes), row_out = at_least_one(row->out_bytes);
    return RATIO_WEIGHT * octaves(row_in / row_out, in / out) + octaves(row_in, in);
}

const struct pb_tuning_row *pb_tuning_find(const struct pb_tuning *tuning, uint64_t in_bytes,
                                           uint64_t out_bytes)
{
    const struct pb_tuning_row *best = NULL;
    double in = at_least_one(in_bytes), out = at_least_one(out_bytes), least = 0;
    for (uint32_t i = 0; i < tuning->n_rows; i++) {
        double d = distance(&tuning->rows[i], in, out);
        if (best == NULL || d < least) {
            best = &tuning->rows[i];
            least = d;
        }
    }
    return best;
}

/* --- path ----------------------------------------------------------------------------------- */

void pb_tuning_path(char out[PB_TUNING_PATH_BYTES])
{
    const char *named = getenv("PUSHBROOM_TUNING"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int n = 0;
    if (named != NULL && named[0] != '\0')
        n = snprintf(out, PB_TUNING_PATH_BYTES, "%s", named);
    else if (geteuid() == 0)
        n = snprintf(out, PB_TUNING_PATH_BYTES, SYSTEM_PATH);
    else if (cache != NULL && cache[0] == '/')
        n = snprintf(out, PB_TUNING_PATH_BYTES, "%s/pushbroom/tuning.json", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, PB_TUNING_PATH_BYTES, "%s/.cache/pushbroom/tuning.json", home);
    if (n <= 0 || n >= PB_TUNING_PATH_BYTES)
        out[0] = '\0';
}

/* --- reading -------------------------------------------------------------------------------- */

static ssize_t read_all(int fd, char *text)
{
    size_t bytes = 0;
    ssize_t step = 1;
    while (step > 0 && bytes <= FILE_MAX) {
        step = read(fd, text + bytes, FILE_MAX + 1 - bytes);
        if (step > 0)
            bytes += (size_t)step;
        else if (step < 0 && errno == EINTR)
            step = 1;
    }
    return step < 0 ? -errno : (ssize_t)bytes;
}

/* Reads the file; the caller frees *out_text. -ENOENT without *err. */
static int load(const char *path, struct pb_err *err, char **out_text, size_t *out_bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return -ENOENT;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        int rc = pb_fail(err, PB_E_SYSTEM, "%s cannot be read: %s", path,
                         fd < 0 ? strerror(errno) : "it is no regular file");
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    char *text = malloc(FILE_MAX + 1);
    ssize_t bytes = text != NULL ? read_all(fd, text) : -ENOMEM;
    (void)close(fd);
    if (bytes < 0 || bytes > FILE_MAX) {
        free(text);
        return pb_fail(err, PB_E_SYSTEM, "%s cannot be read: %s", path,
                       bytes < 0 ? strerror((int)-bytes) : "it is too large");
    }
    *out_text = text;
    *out_bytes = (size_t)bytes;
    return 0;
}

/* Returns true if pushbroom wrote the file, even if it was damaged since. */
static bool is_ours(const char *text, size_t bytes)
{
    static const char key[] = "\"pushbroom_tuning\"";
    size_t at = bytes > 0 && text[0] == '{' ? 1 : bytes;
    while (at < bytes && strchr(" \t\r\n", text[at]) != NULL)
        at++;
    return bytes - at >= sizeof key - 1 && memcmp(text + at, key, sizeof key - 1) == 0;
}

/* Returns 0, -EPROTO: of another version; -EINVAL: damaged. */
static int parse(const char *text, size_t bytes, struct pb_json_value **out_root)
{
    struct pb_json_value *root = NULL;
    int64_t version = 0;
    int rc = is_ours(text, bytes) ? pb_json_parse(text, bytes, FILE_MAX, &root) : -EINVAL;
    if (rc == 0 && pb_json_get_int(root, "pushbroom_tuning", &version) != 0)
        rc = -EINVAL;
    if (rc == 0 && version != VERSION)
        rc = -EPROTO;
    if (rc == 0 && !pb_json_is_array(pb_json_get(root, "gpus", NULL)))
        rc = -EINVAL;
    if (rc == 0)
        *out_root = root;
    else
        pb_json_release(root);
    return rc;
}

static bool is_named(const struct pb_json_value *gpu, const char *name, const char *driver)
{
    const char *own = pb_json_get_text(gpu, "name"), *of = pb_json_get_text(gpu, "driver");
    return own != NULL && of != NULL && strcmp(own, name) == 0 && strcmp(of, driver) == 0;
}

/* Reads a number from 0 to `most`. */
static bool take(const struct pb_json_value *row, const char *key, int64_t most, uint64_t *out)
{
    int64_t value;
    if (pb_json_get_int(row, key, &value) != 0 || value < 0 || value > most)
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool take_word(const struct pb_json_value *row, const char *key, uint32_t *out)
{
    uint64_t value;
    bool found = take(row, key, UINT32_MAX, &value);
    if (found)
        *out = (uint32_t)value;
    return found;
}

static bool take_results(const struct pb_json_value *row, enum wic_results *out)
{
    const char *word = pb_json_get_text(row, "results");
    for (int i = 0; word != NULL && i < 2; i++)
        if (strcmp(word, results_words[i]) == 0) {
            *out = (enum wic_results)i;
            return true;
        }
    return false;
}

static bool take_row(const struct pb_json_value *from, struct pb_tuning_row *row)
{
    const int64_t most = INT64_C(1) << 50;
    return take(from, "tile_bytes", INT32_MAX, &row->in_bytes) && row->in_bytes > 0 &&
           take(from, "result_bytes", INT32_MAX, &row->out_bytes) &&
           take(from, "bytes_per_s", most, &row->rate) &&
           take(from, "copies_bytes_per_s", most, &row->copies) &&
           take_word(from, "piece", &row->plan.piece) &&
           take_word(from, "depth", &row->plan.depth) &&
           take_word(from, "blocks_percent", &row->plan.blocks) &&
           take_word(from, "warps", &row->plan.warps) &&
           take_word(from, "link_bytes", &row->plan.link_bytes) &&
           take_word(from, "engine_backlog", &row->plan.backlog) &&
           take_results(from, &row->plan.results) && wic_transfer_row_is_valid(&row->plan);
}

static bool take_gpu(const struct pb_json_value *gpu, struct pb_tuning *out)
{
    struct pb_tuning found = {0};
    const char *date = pb_json_get_text(gpu, "measured");
    const struct pb_json_value *rows = pb_json_get(gpu, "rows", NULL);
    size_t n = pb_json_count(rows);
    if (date == NULL || strlen(date) >= sizeof found.date || n == 0 || n > PB_TUNING_ROWS_MAX)
        return false;
    (void)snprintf(found.date, sizeof found.date, "%s", date);
    for (size_t i = 0; i < n; i++)
        if (!take_row(pb_json_at(rows, i), &found.rows[found.n_rows++]))
            return false;
    *out = found;
    return true;
}

static int find_gpu(const struct pb_json_value *gpus, const char *gpu, const char *driver,
                    struct pb_tuning *out)
{
    for (size_t i = 0; i < pb_json_count(gpus); i++)
        if (is_named(pb_json_at(gpus, i), gpu, driver))
            return take_gpu(pb_json_at(gpus, i), out) ? 0 : -EINVAL;
    return -ENOENT;
}

int pb_tuning_read(const char *path, const char *gpu, const char *driver, struct pb_err *err,
                   struct pb_tuning *out_tuning)
{
    struct pb_json_value *root = NULL;
    char *text = NULL;
    size_t bytes = 0;
    int rc = load(path, err, &text, &bytes);
    if (rc != 0)
        return rc;
    rc = parse(text, bytes, &root);
    if (rc == 0)
        rc = find_gpu(pb_json_get(root, "gpus", NULL), gpu, driver, out_tuning);
    pb_json_release(root);
    free(text);
    if (rc == 0 || rc == -ENOENT)
        return rc;
    return pb_fail(err, PB_E_SYSTEM, "%s is %s", path,
                   rc == -EPROTO ? "of another version of pushbroom" : "damaged");
}

void pb_tuning_load(const char *gpu, const char *driver, struct pb_tuning *out_tuning)
{
    char own[PB_TUNING_PATH_BYTES];
    struct pb_err err = {0};
    const char *named = getenv("PUSHBROOM_TUNING");
    *out_tuning = (struct pb_tuning){0};
    pb_tuning_path(own);
    int rc = own[0] != '\0' ? pb_tuning_read(own, gpu, driver, &err, out_tuning) : -ENOENT;
    if (rc != 0 && (named == NULL || named[0] == '\0') && strcmp(own, SYSTEM_PATH) != 0)
        (void)pb_tuning_read(SYSTEM_PATH, gpu, driver, &err, out_tuning);
    (void)snprintf(out_tuning->why, sizeof out_tuning->why, "%.159s", err.msg);
}

/* --- writing -------------------------------------------------------------------------------- */

static void print_row(struct pb_json *json, const struct pb_tuning_row *row)
{
    pb_json_object(json, NULL);
    pb_json_int(json, "tile_bytes", (int64_t)row->in_bytes);
    pb_json_int(json, "result_bytes", (int64_t)row->out_bytes);
    pb_json_int(json, "piece", row->plan.piece);
    pb_json_int(json, "depth", row->plan.depth);
    pb_json_int(json, "blocks_percent", row->plan.blocks);
    pb_json_int(json, "warps", row->plan.warps);
    pb_json_string(json, "results", results_words[row->plan.results]);
    pb_json_int(json, "link_bytes", row->plan.link_bytes);
    pb_json_int(json, "engine_backlog", row->plan.backlog);
    pb_json_int(json, "bytes_per_s", (int64_t)row->rate);
    pb_json_int(json, "copies_bytes_per_s", (int64_t)row->copies);
    pb_json_end(json);
}

static void print_gpu(struct pb_json *json, const char *name, const char *driver,
                      const struct pb_tuning *tuning)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "name", name);
    pb_json_string(json, "driver", driver);
    pb_json_string(json, "measured", tuning->date);
    pb_json_array(json, "rows");
    for (uint32_t i = 0; i < tuning->n_rows; i++)
        print_row(json, &tuning->rows[i]);
    pb_json_end(json);
    pb_json_end(json);
}

/* Writes the measurements of the other GPUs; those of a replaced driver are dropped. */
static void print_others(struct pb_json *json, const struct pb_json_value *root, const char *gpu)
{
    const struct pb_json_value *gpus = pb_json_get(root, "gpus", NULL);
    for (size_t i = 0; i < pb_json_count(gpus) && i < GPUS_MAX; i++) {
        const struct pb_json_value *other = pb_json_at(gpus, i);
        const char *name = pb_json_get_text(other, "name");
        const char *driver = pb_json_get_text(other, "driver");
        struct pb_tuning tuning;
        if (name != NULL && driver != NULL && strcmp(name, gpu) != 0 && take_gpu(other, &tuning))
            print_gpu(json, name, driver, &tuning);
    }
}

/* Reads the existing file if it may be replaced; *out_root NULL = nothing to preserve. */
static int load_old(const char *path, struct pb_err *err, struct pb_json_value **out_root)
{
    char *text = NULL;
    size_t bytes = 0;
    int rc = load(path, err, &text, &bytes);
    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    if (!is_ours(text, bytes))
        rc = pb_fail(err, PB_E_OUTPUT_EXISTS,
                     "%s was not written by pushbroom; move it away, or name another file in "
                     "PUSHBROOM_TUNING",
                     path);
    else
        (void)parse(text, bytes, out_root);
    free(text);
    return rc;
}

char *pb_tuning_text(const char *path, const char *gpu, const char *driver,
                     const struct pb_tuning *tuning, struct pb_err *err)
{
    struct pb_json_value *root = NULL;
    size_t bytes = 0;
    if (load_old(path, err, &root) != 0)
        return NULL;
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_int(json, "pushbroom_tuning", VERSION);
    pb_json_array(json, "gpus");
    print_gpu(json, gpu, driver, tuning);
    print_others(json, root, gpu);
    pb_json_end(json);
    pb_json_end(json);
    const char *made = pb_json_text(json, &bytes);
    char *text = made != NULL ? malloc(bytes + 2) : NULL;
    if (text != NULL)
        (void)snprintf(text, bytes + 2, "%s\n", made);
    else
        (void)pb_fail(err, PB_E_MEMORY, "out of memory for %s", path);
    pb_json_destroy(json);
    pb_json_release(root);
    return text;
}
