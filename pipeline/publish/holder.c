/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/holder.h"

#include "pipeline/io/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HEX    "0123456789abcdef"
#define DIGITS "0123456789"

/* Reads the start of a file of /proc or /etc. *out is "" if it cannot be read. */
static size_t read_start(const char *path, char *out, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, out, bytes - 1);
    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The host name is part of it, because copies of a virtual machine or an image may have the same
 * machine-id. */
void pb_holder_node(char out[PB_HOLDER_NODE_BYTES])
{
    char text[128], hex[65] = "000000000000";
    struct utsname names = {.nodename = ""};
    size_t n = read_start("/etc/machine-id", text, sizeof text);
    (void)uname(&names);
    struct pb_sha256 *sum = pb_sha256_create();
    pb_sha256_add(sum, text, n);
    pb_sha256_add(sum, names.nodename, strlen(names.nodename));
    (void)pb_sha256_hex(sum, hex);
    pb_sha256_destroy(sum);
    (void)snprintf(out, PB_HOLDER_NODE_BYTES, "%.12s", hex);
}

bool pb_holder_start(long pid, uint64_t *out_start)
{
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    (void)read_start(path, text, sizeof text);
    char *field = strrchr(text, ')'); /* the name before it may contain any character */
    if (field == NULL || field[1] != ' ' || field[2] == 'Z' || field[2] == 'X')
        return false;
    for (int i = 0; field != NULL && i < 20; i++) /* skips from the state, field 3, to field 22 */
        field = strchr(field + 1, ' ');
    if (field == NULL)
        return false;
    *out_start = strtoull(field + 1, NULL, 10);
    return true;
}

void pb_holder_make(struct pb_holder *out)
{
    static _Atomic unsigned serial;
    *out = (struct pb_holder){.pid = (long)getpid(), .n = atomic_fetch_add(&serial, 1)};
    pb_holder_node(out->node);
    (void)pb_holder_start(out->pid, &out->start);
}

void pb_holder_print(const struct pb_holder *holder, char out[PB_HOLDER_BYTES])
{
    (void)snprintf(out, PB_HOLDER_BYTES, "%s.%ld-%" PRIu64 "-%u", holder->node, holder->pid,
                   holder->start, holder->n);
}

/* Parses 1 to 19 digits and the character after them. */
static bool take_number(const char **text, char end, uint64_t *out)
{
    size_t n = strspn(*text, DIGITS);
    if (n == 0 || n > 19 || (*text)[n] != end)
        return false;
    *out = strtoull(*text, NULL, 10);
    *text += n + (end != '\0');
    return true;
}

bool pb_holder_parse(const char *text, struct pb_holder *out)
{
    uint64_t pid, start, n;
    const char *at = text + PB_HOLDER_NODE_BYTES;
    if (strspn(text, HEX) != PB_HOLDER_NODE_BYTES - 1 || at[-1] != '.' ||
        !take_number(&at, '-', &pid) || !take_number(&at, '-', &start) ||
        !take_number(&at, '\0', &n) || pid > INT32_MAX || n > UINT32_MAX)
        return false;
    *out = (struct pb_holder){.pid = (long)pid, .start = start, .n = (unsigned)n};
    (void)memcpy(out->node, text, PB_HOLDER_NODE_BYTES - 1);
    return true;
}

bool pb_holder_is_here(const struct pb_holder *holder)
{
    char node[PB_HOLDER_NODE_BYTES];
    pb_holder_node(node);
    return strcmp(node, holder->node) == 0;
}

bool pb_holder_is_same_process(const struct pb_holder *a, const struct pb_holder *b)
{
    return a->pid == b->pid && a->start == b->start && strcmp(a->node, b->node) == 0;
}

bool pb_holder_is_dead_here(const struct pb_holder *holder)
{
    uint64_t start;
    if (!pb_holder_is_here(holder))
        return false;
    return holder->pid == (long)getpid() || !pb_holder_start(holder->pid, &start) ||
           start != holder->start;
}

int pb_holder_lock_file(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}
