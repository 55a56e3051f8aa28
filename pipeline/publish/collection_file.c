/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/collection_file.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/publish/publish_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_text(int fd, size_t max_bytes, char **out_text, size_t *out_bytes,
                     unsigned *out_mode)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max_bytes)
        return -EINVAL;
    char *text = malloc((size_t)st.st_size + 1);
    if (text == NULL)
        return -ENOMEM;
    ssize_t n = read(fd, text, (size_t)st.st_size);
    if (n < 0) {
        free(text);
        return -errno;
    }
    *out_text = text;
    *out_bytes = (size_t)n;
    *out_mode = st.st_mode & 0777u;
    return 0;
}

int pb_collection_file_read(int products_fd, const char *name, size_t max_bytes,
                            struct pb_json_value **out_root, unsigned *out_mode)
{
    char *text = NULL;
    size_t bytes = 0;
    int fd = openat(products_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int rc = read_text(fd, max_bytes, &text, &bytes, out_mode);
    (void)close(fd);
    rc = rc ? rc : pb_json_parse(text, bytes, max_bytes, out_root);
    free(text);
    return rc;
}

static int write_file(int fd, const char *text, size_t bytes, unsigned mode)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write(fd, text + at, bytes - at);
        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        at += (size_t)n;
    }
    return (mode != 0 && fchmod(fd, mode) != 0) || fsync(fd) != 0 ? -errno : 0;
}

int pb_collection_file_stage(struct pb_publish_lock *lock, const char *name, struct pb_json *json,
                             unsigned mode)
{
    size_t bytes = 0;
    int fd = -1;
    const char *text = pb_json_document(json, &bytes);
    int rc = text != NULL ? pb_publish_lock_file(lock, name, 0644, &fd) : -ENOMEM;
    if (rc == 0) {
        rc = write_file(fd, text, bytes, mode);
        (void)close(fd);
    }
    pb_json_destroy(json);
    return rc;
}
