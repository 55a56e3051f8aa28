/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_OPTIONS_H
#define PB_RUN_OPTIONS_H
/* Arguments of pb_run_create(): scene, pipeline, place of the products, computing process. */
#include "config/base/err.h"

#include <stdint.h>

struct pb_config;
struct pb_scene_manifest;
struct pb_output_facts;
struct pb_pipeline_config;
struct pb_remote;
struct pb_alert;
struct pb_scene;

/* Needs of the tiles that a plan computes. */
struct pb_run_needs {
    uint64_t tiles;        /* tiles of all passes */
    uint64_t memory_bytes; /* host memory of the plan */
};

struct pb_run_options {
    const struct pb_config *config; /* borrowed until destroy */
    const struct pb_pipeline_config *pipeline;
    /* The scene, with its open files registered before (pb_scene_hand); without open files it is
     * one file, which the run opens by its path, with its metadata; borrowed until destroy. */
    const struct pb_scene *input;
    /* Directory that gets <scene>/<pipeline>/, created when missing; NULL = the run is only created
     * to be explained: no file is touched, no tile allocated. */
    const char *products;
    const char *scene; /* NULL = base name of input without its suffix; copied */
    /* directory: where to write instead of below products. The caller made it, and publishes or
     * removes it afterwards, for the scene directory `place`. Therefore a process that decodes
     * foreign files needs no right to any other place. NULL = the run makes and publishes a
     * directory. Borrowed until destroy. */
    const char *directory, *place;
    /* Receives the bounds of the scene (as in pb_footprint) when its files are open, before the
     * plan; not called if they are unknown. NULL = without. */
    void (*bounds)(void *user, const double bbox[4]);
    /* With directory, for a place that depends on the metadata (place NULL): returns the place,
     * borrowed until destroy; NULL = the run is cancelled. */
    const char *(*locate)(void *user, const struct pb_output_facts *facts);
    /* With directory: returns the input files with their checksums, which the caller computes;
     * waits for them; borrowed until destroy. NULL = the checksums are unknown. */
    int (*inputs)(void *user, struct pb_err *err, const struct pb_scene_manifest **out);
    /* With products: called after the plan is made. Only the polygons' memory is allocated before,
     * because the plan needs them. Returns 0 when the run may allocate `needs` and compute; fails
     * if the run is cancelled. NULL = the run continues immediately. */
    int (*turn)(void *user, const struct pb_run_needs *needs, struct pb_err *err);
    /* Without products: the directory that they would get, whose free space is checked; NULL = no
     * check; borrowed until destroy. */
    const char *room;
    /* Gets alerts while tiles are finished (struct pb_alert). Thread: any of the run. NULL = not
     * wanted. */
    void (*alert)(void *user, const struct pb_alert *alert);
    void *user; /* argument of bounds, locate, inputs, turn and alert */
    /* Reason to use no resident kernel whatever compute.sync is; NULL = as configured; borrowed
     * until destroy. */
    const char *stream_why;
    /* The process that computes; NULL = this one, on the device that config selects; borrowed until
     * destroy. */
    const struct pb_remote *remote;
    const char *name; /* name of the input at delivery; NULL = base name of input; copied */
    const char *job;  /* id for the manifest; NULL if absent; copied */
    unsigned mode;    /* permissions of product files; see struct pb_publish_options */
};
#endif
