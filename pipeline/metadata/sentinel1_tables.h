/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SENTINEL1_TABLES_H
#define PB_SENTINEL1_TABLES_H
/* The tables of Sentinel-1's annotation/calibration, put into the reader's facts. One thread. */
struct pb_meta_reader;
struct pb_meta_node;
struct pb_sar_channel;

/* The channel of a polarisation, of r->out->sar, which is made when there is none; NULL after a
 * mistake. */
struct pb_sar_channel *pb_sentinel1_channel(struct pb_meta_reader *r, const char *polarisation);
/* Of calibration-*.xml and of noise-*.xml, of any version of the processor. */
void pb_sentinel1_calibration(struct pb_meta_reader *r, const struct pb_meta_node *root,
                              struct pb_sar_channel *out);
void pb_sentinel1_noise(struct pb_meta_reader *r, const struct pb_meta_node *root,
                        struct pb_sar_channel *out);
#endif
