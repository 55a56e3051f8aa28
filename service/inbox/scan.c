/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both kinds of scan end in look_at for an entry; folders that are searched are on a stack, so that
 * a scan can stop between two entries. An update first takes over, or examines again, the files of
 * the last scan, then it examines the changed names. */
#include "service/inbox/scan.h"

#include "config/base/base_name.h"
#include "config/base/clock.h"
#include "pipeline/scene/scene_walk.h"
#include "service/base/files.h"
#include "service/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define UNDECIDED_MAX 256 /* entries that an update examines without a change */

struct level {
    DIR *directory;
    char *below; /* path of the folder below the inbox; "" is the inbox */
};

struct pb_scan {
    const struct pb_inbox *inbox;
    struct pb_scan_rules rules;
    struct pb_settle *settle;
    struct pb_left *left;
    struct pb_changes changes; /* all: this scan is a listing */
    bool needs_listing;        /* the last scan did not reach all entries */
    bool misses_events;        /* the file system may change without events */
    bool has_changed_folders;  /* folders of the last scan are among the changes */
    int root;                  /* descriptor of the inbox during a scan; -1 = closed */
    struct stat st;            /* attributes of the inbox at the last listing */
    uint64_t mount;            /* mount id of the inbox; 0 if the kernel does not report it */
    struct level level[PB_INBOX_DEPTH_MAX + 1];
    size_t n_levels;
    size_t next_file, next_change; /* progress of an update */
    struct pb_scan_folders folders;
    size_t n_known; /* folders before it are those of the last scan, sorted */
    /* Folder of the last changed name, below the inbox. */
    int open_fd; /* -1 = closed */
    char *open_path;
};

struct pb_scan *pb_scan_create(const struct pb_inbox *inbox, const struct pb_scan_rules *rules,
                               struct pb_settle *settle, struct pb_left *left)
{
    struct pb_scan *scan = calloc(1, sizeof *scan);
    if (scan == NULL)
        return NULL;
    scan->inbox = inbox;
    scan->rules = *rules;
    scan->settle = settle;
    scan->left = left;
    scan->root = scan->open_fd = -1;
    scan->needs_listing = true;
    return scan;
}

static void close_folder(struct pb_scan *scan)
{
    if (scan->open_fd >= 0)
        (void)close(scan->open_fd);
    scan->open_fd = -1;
    free(scan->open_path);
    scan->open_path = NULL;
}

static void leave_level(struct pb_scan *scan)
{
    const struct level *level = &scan->level[--scan->n_levels];
    (void)closedir(level->directory);
    free(level->below);
}

/* Releases what a scan holds while it runs. */
static void end(struct pb_scan *scan)
{
    while (scan->n_levels > 0)
        leave_level(scan);
    close_folder(scan);
    if (scan->root >= 0)
        (void)close(scan->root);
    scan->root = -1;
    pb_changes_fini(&scan->changes);
}

static void free_folders(struct pb_scan_folders *folders)
{
    for (size_t i = 0; i < folders->n; i++)
        free(folders->folder[i].path);
    folders->n = 0;
}

void pb_scan_destroy(struct pb_scan *scan)
{
    if (scan == NULL)
        return;
    end(scan);
    free_folders(&scan->folders);
    free(scan->folders.folder);
    free(scan);
}

/* --- entries that stay ------------------------------------------------------------------------ */

/* An entry as it is examined. */
struct seen {
    const char *base, *name; /* its name in its folder; its path below the inbox */
    int folder;              /* descriptor of its folder */
    unsigned char type;      /* d_type; DT_UNKNOWN if not known yet */
    uint64_t inode;
};

/* Why an entry stays. */
struct stay {
    bool is_final; /* see left.h */
    enum pb_settle_reason reason;
    enum pb_code code;
};

static const struct stay ignored = {true, PB_SETTLE_IGNORED, PB_OK};
static const struct stay foreign = {true, PB_SETTLE_FOREIGN, PB_E_INPUT_NO_PIPELINE};
static const struct stay no_file = {true, PB_SETTLE_REFUSED, PB_E_INPUT_LINK};
static const struct stay hard_link = {false, PB_SETTLE_REFUSED, PB_E_INPUT_LINK};
static const struct stay unreadable = {false, PB_SETTLE_REFUSED, PB_E_INPUT_DENIED};

/* Records an entry that stays, and logs it once. */
static int __attribute__((format(printf, 4, 5)))
leave(struct pb_scan *scan, const struct seen *seen, const struct stay *stay, const char *format,
      ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct pb_left_entry entry = {.name = seen->name,
                                        .text = text,
                                        .inode = seen->inode,
                                        .type = seen->type,
                                        .is_final = stay->is_final,
                                        .reason = stay->reason,
                                        .code = stay->code};
    int rc = pb_left_add(scan->left, &entry);
    if (rc > 0 && stay != &ignored)
        pb_log(seen->type == DT_REG && stay == &foreign ? PB_LOG_NOTICE : PB_LOG_WARNING,
               "inbox: %s stays: %s", seen->name, text);
    return rc < 0 ? rc : 0;
}

static int leave_kind(struct pb_scan *scan, const struct seen *seen)
{
    const char *kind = seen->type == DT_LNK    ? "a symbolic link"
                       : seen->type == DT_FIFO ? "a pipe"
                       : seen->type == DT_SOCK ? "a socket"
                                               : "a device";
    if (seen->type == DT_DIR)
        return leave(scan, seen, &foreign,
                     "no pipeline's input.scene fits the name of this folder; for the files in it "
                     "set recurse: true for this inbox (service.inboxes), or move them out");
    return leave(scan, seen, &no_file, "it is %s; only plain files and folders are taken", kind);
}

/* --- folders ---------------------------------------------------------------------------------- */

/* A folder that cannot be walked now, or is too large for a scene, is still added to settle; the
 * claim reports the reason. */
static int look_at_scene(const struct pb_scan *scan, const struct seen *seen)
{
    char path[PB_FILES_PATH_BYTES];
    struct pb_scene_walk walk;
    struct pb_settle_file file = {.name = seen->name, .inode = seen->inode};
    if (pb_files_join(path, scan->inbox->path, seen->name) != 0)
        return 0;
    (void)pb_scene_walk_open(path, NULL, &walk);
    pb_inbox_folder_facts(&walk, &file);
    pb_scene_walk_close(&walk);
    return pb_settle_add(scan->settle, &file);
}

static int add_folder(struct pb_scan_folders *folders, const char *path, const struct stat *st)
{
    if (folders->n == folders->room) {
        size_t room = folders->room ? folders->room * 2 : 16;
        struct pb_scan_folder *more = realloc(folders->folder, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        folders->folder = more;
        folders->room = room;
    }
    char *copy = strdup(path);
    if (copy == NULL)
        return -ENOMEM;
    folders->folder[folders->n++] = (struct pb_scan_folder){copy, st->st_dev, st->st_ino};
    return 0;
}

static uint64_t mount_of(int fd)
{
    struct statx x;
    bool is_known =
        statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 && (x.stx_mask & STATX_MNT_ID) != 0;
    return is_known ? x.stx_mnt_id : 0;
}

/* Lets the next steps read the folder; takes fd. Returns 0 or a negative errno. */
static int enter(struct pb_scan *scan, int fd, const char *below, const struct stat *st)
{
    DIR *directory = fdopendir(fd);
    int rc = directory == NULL ? -errno : add_folder(&scan->folders, below, st);
    char *copy = rc == 0 ? strdup(below) : NULL;
    if (rc == 0 && copy != NULL) {
        scan->level[scan->n_levels++] = (struct level){directory, copy};
        return 0;
    }
    if (directory != NULL)
        (void)closedir(directory);
    else
        (void)close(fd);
    return rc ? rc : -ENOMEM;
}

static int leave_folder(struct pb_scan *scan, const struct seen *seen, const char *why)
{
    return leave(scan, seen, &unreadable, "the files in it stay: %s", why);
}

static size_t depth_of(const char *name)
{
    size_t depth = 1;
    for (const char *s = name; (s = strchr(s, '/')) != NULL; s++)
        depth++;
    return depth;
}

/* Files move to work/ by rename, therefore mounts below the inbox are left alone. */
static int look_into(struct pb_scan *scan, const struct seen *seen)
{
    struct stat st;
    const char *why = NULL;
    int own = openat(seen->folder, seen->base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 0; /* it is gone */
    if (own < 0)
        return leave_folder(scan, seen, strerror(errno));
    if (fstat(own, &st) != 0 || st.st_dev != scan->st.st_dev || mount_of(own) != scan->mount)
        why = "it is another mount than the inbox";
    if (depth_of(seen->name) > PB_INBOX_DEPTH_MAX || strlen(seen->name) > PB_INBOX_FOLDER_MAX)
        why = "it is nested too deep, or its path is too long";
    if (why != NULL) {
        (void)close(own);
        return leave_folder(scan, seen, why);
    }
    int rc = enter(scan, own, seen->name, &st);
    return rc == 0 || rc == -ENOMEM ? rc : leave_folder(scan, seen, strerror(-rc));
}

/* --- entries ---------------------------------------------------------------------------------- */

static int look_at_file(struct pb_scan *scan, const struct seen *seen, const struct stat *st)
{
    /* A file with a second link may belong to another user: a user who may write the inbox could
     * submit a file that only the service can move or read. */
    if (st->st_nlink > 1)
        return leave(scan, seen, &hard_link,
                     "it has %lu names (hard links); only a file with one name is taken: remove "
                     "the others, or copy it",
                     (unsigned long)st->st_nlink);
    const struct pb_settle_file file = {.name = seen->name,
                                        .size = (uint64_t)st->st_size,
                                        .inode = (uint64_t)st->st_ino,
                                        .mtime_ns = pb_clock_ns(&st->st_mtim),
                                        .ctime_ns = pb_clock_ns(&st->st_ctim)};
    return pb_settle_add(scan->settle, &file);
}

/* Reads the attributes; false: the entry was removed. */
static bool read_attributes(struct seen *seen, struct stat *st)
{
    if (fstatat(seen->folder, seen->base, st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    seen->type = (unsigned char)IFTODT(st->st_mode);
    seen->inode = (uint64_t)st->st_ino;
    return true;
}

/* Reads no attributes of an entry of a known type that stays by its name. */
static int look_at(struct pb_scan *scan, struct seen *seen)
{
    struct stat st = {.st_ino = 0};
    char input[PB_FILES_PATH_BYTES];
    const bool is_listed = seen->type != DT_UNKNOWN;
    if (!is_listed && !read_attributes(seen, &st))
        return 0;
    if (pb_left_confirm(scan->left, seen->name, seen->type, seen->inode))
        return 0;
    bool is_companion = pb_companion_input(&scan->inbox->companion, seen->name, input);
    if (!is_companion && scan->rules.ignores(scan->rules.user, seen->name))
        return leave(scan, seen, &ignored, "%s", "");
    if (pb_settle_is_left_alone(seen->base))
        return 0;
    if (seen->type == DT_REG && !is_companion && scan->rules.leaves(scan->rules.user, seen->name))
        return leave(scan, seen, &foreign, "no pipeline's input.match fits the name of this file");
    if (is_listed && !read_attributes(seen, &st))
        return 0;
    if (seen->type == DT_DIR && scan->rules.takes(scan->rules.user, seen->base))
        return look_at_scene(scan, seen);
    if (seen->type == DT_DIR && scan->inbox->recurse)
        return look_into(scan, seen);
    return seen->type == DT_REG ? look_at_file(scan, seen, &st) : leave_kind(scan, seen);
}

/* Examines the next entry of the folder on top of the stack, or takes that off. */
static int read_entry(struct pb_scan *scan)
{
    char name[PB_FILES_PATH_BYTES];
    const struct level *top = &scan->level[scan->n_levels - 1];
    errno = 0;
    const struct dirent *entry = readdir(top->directory);
    int error = errno;
    if (entry == NULL && error != 0 && top->below[0] != '\0') {
        const struct seen folder = {.name = top->below, .type = DT_DIR};
        error = -leave_folder(scan, &folder, strerror(error));
    }
    if (entry == NULL) {
        leave_level(scan);
        return -error;
    }
    int n =
        snprintf(name, sizeof name, "%s%s%s", top->below, top->below[0] ? "/" : "", entry->d_name);
    if (n >= PB_FILES_PATH_BYTES || strcmp(entry->d_name, ".") == 0 ||
        strcmp(entry->d_name, "..") == 0)
        return 0;
    struct seen seen = {.base = entry->d_name,
                        .name = name,
                        .folder = dirfd(top->directory),
                        .type = entry->d_type,
                        .inode = (uint64_t)entry->d_ino};
    return look_at(scan, &seen);
}

/* --- updates ---------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    const struct pb_scan_folder *left = a, *right = b;
    return strcmp(left->path, right->path);
}

static const struct pb_scan_folder *find_known(const struct pb_scan *scan, const char *path)
{
    const struct pb_scan_folder key = {.path = (char *)path};
    return scan->n_known > 0
               ? bsearch(&key, scan->folders.folder, scan->n_known, sizeof key, by_path)
               : NULL;
}

/* Opens the folder of a path, "" or "folder/", if the last scan searched it and it is the same.
 * Returns its descriptor, which remains open until the next call, or -1. */
static int open_folder(struct pb_scan *scan, const char *path, size_t bytes)
{
    struct stat st;
    if (bytes == 0)
        return scan->root;
    if (scan->open_path != NULL && strlen(scan->open_path) == bytes - 1 &&
        strncmp(scan->open_path, path, bytes - 1) == 0)
        return scan->open_fd;
    close_folder(scan);
    scan->open_path = strndup(path, bytes - 1);
    const struct pb_scan_folder *folder =
        scan->open_path != NULL ? find_known(scan, scan->open_path) : NULL;
    if (folder == NULL)
        return -1;
    scan->open_fd = pb_files_open_below(scan->inbox->path, folder->path);
    if (scan->open_fd >= 0 && fstat(scan->open_fd, &st) == 0 && st.st_dev == folder->device &&
        st.st_ino == folder->inode)
        return scan->open_fd;
    if (scan->open_fd >= 0)
        (void)close(scan->open_fd);
    scan->open_fd = -1;
    /* Files of the folder are missing from this scan. An event will report a folder that is gone,
     * but not a lack of descriptors. */
    scan->needs_listing = true;
    return -1;
}

/* The names of a folder that was not searched, or that changed itself, are found when that is
 * searched. */
static int look_at_name(struct pb_scan *scan, const char *name)
{
    const char *base = pb_base_name(name);
    struct seen seen = {.base = base, .name = name, .type = DT_UNKNOWN};
    seen.folder = open_folder(scan, name, (size_t)(base - name));
    int rc = seen.folder >= 0 ? look_at(scan, &seen) : 0;
    pb_left_drop_old(scan->left, name);
    return rc;
}

/* Takes the next file of the last scan over, or examines it again. Returns 1 after the last one.
 */
static int take_over(struct pb_scan *scan)
{
    bool is_still = false;
    const struct pb_settle_file *file = pb_settle_last(scan->settle, scan->next_file++, &is_still);
    if (file == NULL)
        return 1;
    if (pb_changes_cover(&scan->changes, file->name))
        return 0;
    return is_still ? pb_settle_add(scan->settle, file) : look_at_name(scan, file->name);
}

/* Examines the next file or name. Returns 1 at the end of the update. */
static int update(struct pb_scan *scan)
{
    int rc = 1;
    if (scan->next_file != SIZE_MAX)
        rc = take_over(scan);
    if (rc != 1)
        return rc;
    scan->next_file = SIZE_MAX;
    if (scan->next_change == scan->changes.n)
        return 1;
    return look_at_name(scan, scan->changes.name[scan->next_change++]);
}

/* Examines entries again that may be taken without a change of their own: a file is no hard link
 * any more when its other name is removed. If there are many, the listings find that. */
static void add_undecided(struct pb_scan *scan)
{
    const char *name[UNDECIDED_MAX];
    size_t n = pb_left_open(scan->left, name, UNDECIDED_MAX);
    for (size_t i = 0; i < n && n < UNDECIDED_MAX; i++)
        pb_changes_add(&scan->changes, "", name[i]); /* adds nothing to all */
}

/* Removes the folders that are searched again, because they or a folder above them changed. */
static void remove_changed_folders(struct pb_scan *scan)
{
    struct pb_scan_folders *folders = &scan->folders;
    size_t kept = 0;
    scan->has_changed_folders = false;
    for (size_t i = 0; i < scan->changes.n && !scan->has_changed_folders; i++)
        scan->has_changed_folders = find_known(scan, scan->changes.name[i]) != NULL;
    for (size_t i = 0; i < folders->n && scan->has_changed_folders; i++) {
        if (pb_changes_cover(&scan->changes, folders->folder[i].path))
            free(folders->folder[i].path);
        else
            folders->folder[kept++] = folders->folder[i];
    }
    if (scan->has_changed_folders)
        scan->n_known = folders->n = kept;
}

/* --- scans ------------------------------------------------------------------------------------ */

static int begin_listing(struct pb_scan *scan, const struct stat *st)
{
    struct statfs fs;
    pb_changes_add_all(&scan->changes);
    free_folders(&scan->folders);
    scan->n_known = 0;
    scan->st = *st;
    scan->mount = mount_of(scan->root);
    scan->misses_events =
        fstatfs(scan->root, &fs) != 0 || !pb_files_is_local_type((uint32_t)fs.f_type);
    int fd = openat(scan->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : enter(scan, fd, "", st);
}

int pb_scan_begin(struct pb_scan *scan, struct pb_changes *changes)
{
    struct stat st = {.st_ino = 0};
    scan->changes = *changes;
    *changes = (struct pb_changes){0};
    add_undecided(scan);
    pb_settle_begin(scan->settle);
    pb_left_begin(scan->left);
    scan->root = open(scan->inbox->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = scan->root < 0 || fstat(scan->root, &st) != 0 ? -errno : 0;
    bool is_same = st.st_dev == scan->st.st_dev && st.st_ino == scan->st.st_ino;
    bool lists = scan->changes.all || scan->needs_listing || scan->misses_events || !is_same;
    scan->needs_listing = false;
    scan->next_file = scan->next_change = 0;
    if (rc == 0 && lists)
        rc = begin_listing(scan, &st);
    if (rc == 0 && !lists) {
        scan->n_known = scan->folders.n;
        pb_changes_sort(&scan->changes);
        remove_changed_folders(scan);
    }
    if (rc != 0) {
        scan->needs_listing = true;
        free_folders(&scan->folders);
        end(scan);
        pb_changes_add_all(&scan->changes);
    }
    return rc;
}

static bool is_covered(const void *user, const char *name)
{
    return pb_changes_cover(user, name);
}

static void finish(struct pb_scan *scan, int rc)
{
    struct pb_scan_folders *folders = &scan->folders;
    const bool lists = scan->changes.all;
    if (lists && rc == 0)
        pb_left_drop_all_old(scan->left, NULL, NULL);
    if (!lists && rc == 0 && scan->has_changed_folders)
        pb_left_drop_all_old(scan->left, is_covered, &scan->changes);
    if (rc != 0)
        free_folders(folders);
    if (folders->n > 1)
        qsort(folders->folder, folders->n, sizeof *folders->folder, by_path);
    scan->needs_listing = scan->needs_listing || rc != 0;
    end(scan);
    scan->changes.all = lists;
}

int pb_scan_step(struct pb_scan *scan, size_t n)
{
    int rc = 0;
    for (; n > 0 && rc == 0; n--) {
        if (scan->n_levels > 0)
            rc = read_entry(scan);
        else
            rc = scan->changes.all ? 1 : update(scan);
    }
    if (rc == 0)
        return 1;
    rc = rc > 0 ? 0 : rc;
    finish(scan, rc);
    return rc;
}

bool pb_scan_is_listing(const struct pb_scan *scan)
{
    return scan->changes.all;
}

bool pb_scan_needs_listing(const struct pb_scan *scan)
{
    return scan->needs_listing;
}

const struct pb_scan_folders *pb_scan_folders(const struct pb_scan *scan)
{
    return &scan->folders;
}

/* --- changed names ---------------------------------------------------------------------------- */

void pb_changes_fini(struct pb_changes *changes)
{
    for (size_t i = 0; i < changes->n; i++)
        free(changes->name[i]);
    free(changes->name);
    *changes = (struct pb_changes){0};
}

void pb_changes_add_all(struct pb_changes *changes)
{
    pb_changes_fini(changes);
    changes->all = true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void pb_changes_sort(struct pb_changes *changes)
{
    size_t kept = 0;
    if (changes->n == 0)
        return;
    qsort(changes->name, changes->n, sizeof *changes->name, by_name);
    for (size_t i = 0; i < changes->n; i++) {
        if (kept > 0 && strcmp(changes->name[kept - 1], changes->name[i]) == 0)
            free(changes->name[i]);
        else
            changes->name[kept++] = changes->name[i];
    }
    changes->n = kept;
}

/* Makes room for one more name; false: there are too many, or no memory. */
static bool reserve(struct pb_changes *changes)
{
    if (changes->n < changes->room)
        return true;
    if (changes->room == PB_CHANGES_MAX) {
        pb_changes_sort(changes); /* a file that grows causes many events */
        return changes->n <= PB_CHANGES_MAX / 2;
    }
    size_t room = changes->room > 0 ? 2 * changes->room : 64;
    char **more = realloc(changes->name, room * sizeof(char *));
    if (more == NULL)
        return false;
    changes->name = more;
    changes->room = room;
    return true;
}

void pb_changes_add(struct pb_changes *changes, const char *folder, const char *name)
{
    size_t n = strlen(folder), m = strlen(name), bytes = n + m + 2;
    if (changes->all)
        return;
    if (n + m == 0) {
        pb_changes_add_all(changes);
        return;
    }
    char *path = reserve(changes) ? malloc(bytes) : NULL;
    if (path == NULL) {
        pb_changes_add_all(changes);
        return;
    }
    (void)snprintf(path, bytes, "%s%s%s", folder, n > 0 && m > 0 ? "/" : "", name);
    if (changes->n > 0 && strcmp(changes->name[changes->n - 1], path) == 0)
        free(path);
    else
        changes->name[changes->n++] = path;
}

/* Compares the name with the first n bytes of the path. */
static int compare(const char *name, const char *path, size_t n)
{
    int order = strncmp(name, path, n);
    return order != 0 ? order : name[n] != '\0';
}

static bool has(const struct pb_changes *changes, const char *path, size_t n)
{
    size_t low = 0, high = changes->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(changes->name[middle], path, n);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool pb_changes_cover(const struct pb_changes *changes, const char *path)
{
    bool covered = changes->all;
    for (const char *end = path; changes->n > 0 && !covered && *end != '\0';) {
        end += strcspn(end, "/");
        covered = has(changes, path, (size_t)(end - path));
        end += *end == '/';
    }
    return covered;
}
