/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/delivered.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

int pb_delivered_add(struct pb_job *job, const char *directory, const char *const *name, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_manifest_entry file = {.path = (char *)name[i], .bytes = -1};
        rc = pb_job_add_delivered(job, directory, &file);
    }
    return rc;
}

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int pb_delivered_add_folder(struct pb_job *job, const char *directory, const char *folder)
{
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, is_name, alphasort);
    const char **name = calloc(n > 0 ? (size_t)n : 1, sizeof *name);
    int rc = name != NULL ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < n; i++)
        name[i] = entry[i]->d_name;
    if (rc == 0)
        rc = pb_delivered_add(job, directory, name, n > 0 ? (size_t)n : 0);
    for (int i = 0; i < n; i++)
        free(entry[i]);
    free(entry);
    free(name);
    return rc;
}
