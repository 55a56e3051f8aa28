/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SENTINEL1_TABLES_H
#define PB_SENTINEL1_TABLES_H
/* Reads the tables of Sentinel-1's annotation/calibration into the reader's facts. One thread. */
struct pb_meta_reader;
struct pb_meta_node;
struct pb_sar_channel;

/* Finds the channel of a polarisation in r->out->sar, which is made if absent; NULL after an
 * error. */
struct pb_sar_channel *pb_sentinel1_channel(struct pb_meta_reader *r, const char *polarisation);
/* Read calibration-*.xml and noise-*.xml, of any version of the processor. */
void pb_sentinel1_calibration(struct pb_meta_reader *r, const struct pb_meta_node *root,
                              struct pb_sar_channel *out);
void pb_sentinel1_noise(struct pb_meta_reader *r, const struct pb_meta_node *root,
                        struct pb_sar_channel *out);
#endif
