/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The file, as GDAL sees it.
 *
 * GDAL opens no path: it is given a name below VSI_PREFIX, and what it reads there comes through
 * the raster's own descriptor. So the bytes are of the file whose header was checked, a failed read
 * keeps its errno, and no file name has a meaning of its own to GDAL. */
#include "pipeline/gdal/raster_gdal_vsi.h"
#include "pipeline/gdal/raster_gdal_inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define VSI_PREFIX "/vsipushbroom/"

struct vsi_file { /* one handle of GDAL's */
    struct pb_raster_file *file;
    uint64_t at;
    bool eof;
};

static pthread_mutex_t vsi_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and last_id */
static struct pb_raster *vsi_list;
static uint64_t vsi_last_id;

void pb_gdal_file_add(struct pb_raster *raster)
{
    pthread_mutex_lock(&vsi_lock);
    raster->vsi_id = ++vsi_last_id;
    raster->next = vsi_list;
    vsi_list = raster;
    pthread_mutex_unlock(&vsi_lock);
    (void)snprintf(raster->vsi_name, sizeof raster->vsi_name, VSI_PREFIX "%llu.tif",
                   (unsigned long long)raster->vsi_id);
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

/* name: without the prefix, as GDAL hands it to a handler. */
static struct pb_raster *vsi_find(const char *name)
{
    pthread_mutex_lock(&vsi_lock);
    struct pb_raster *raster = vsi_list;
    while (raster != NULL && strcmp(raster->vsi_name + strlen(VSI_PREFIX), name) != 0)
        raster = raster->next;
    pthread_mutex_unlock(&vsi_lock);
    return raster;
}

static int vsi_stat(void *user, const char *name, VSIStatBufL *out, int flags)
{
    const struct pb_raster *raster = vsi_find(name);
    (void)user;
    (void)flags;
    if (raster == NULL) {
        errno = ENOENT;
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->st_mode = S_IFREG;
    out->st_size = (int64_t)raster->file.bytes;
    out->st_mtime = raster->file.stat.st_mtime;
    return 0;
}

static void *vsi_open(void *user, const char *name, const char *access)
{
    struct pb_raster *raster = vsi_find(name);
    (void)user;
    if (raster == NULL || access[0] != 'r' || strchr(access, '+') != NULL) {
        errno = raster == NULL ? ENOENT : EACCES;
        return NULL;
    }
    struct vsi_file *handle = calloc(1, sizeof *handle);
    if (handle != NULL)
        handle->file = &raster->file;
    else if (raster->file.error == 0)
        raster->file.error = ENOMEM;
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
