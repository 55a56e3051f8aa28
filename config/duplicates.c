/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The keys of service.duplicates. */
#include "config/schema.h"

#define DAY      86400000.0
#define AT(name) offsetof(struct pb_duplicates_config, name)

static const struct pb_key keys[] = {
    {.name = "by",
     .type = PB_KEY_CHOICE,
     .offset = AT(by),
     .choices = "checksum",
     .def = "checksum",
     .doc = "What makes two inputs the same: the number of their bytes and their SHA-256."},
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
     .doc = "skip: the job is dismissed, and its input goes where those of successful jobs go. "
            "quarantine: the job fails. 'pushbroom retry' computes it all the same."},
};

const struct pb_section pb_section_duplicates = {"duplicates",
                                                 "What is done with an input that was done before.",
                                                 keys, sizeof keys / sizeof *keys};
