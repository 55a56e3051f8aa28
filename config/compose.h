/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPOSE_H
#define PB_COMPOSE_H
/* Puts the files of a configuration together, as trees, before anything is read by the schema:
 * pipelines of pipelines.d join those of the main file; an input that names a preset becomes the
 * preset's, in which the other keys of the input replace those of the same name; a mask without a
 * band of its own gets the quality band of its input. Internal to config/. */

struct pb_load;
struct pb_yaml;

/* root: of the main file, a map. Returns it, or the one that takes its place. Mistakes are
 * reported. */
const struct pb_yaml *pb_compose(struct pb_load *load, const struct pb_yaml *root);
#endif
