/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHECKSUM_KIND_H
#define PB_CHECKSUM_KIND_H
/* The algorithms of checksums of files, in the order of output.checksum, and of what follows
 * "output" in stac.checksum. pipeline/io/checksum.h computes them. */

enum pb_checksum { PB_CHECKSUM_BLAKE3, PB_CHECKSUM_SHA2_256, PB_CHECKSUM_NONE };
#endif
