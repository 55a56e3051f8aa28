/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/claim_place.h"

#include "config/base/base_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int pb_claim_place_open(struct pb_claim_place *place, const struct pb_inbox *inbox,
                        const char *name)
{
    char folder[PB_FILES_PATH_BYTES];
    size_t n = (size_t)(pb_base_name(name) - name);
    place->fd = -1;
    if (n == 0) {
        (void)snprintf(place->path, sizeof place->path, "%s", inbox->path);
        (void)snprintf(place->real, sizeof place->real, "%s", inbox->path);
        return 0;
    }
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(n - 1), name);
    if (pb_files_join(place->real, inbox->path, folder) != 0)
        return -EAGAIN;
    place->fd = pb_files_open_below(inbox->path, folder);
    (void)snprintf(place->path, sizeof place->path, "/proc/self/fd/%d", place->fd);
    return place->fd >= 0 ? 0 : -EAGAIN;
}

void pb_claim_place_close(struct pb_claim_place *place)
{
    if (place->fd >= 0)
        (void)close(place->fd);
    place->fd = -1;
}
