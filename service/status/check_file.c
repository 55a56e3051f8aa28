/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs in a child of a process that may have threads: no allocation, no locks. */
#include "service/status/checker.h"
#include "service/base/passed_fd.h"

#include "pipeline/io/file_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTOR_WAIT_MS 3000

static void say(struct pb_check_result *out, enum pb_code code, const char *path, const char *what)
{
    out->code = code;
    (void)snprintf(out->text, sizeof out->text, "%.300s: %s", path, what);
}

/* Receives the file that the client opened, or a negative errno. */
static int receive_file(int connection)
{
    char byte;
    int fd;
    struct pollfd wait = {.fd = connection, .events = POLLIN};
    if (poll(&wait, 1, DESCRIPTOR_WAIT_MS) <= 0)
        return -ETIMEDOUT;
    if (pb_passed_fd_receive(connection, &byte, 1, &fd, MSG_DONTWAIT) <= 0)
        return -ENOMSG;
    return fd >= 0 ? fd : -ENOMSG;
}

/* Returns true if the descriptor proves that its owner can read the file: opening with O_PATH
 * needs no such right. */
static bool is_open_for_reading(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_PATH) == 0 &&
           ((flags & O_ACCMODE) == O_RDONLY || (flags & O_ACCMODE) == O_RDWR);
}

struct hidden {
    const char *directory; /* path that ends with a slash */
    const char *text;
};

static bool is_below(const char *path, const char *directory)
{
    return strncmp(path, directory, strlen(directory)) == 0;
}

/* Explains why this process does not find a file that the client has opened: the mounts of the
 * service's unit, or permissions. */
static void explain(const char *path, int error, struct pb_check_result *out)
{
    static const struct hidden homes[] = {
        {"/home/", "the service cannot see /home (ProtectHome= of its unit)"},
        {"/root/", "the service cannot see /root (ProtectHome= of its unit)"},
        {"/run/user/", "the service cannot see /run/user (ProtectHome= of its unit)"}};
    static const struct hidden temporary[] = {
        {"/tmp/", "the service has a /tmp of its own (PrivateTmp= of its unit)"},
        {"/var/tmp/", "the service has a /var/tmp of its own (PrivateTmp= of its unit)"}};
    char text[160];
    struct stat st;
    (void)snprintf(text, sizeof text,
                   error == ENOENT ? "the service does not find it: its unit or a container hides "
                                     "this place"
                                   : "the service (user id %d) has no right to read it",
                   (int)geteuid());
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        const char *directory = homes[i].directory;
        if (is_below(path, directory) && /* systemd puts a directory of mode 000 at that path */
            (stat(directory, &st) != 0 || error == ENOENT || (st.st_mode & 0111) == 0))
            (void)snprintf(text, sizeof text, "%s", homes[i].text);
    }
    for (size_t i = 0; i < sizeof temporary / sizeof *temporary; i++)
        if (is_below(path, temporary[i].directory) && error == ENOENT)
            (void)snprintf(text, sizeof text, "%s", temporary[i].text);
    say(out, PB_E_INPUT_DENIED, path, text);
}

static bool take_on(const struct pb_check_request *request)
{
    uid_t uid = (uid_t)request->peer.uid;
    gid_t gid = (gid_t)request->peer.gid;
    return request->n_groups >= 0 && setgroups((size_t)request->n_groups, request->groups) == 0 &&
           setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
}

/* Checks the file with the present rights of this process. A pipe or device is not opened. passed:
 * descriptor of the client for the file; -1 = absent. */
static bool look(const char *path, int passed, struct pb_check_result *out, struct stat *st)
{
    char text[128];
    int fd = -1;
    if (stat(path, st) == 0 && !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
        say(out, PB_E_INPUT_MISSING, path, "it is neither a plain file nor a folder");
        return false;
    }
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && is_open_for_reading(passed) && (errno == ENOENT || errno == EACCES)) {
        explain(path, errno, out);
    } else if (fd < 0 || fstat(fd, st) != 0) {
        (void)snprintf(text, sizeof text, "%s; checked with the rights of user %d", strerror(errno),
                       (int)geteuid());
        say(out, PB_E_INPUT_MISSING, path, text);
    } else if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
        say(out, PB_E_INPUT_MISSING, path, "it is neither a plain file nor a folder");
    } else {
        out->code = PB_OK;
        out->is_folder = S_ISDIR(st->st_mode);
        pb_file_identity_print(st, out->identity);
    }
    return out->code == PB_OK;
}

static void compare(const struct pb_check_request *request, int passed, struct pb_check_result *out)
{
    struct stat given, found;
    if (passed < 0 || fstat(passed, &given) != 0 || !is_open_for_reading(passed))
        say(out, PB_E_SERVICE_DENIED, request->path,
            "the request has no descriptor that is open for reading");
    else if (look(request->path, passed, out, &found) &&
             (given.st_dev != found.st_dev || given.st_ino != found.st_ino))
        say(out, PB_E_SERVICE_DENIED, request->path,
            "the descriptor of the request is of another file");
}

void pb_check_file(const struct pb_check_request *request, int connection,
                   struct pb_check_result *out)
{
    char text[160];
    struct stat st;
    uid_t own = geteuid();
    /* A service that runs as root checks with the rights of the user. */
    bool needs_no_proof = request->peer.uid == 0 || request->peer.uid == (int64_t)own ||
                          (request->proof == PB_CHECK_BY_SERVICE && own != 0);
    out->ticket = request->ticket;
    out->code = PB_E_SYSTEM;
    const bool has_descriptor = request->proof == PB_CHECK_BY_DESCRIPTOR;
    int passed = has_descriptor ? receive_file(connection) : -1;
    if (needs_no_proof) {
        (void)look(request->path, passed, out, &st);
    } else if (request->peer.uid > 0 && own == 0 && take_on(request)) {
        (void)look(request->path, passed, out, &st);
    } else if (has_descriptor) {
        compare(request, passed, out);
    } else {
        (void)snprintf(text, sizeof text,
                       "the service cannot take on the rights of user %lld; 'pushbroom submit' "
                       "passes the opened file",
                       (long long)request->peer.uid);
        say(out, PB_E_SERVICE_DENIED, request->path, text);
    }
}
