/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/delivered.h"

#include "service/base/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pb_delivered_set(struct pb_job *job, const char *directory, const char *const *name, size_t n)
{
    char path[PB_FILES_PATH_BYTES];
    struct pb_json *json = pb_json_create(false);
    pb_json_array(json, NULL);
    for (size_t i = 0; i < n && i < PB_DELIVERED_MAX; i++)
        if (pb_files_join(path, directory, name[i]) == 0)
            pb_json_string(json, NULL, path);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    int rc = text != NULL ? pb_job_set(&job->delivered, text) : -ENOMEM;
    pb_json_destroy(json);
    return rc;
}

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int pb_delivered_set_folder(struct pb_job *job, const char *directory, const char *folder)
{
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, is_name, alphasort);
    const char **name = calloc(n > 0 ? (size_t)n : 1, sizeof *name);
    int rc = name != NULL ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < n; i++)
        name[i] = entry[i]->d_name;
    if (rc == 0)
        rc = pb_delivered_set(job, directory, name, n > 0 ? (size_t)n : 0);
    for (int i = 0; i < n; i++)
        free(entry[i]);
    free(entry);
    free(name);
    return rc;
}
