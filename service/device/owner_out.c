/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/owner_out.h"

#include "config/base/json_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int pb_owner_out_init(struct pb_owner_out *out, int fd)
{
    int flags = fcntl(fd, F_GETFL);
    *out = (struct pb_owner_out){.fd = fd, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    (void)pthread_mutex_init(&out->lock, NULL);
    if (out->wake < 0 || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

static bool is_pending(const struct pb_owner_out *out)
{
    return out->differs || out->at < out->n;
}

static bool make_line(struct pb_owner_out *out)
{
    struct pb_json *json = pb_owner_load_print(&out->load);
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    bool made = text != NULL && bytes < sizeof out->line;
    if (made) {
        (void)memcpy(out->line, text, bytes);
        out->line[bytes] = '\n';
        out->at = 0;
        out->n = bytes + 1;
        out->differs = false;
    }
    pb_json_destroy(json);
    return made;
}

/* Writes as much as the parent accepts. A started line is completed before a newer state is
 * written. */
static bool write_some(struct pb_owner_out *out)
{
    while (is_pending(out)) {
        if (out->at == out->n && !make_line(out))
            return true; /* out of memory: written at the next change */
        ssize_t n = write(out->fd, out->line + out->at, out->n - out->at);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        out->at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool pb_owner_out_add(struct pb_owner_out *out, int sessions, int64_t bytes)
{
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&out->lock);
    out->load.sessions += sessions;
    out->load.bytes += bytes;
    out->differs = true;
    bool there = write_some(out);
    if (is_pending(out)) /* the polling thread begins to wait until the parent reads */
        (void)!write(out->wake, &one, sizeof one);
    (void)pthread_mutex_unlock(&out->lock);
    return there;
}

struct pb_owner_load pb_owner_out_load(struct pb_owner_out *out)
{
    (void)pthread_mutex_lock(&out->lock);
    struct pb_owner_load load = out->load;
    (void)pthread_mutex_unlock(&out->lock);
    return load;
}

void pb_owner_out_watch(struct pb_owner_out *out, struct pollfd watched[PB_OWNER_OUT_WATCHED])
{
    (void)pthread_mutex_lock(&out->lock);
    watched[0] = (struct pollfd){.fd = out->wake, .events = POLLIN};
    watched[1] = (struct pollfd){.fd = is_pending(out) ? out->fd : -1, .events = POLLOUT};
    (void)pthread_mutex_unlock(&out->lock);
}

bool pb_owner_out_go_on(struct pb_owner_out *out, const struct pollfd watched[PB_OWNER_OUT_WATCHED])
{
    uint64_t count;
    bool there = true;
    if (watched[0].revents != 0)
        (void)!read(out->wake, &count, sizeof count);
    (void)pthread_mutex_lock(&out->lock);
    if (watched[1].revents != 0)
        there = write_some(out);
    (void)pthread_mutex_unlock(&out->lock);
    return there;
}
