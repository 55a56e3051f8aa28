/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The keys of service.unmatched. */
#include "config/schema.h"
#include "config/service_config.h"

#define AT(name) offsetof(struct pb_unmatched_config, name)

static const struct pb_key keys[] = {
    {.name = "files",
     .type = PB_KEY_CHOICE,
     .offset = AT(files),
     .choices = "quarantine|leave",
     .def = "quarantine",
     .doc = "Files and archives. quarantine: a job fails with input.no_pipeline, and the file is "
            "moved to quarantine. leave: the file stays in the inbox and is counted."},
    {.name = "folders",
     .type = PB_KEY_CHOICE,
     .offset = AT(folders),
     .choices = "leave|quarantine",
     .def = "leave",
     .doc = "Folders. leave: the folder stays in the inbox and is counted. quarantine: as for "
            "files; in an inbox with recurse, folders are searched for inputs and always stay."},
};

const struct pb_section pb_section_unmatched = {
    "unmatched", "Entries of the inbox that no pipeline fits.", keys, sizeof keys / sizeof *keys};
