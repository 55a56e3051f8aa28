/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SENTINEL1_GEOMETRY_H
#define PB_SENTINEL1_GEOMETRY_H
/* Geometry of a ground range image (GRD) from its annotation, stored in the reader's facts
 * (pb_sar.geometry): orbit, times of lines, polynomials between slant and ground range. If the
 * annotation lacks it, the facts have the reason. Polarisations of a scene have the same
 * geometry: a different one is a conflict. One thread. */
struct pb_meta_reader;
struct pb_meta_node;
struct pb_sar_channel;

/* channel: of the annotation; its width and height are known, or 0. */
void pb_sentinel1_geometry(struct pb_meta_reader *r, const struct pb_meta_node *root,
                           const struct pb_sar_channel *channel);
#endif
