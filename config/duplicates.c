/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The keys of service.duplicates. */
#include "config/schema.h"
#include "config/service_config.h"

#define DAY      86400000.0
#define AT(name) offsetof(struct pb_duplicates_config, name)

static const struct pb_key keys[] = {
    {.name = "by",
     .type = PB_KEY_CHOICE,
     .offset = AT(by),
     .choices = "checksum",
     .def = "checksum",
     .doc =
         "Properties that make two inputs the same: the number of their bytes and their checksum "
         "(output.checksum)."},
    {.name = "keep",
     .type = PB_KEY_DURATION,
     .offset = AT(keep_ms),
     .min = 1000.0,
     .max = 36500 * DAY,
     .def = "90d",
     .doc = "How long the checksum of an input that was done is remembered."},
    {.name = "then",
     .type = PB_KEY_CHOICE,
     .offset = AT(then),
     .choices = "skip|quarantine",
     .def = "skip",
     .doc = "skip: the job is dismissed, and its input is treated as that of a successful job. "
            "quarantine: the job fails. 'pushbroom retry' computes it anyway."},
};

const struct pb_section pb_section_duplicates = {"duplicates",
                                                 "Action for an input that was processed before.",
                                                 keys, sizeof keys / sizeof *keys};
