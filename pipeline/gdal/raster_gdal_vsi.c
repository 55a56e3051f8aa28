/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Virtual file of a raster for GDAL.
 *
 * GDAL opens no path: it gets a name below VSI_PREFIX, and reads through the raster's own
 * descriptor. Therefore the bytes are of the file whose header was checked, a failed read
 * preserves its errno, and GDAL does not interpret file names. A file with sidecars has its base
 * name, in its own directory, because GDAL finds the sidecars by that name. */
#include "pipeline/gdal/raster_gdal_vsi.h"
#include "config/base/base_name.h"
#include "pipeline/gdal/raster_gdal_inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define VSI_PREFIX "/vsipushbroom/"

struct vsi_file { /* one handle of GDAL */
    struct pb_raster_file *file;
    struct pb_raster_file beside; /* a sidecar with borrowed descriptor; `file` points to it */
    struct pb_raster_file *scene; /* gets the error of a read */
    uint64_t at;
    bool eof;
};

static pthread_mutex_t vsi_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and last_id */
static struct pb_raster *vsi_list;
static uint64_t vsi_last_id;

/* Strips "./" prefixes. */
static const char *plain(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    return path;
}

/* Returns true if both are in one directory and the sidecar's name is the file's name plus an
 * ending. sidecar->stem distinguishes it from sidecars of files whose names begin alike. */
static bool belongs(const struct pb_raster_file *file, const struct pb_raster_file *sidecar)
{
    const char *path = plain(file->path), *beside = plain(sidecar->path);
    const char *base = pb_base_name(path), *name = pb_base_name(beside);
    const char *dot = strrchr(base, '.');
    size_t directory = (size_t)(base - path);
    size_t bare = dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base);
    return (size_t)(name - beside) == directory && strncmp(path, beside, directory) == 0 &&
           (sidecar->stem == bare || sidecar->stem == strlen(base)) &&
           strncasecmp(base, name, sidecar->stem) == 0;
}

const struct pb_raster_file *pb_gdal_file_sidecar(const struct pb_raster *raster, size_t i)
{
    const struct pb_raster_file *sidecar;
    for (size_t k = 0; (sidecar = pb_raster_file_sidecar(k)) != NULL; k++)
        if (belongs(&raster->file, sidecar) && i-- == 0)
            return sidecar;
    return NULL;
}

char **pb_gdal_file_siblings(const struct pb_raster *raster)
{
    const struct pb_raster_file *sidecar;
    char **names = NULL;
    if (!raster->has_sidecars)
        return NULL;
    names = CSLAddString(names, pb_base_name(raster->file.path));
    for (size_t i = 0; (sidecar = pb_gdal_file_sidecar(raster, i)) != NULL; i++)
        names = CSLAddString(names, pb_base_name(sidecar->path));
    return names;
}

void pb_gdal_file_add(struct pb_raster *raster)
{
    raster->has_sidecars = pb_gdal_file_sidecar(raster, 0) != NULL;
    pthread_mutex_lock(&vsi_lock);
    raster->vsi_id = ++vsi_last_id;
    (void)snprintf(raster->vsi_name, sizeof raster->vsi_name, VSI_PREFIX "%llu%s%.255s",
                   (unsigned long long)raster->vsi_id, raster->has_sidecars ? "/" : "",
                   raster->has_sidecars ? pb_base_name(raster->file.path) : ".tif");
    raster->next = vsi_list; /* other threads read its name and sidecars from here on */
    vsi_list = raster;
    pthread_mutex_unlock(&vsi_lock);
}

void pb_gdal_file_remove(struct pb_raster *raster)
{
    pthread_mutex_lock(&vsi_lock);
    for (struct pb_raster **at = &vsi_list; *at != NULL; at = &(*at)->next) {
        if (*at == raster) {
            *at = raster->next;
            break;
        }
    }
    pthread_mutex_unlock(&vsi_lock);
}

/* Result of a search by GDAL's name: the raster, and its sidecar, NULL = the raster's own file. */
struct vsi_found {
    struct pb_raster *raster;
    const struct pb_raster_file *sidecar;
};

static bool is_named(struct pb_raster *raster, const char *name, struct vsi_found *out)
{
    const char *own = raster->vsi_name + strlen(VSI_PREFIX), *slash = strchr(own, '/');
    out->raster = raster;
    out->sidecar = NULL;
    if (strcmp(own, name) == 0)
        return true;
    if (slash == NULL || strncmp(own, name, (size_t)(slash + 1 - own)) != 0)
        return false;
    name += slash + 1 - own;
    for (size_t i = 0; (out->sidecar = pb_gdal_file_sidecar(raster, i)) != NULL; i++)
        if (strcmp(pb_base_name(out->sidecar->path), name) == 0)
            return true;
    return false;
}

/* name: without the prefix, as GDAL passes it to a handler. */
static bool vsi_find(const char *name, struct vsi_found *out)
{
    pthread_mutex_lock(&vsi_lock);
    struct pb_raster *raster = vsi_list;
    while (raster != NULL && !is_named(raster, name, out))
        raster = raster->next;
    pthread_mutex_unlock(&vsi_lock);
    return raster != NULL;
}

static int vsi_stat(void *user, const char *name, VSIStatBufL *out, int flags)
{
    struct vsi_found found;
    (void)user;
    (void)flags;
    if (!vsi_find(name, &found)) {
        errno = ENOENT;
        return -1;
    }
    const struct pb_raster_file *file = found.sidecar ? found.sidecar : &found.raster->file;
    memset(out, 0, sizeof *out);
    out->st_mode = S_IFREG;
    out->st_size = (int64_t)file->bytes;
    out->st_mtime = file->stat.st_mtime;
    return 0;
}

static void *vsi_open(void *user, const char *name, const char *access)
{
    struct vsi_found found;
    bool is = vsi_find(name, &found);
    (void)user;
    if (!is || access[0] != 'r' || strchr(access, '+') != NULL) {
        errno = is ? EACCES : ENOENT;
        return NULL;
    }
    struct vsi_file *handle = calloc(1, sizeof *handle);
    if (handle == NULL) {
        if (found.raster->file.error == 0)
            found.raster->file.error = ENOMEM;
        return NULL;
    }
    handle->file = handle->scene = &found.raster->file;
    if (found.sidecar != NULL) {
        handle->beside = *found.sidecar;
        handle->file = &handle->beside;
    }
    return handle;
}

static vsi_l_offset vsi_tell(void *user)
{
    return ((const struct vsi_file *)user)->at;
}

static int vsi_seek(void *user, vsi_l_offset offset, int whence)
{
    struct vsi_file *handle = user;
    uint64_t base = whence == SEEK_CUR ? handle->at : whence == SEEK_END ? handle->file->bytes : 0;
    handle->at = base + offset;
    handle->eof = false;
    return 0;
}

static size_t vsi_read(void *user, void *out, size_t size, size_t count)
{
    struct vsi_file *handle = user;
    if (size == 0 || count == 0 || count > SIZE_MAX / size)
        return 0;
    ssize_t n = pb_raster_file_read(handle->file, handle->at, out, size * count);
    if (n < 0 && handle->scene->error == 0)
        handle->scene->error = handle->file->error;
    if (n < 0)
        return 0;
    handle->at += (uint64_t)n;
    handle->eof = (size_t)n < size * count;
    return (size_t)n / size;
}

static int vsi_eof(void *user)
{
    return ((const struct vsi_file *)user)->eof;
}

static int vsi_close(void *user)
{
    free(user);
    return 0;
}

void pb_gdal_file_install(void)
{
    VSIFilesystemPluginCallbacksStruct *calls = VSIAllocFilesystemPluginCallbacksStruct();
    calls->stat = vsi_stat;
    calls->open = vsi_open;
    calls->tell = vsi_tell;
    calls->seek = vsi_seek;
    calls->read = vsi_read;
    calls->eof = vsi_eof;
    calls->close = vsi_close;
    (void)VSIInstallPluginHandler(VSI_PREFIX, calls);
    VSIFreeFilesystemPluginCallbacksStruct(calls);
}
