/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The checksum file is untrusted: its size is limited, its names only choose among the files of
 * the input, and no link is followed. */
#include "service/worker/checksum.h"

#include "config/base/base_name.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/sha256.h"
#include "service/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1024 * 1024)
#define CHUNK          (1024 * 1024)
#define HEX            "0123456789abcdefABCDEF"

/* A line of the checksum file, as parts of its text. */
struct line {
    char hex[PB_DIGEST_HEX_BYTES];
    enum pb_digest digest;
    const char *name; /* without "./"; "" if absent */
};

struct verify {
    const struct pb_checksum_job *job;
    uint64_t bytes; /* count of bytes read */
    char *buffer;
    bool is_folder;
    struct line *line;
    size_t n_lines;
};

static const char *const words[] = {
    [PB_DIGEST_MD5] = "MD5", [PB_DIGEST_SHA256] = "SHA-256", [PB_DIGEST_SHA512] = "SHA-512"};

static int fail_line(const struct pb_checksum_job *job, const char *text, struct pb_err *err)
{
    return pb_fail(err, PB_E_INPUT_CHECKSUM,
                   "%s: '%.60s' is no line with an MD5, SHA-256 or SHA-512 checksum",
                   pb_base_name(job->file), text);
}

static bool find_digest(size_t digits, enum pb_digest *out)
{
    *out = digits == 32 ? PB_DIGEST_MD5 : digits == 64 ? PB_DIGEST_SHA256 : PB_DIGEST_SHA512;
    return digits == 32 || digits == 64 || digits == 128;
}

/* Parses "MD5 (name) = hex". Terminates the name in the text. */
static bool read_bsd(char *text, struct line *out)
{
    static const struct {
        const char *word;
        size_t digits;
    } forms[] = {{"MD5 (", 32}, {"SHA256 (", 64}, {"SHA512 (", 128}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t n = strlen(forms[i].word);
        char *end = NULL;
        if (strncasecmp(text, forms[i].word, n) != 0)
            continue;
        for (char *at = text + n; (at = strstr(at, ") = ")) != NULL; at += 4)
            end = at; /* the last one, because a name may contain one as well */
        if (end == NULL || strspn(end + 4, HEX) != forms[i].digits ||
            end[4 + forms[i].digits] != '\0')
            return false;
        (void)find_digest(forms[i].digits, &out->digest);
        (void)snprintf(out->hex, sizeof out->hex, "%s", end + 4);
        *end = '\0';
        out->name = text + n;
        return true;
    }
    return false;
}

/* Parses "hex  name", "hex *name" or "hex". */
static bool read_gnu(const char *text, struct line *out)
{
    size_t digits = strspn(text, HEX);
    const char *name = text + digits;
    if (!find_digest(digits, &out->digest))
        return false;
    if (name[0] == ' ' && (name[1] == ' ' || name[1] == '*'))
        name += 2;
    else if (name[0] != '\0')
        return false;
    (void)snprintf(out->hex, sizeof out->hex, "%.*s", (int)digits, text);
    out->name = name;
    return true;
}

static int sum_of(struct verify *v, int fd, const char *path, enum pb_digest digest,
                  char out_hex[PB_DIGEST_HEX_BYTES], struct pb_err *err)
{
    ssize_t n = 0;
    struct pb_sha256 *sum = pb_digest_create(digest);
    while ((n = read(fd, v->buffer, CHUNK)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        pb_sha256_add(sum, v->buffer, (size_t)n);
        v->bytes += (uint64_t)n;
        if (v->job->alive != NULL)
            v->job->alive(v->job->user, v->bytes);
    }
    int rc = n < 0 ? pb_io_fail(err, errno, "cannot read", path) : 0;
    if (rc == 0 && pb_digest_hex(sum, out_hex) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_sha256_destroy(sum);
    return rc;
}

static int compare(struct verify *v, const struct line *line, int fd, const char *name,
                   struct pb_err *err)
{
    char hex[PB_DIGEST_HEX_BYTES];
    int rc = sum_of(v, fd, name, line->digest, hex, err);
    if (rc != 0 || strcasecmp(hex, line->hex) == 0)
        return rc;
    return pb_fail(err, PB_E_INPUT_CHECKSUM,
                   "%.100s has the %s checksum %.12s..., and %.80s has %.12s...", name,
                   words[line->digest], hex, pb_base_name(v->job->file), line->hex);
}

/* Compares a file of the folder. */
static int compare_in_folder(struct verify *v, const struct line *line, struct pb_err *err)
{
    char folder[PB_FILES_PATH_BYTES];
    struct stat st;
    const char *path = line->name, *base = pb_base_name(path);
    bool fits =
        base[0] != '\0' && path[0] != '/' &&
        snprintf(folder, sizeof folder, "%.*s", (int)(base - path), path) < (int)sizeof folder;
    int directory = fits ? pb_files_open_below(v->job->input, folder) : -ENOENT;
    int fd = directory < 0
                 ? directory
                 : openat(directory, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    int rc = is_file ? compare(v, line, fd, path, err)
                     : pb_fail(err, PB_E_INPUT_CHECKSUM,
                               "%.80s has a line for '%.100s', which the scene does not have",
                               pb_base_name(v->job->file), line->name);
    if (fd >= 0)
        (void)close(fd);
    if (directory >= 0)
        (void)close(directory);
    return rc;
}

static int compare_file(struct verify *v, const struct line *line, struct pb_err *err)
{
    int fd = open(v->job->input, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return pb_io_fail(err, errno, "cannot open", v->job->input);
    int rc = compare(v, line, fd, v->job->name, err);
    (void)close(fd);
    return rc;
}

/* --- the lines ------------------------------------------------------------------------------- */

static int add_line(struct verify *v, char *text, struct pb_err *err)
{
    struct line line;
    text += text[0] == '\\'; /* md5sum writes one before a line with an escaped name */
    if (!read_bsd(text, &line) && !read_gnu(text, &line))
        return fail_line(v->job, text, err);
    while (strncmp(line.name, "./", 2) == 0)
        line.name += 2;
    const size_t n = strlen(v->job->name);
    if (v->is_folder && strncmp(line.name, v->job->name, n) == 0 && line.name[n] == '/')
        line.name += n + 1; /* the name begins with the folder's own name */
    if ((v->n_lines & (v->n_lines - 1)) == 0) {
        struct line *more = realloc(v->line, (v->n_lines ? 2 * v->n_lines : 1) * sizeof *more);
        if (more == NULL)
            return pb_fail(err, PB_E_MEMORY, "out of memory");
        v->line = more;
    }
    v->line[v->n_lines++] = line;
    return 0;
}

/* Keeps the lines of an input that is a file: lines without a name and lines with its name; lines
 * with its name in a directory only if no line has the name alone. A single line is the input's. */
static int choose_lines(struct verify *v, struct pb_err *err)
{
    const char *name = v->job->name;
    bool exact = false;
    size_t n = 0;
    for (size_t i = 0; i < v->n_lines; i++)
        exact = exact || strcmp(v->line[i].name, name) == 0;
    for (size_t i = 0; i < v->n_lines; i++) {
        const char *of = v->line[i].name;
        if (v->n_lines == 1 || of[0] == '\0' || strcmp(exact ? of : pb_base_name(of), name) == 0) {
            v->line[n] = v->line[i];
            v->line[n++].name = name;
        }
    }
    v->n_lines = n;
    return n > 0 ? 0
                 : pb_fail(err, PB_E_INPUT_CHECKSUM, "%.80s has no line for %.100s",
                           pb_base_name(v->job->file), name);
}

static int by_file(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    order = order ? order : (int)left->digest - (int)right->digest;
    return order ? order : strcasecmp(left->hex, right->hex);
}

/* Sorts the lines and fails if two of them contradict each other. */
static int check_contradictions(struct verify *v, struct pb_err *err)
{
    qsort(v->line, v->n_lines, sizeof *v->line, by_file);
    for (size_t i = 1; i < v->n_lines; i++) {
        const struct line *before = &v->line[i - 1], *line = &v->line[i];
        if (strcmp(before->name, line->name) == 0 && before->digest == line->digest &&
            strcasecmp(before->hex, line->hex) != 0)
            return pb_fail(err, PB_E_INPUT_CHECKSUM,
                           "%.80s contradicts itself: %.100s has two %s checksums in it, "
                           "%.12s... and %.12s...",
                           pb_base_name(v->job->file), line->name, words[line->digest], before->hex,
                           line->hex);
    }
    return 0;
}

static int compare_lines(struct verify *v, struct pb_err *err)
{
    int rc = v->is_folder ? 0 : choose_lines(v, err);
    rc = rc ? rc : check_contradictions(v, err);
    for (size_t i = 0; rc == 0 && i < v->n_lines; i++)
        if (i == 0 || by_file(&v->line[i - 1], &v->line[i]) != 0)
            rc = v->is_folder ? compare_in_folder(v, &v->line[i], err)
                              : compare_file(v, &v->line[i], err);
    return rc;
}

/* Reads the file; the caller must free the text. */
static int read_file(const struct pb_checksum_job *job, char **out_text, struct pb_err *err)
{
    struct stat st;
    if (job->file[0] == '\0')
        return pb_fail(err, PB_E_INPUT_CHECKSUM, "the checksum file of %.100s is missing",
                       job->name);
    int fd = open(job->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error = errno;
    char *text = calloc(1, FILE_BYTES_MAX + 1);
    int rc = text == NULL ? pb_fail(err, PB_E_MEMORY, "out of memory") : 0;
    if (rc == 0 && (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)))
        rc = pb_fail(err, PB_E_INPUT_CHECKSUM, "%s cannot be read: %s", job->file,
                     fd < 0 ? strerror(error) : "it is no plain file");
    ssize_t n = rc == 0 ? pread(fd, text, FILE_BYTES_MAX + 1, 0) : 0;
    if (n < 0)
        rc = pb_io_fail(err, errno, "cannot read", job->file);
    else if (n > FILE_BYTES_MAX || (rc == 0 && memchr(text, 0, (size_t)n) != NULL))
        rc = pb_fail(err, PB_E_INPUT_CHECKSUM, "%s is no text with checksums", job->file);
    if (fd >= 0)
        (void)close(fd);
    if (rc == 0)
        *out_text = text;
    else
        free(text);
    return rc;
}

int pb_checksum_verify(const struct pb_checksum_job *job, struct pb_err *err)
{
    struct stat st;
    struct verify v = {.job = job};
    char *text = NULL, *save = NULL;
    int rc = read_file(job, &text, err);
    if (rc != 0)
        return rc;
    v.buffer = malloc(CHUNK);
    if (v.buffer == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    v.is_folder = stat(job->input, &st) == 0 && S_ISDIR(st.st_mode);
    for (char *line = strtok_r(text, "\r\n", &save); rc == 0 && line != NULL;
         line = strtok_r(NULL, "\r\n", &save))
        if (line[0] != '#')
            rc = add_line(&v, line, err);
    if (rc == 0 && v.n_lines == 0)
        rc = pb_fail(err, PB_E_INPUT_CHECKSUM, "%s has no checksum in it", job->file);
    rc = rc ? rc : compare_lines(&v, err);
    free(v.line);
    free(v.buffer);
    free(text);
    return rc;
}
