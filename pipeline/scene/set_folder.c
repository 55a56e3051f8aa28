/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/set_folder.h"

#include "config/match.h"
#include "pipeline/io/file_name.h"

#include <dirent.h>
#include <string.h>

const struct pb_pipeline_config *pb_set_folder_pipeline(const struct pb_config *config,
                                                        const char *path, const char *scene)
{
    const struct pb_pipeline_config *found = NULL;
    DIR *directory = opendir(path);
    if (directory == NULL)
        return NULL;
    for (const struct dirent *e; (e = readdir(directory)) != NULL;) {
        char told[256], clean[256];
        const struct pb_pipeline_config *fits =
            pb_config_match_group(config, e->d_name, NULL, told);
        if (fits == NULL)
            continue;
        pb_file_name_clean(told, clean);
        /* Assignments by metadata are not checked again: the folder belongs to that scene. */
        if ((told[0] == '\0' || strcmp(clean, scene) == 0) && (found == NULL || fits < found))
            found = fits;
    }
    (void)closedir(directory);
    return found;
}
