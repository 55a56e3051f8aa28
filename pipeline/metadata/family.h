/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METADATA_FAMILY_H
#define PB_METADATA_FAMILY_H
/* The families of families.def; a family is family_<name>.c. Static, read-only. */
#include "pipeline/metadata/metadata.h"

#define PB_FAMILY(name) extern const struct pb_metadata_family pb_family_##name;
#include "pipeline/metadata/families.def"
#undef PB_FAMILY
#endif
