/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/transfer.h"

#include "config/base/json_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, LINE_MAX_BYTES = 4096 };

bool pb_transfer_line(int socket, struct pb_json *json)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    const bool sent = text != NULL && pb_line_send(socket, text, bytes, NULL, 0);
    pb_json_destroy(json);
    return sent;
}

char *pb_transfer_next(struct pb_line_reader *reader, size_t *out_bytes)
{
    char *line;
    while ((line = pb_line_reader_next(reader, out_bytes)) == NULL)
        if (!pb_line_reader_fill(reader))
            return NULL;
    return line;
}

static bool send_sum(int socket, const char *sum)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", "sum");
    pb_json_string(json, "sum", sum);
    pb_json_end(json);
    return pb_transfer_line(socket, json);
}

static void tell(const struct pb_transfer_wait *wait, int64_t bytes)
{
    if (wait != NULL && wait->alive != NULL)
        wait->alive(wait->user, (uint64_t)bytes);
}

static ssize_t read_some(int file, void *to, size_t bytes)
{
    ssize_t n;
    do
        n = read(file, to, bytes);
    while (n < 0 && errno == EINTR);
    return n;
}

int pb_transfer_send(int socket, struct pb_json *header, int file, int64_t bytes,
                     enum pb_checksum kind, const struct pb_transfer_wait *wait)
{
    char chunk[CHUNK], text[PB_CHECKSUM_TEXT_BYTES];
    struct pb_sum *sum = pb_sum_create(kind);
    int rc = sum != NULL ? 0 : -ENOMEM;
    if (!pb_transfer_line(socket, header))
        rc = rc ? rc : -EPIPE;
    for (int64_t done = 0; rc == 0 && done < bytes;) {
        const size_t most = bytes - done < CHUNK ? (size_t)(bytes - done) : CHUNK;
        const ssize_t n = read_some(file, chunk, most);
        if (n <= 0) {
            rc = n < 0 ? -errno : -ESTALE;
        } else if (!pb_line_send_bytes(socket, chunk, (size_t)n)) {
            rc = -EPIPE;
        } else {
            pb_sum_add(sum, chunk, (size_t)n);
            done += n;
            tell(wait, done);
        }
    }
    rc = rc ? rc : pb_sum_text(sum, text);
    if (rc == 0 && !send_sum(socket, text))
        rc = -EPIPE;
    pb_sum_destroy(sum);
    return rc;
}

static int write_all(int file, const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = write(file, from + at, bytes - at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Compares with the line that follows the bytes. */
static int check_sum(struct pb_line_reader *reader, const char *sum)
{
    struct pb_json_value *value = NULL;
    size_t bytes = 0;
    const char *line = pb_transfer_next(reader, &bytes);
    if (line == NULL)
        return -EPIPE;
    int rc = pb_json_parse(line, bytes, LINE_MAX_BYTES, &value);
    const char *sent = rc == 0 ? pb_json_get_text(value, "sum") : NULL;
    if (rc != -ENOMEM)
        rc = sent != NULL && strcmp(sent, sum) == 0 ? 0 : -EBADMSG;
    pb_json_release(value);
    return rc;
}

int pb_transfer_receive(struct pb_line_reader *reader, int file, int64_t bytes,
                        enum pb_checksum kind, const struct pb_transfer_wait *wait,
                        char out_sum[PB_CHECKSUM_TEXT_BYTES])
{
    char chunk[CHUNK];
    struct pb_sum *sum = pb_sum_create(kind);
    int rc = sum != NULL ? 0 : -ENOMEM;
    for (int64_t done = 0; rc == 0 && done < bytes;) {
        const size_t n = bytes - done < CHUNK ? (size_t)(bytes - done) : CHUNK;
        if (!pb_line_reader_bytes(reader, chunk, n)) {
            rc = -EPIPE;
            break;
        }
        pb_sum_add(sum, chunk, n);
        rc = write_all(file, chunk, n);
        done += (int64_t)n;
        tell(wait, done);
    }
    rc = rc ? rc : pb_sum_text(sum, out_sum);
    rc = rc ? rc : check_sum(reader, out_sum);
    pb_sum_destroy(sum);
    return rc;
}
