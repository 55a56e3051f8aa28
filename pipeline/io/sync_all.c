/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/sync_all.h"

#include "pipeline/io/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

struct one {
    pthread_t thread;
    bool started;
    int fd, rc;
};

static void *sync_one(void *user)
{
    struct one *one = user;
    one->rc = fsync(one->fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : -errno;
    return NULL;
}

int pb_sync_all(const int *fd, size_t n)
{
    struct one all[PB_SYNC_ALL_MAX];
    int rc = 0;
    assert(n <= PB_SYNC_ALL_MAX);
    for (size_t i = 0; i < n; i++) {
        all[i] = (struct one){.fd = fd[i]};
        all[i].started = i + 1 < n && pb_thread_start(&all[i].thread, sync_one, &all[i]) == 0;
        if (!all[i].started)
            (void)sync_one(&all[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (all[i].started)
            (void)pthread_join(all[i].thread, NULL);
        rc = rc ? rc : all[i].rc;
    }
    return rc;
}
