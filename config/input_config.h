/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_CONFIG_H
#define PB_INPUT_CONFIG_H
/* The section `input` of a pipeline: bands, files and sources. Its owner is struct pb_config.
 * Read-only; any thread. */
#include "config/input_values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_group_pattern;

struct pb_band_config {
    char *name;
    int32_t index; /* 1-based */
};

/* A file that a pipeline reads beside the one that gives the grid. */
struct pb_source_config {
    char *name;
    char *file; /* path; {scene} = base name of the delivered file without its suffix; relative
                   paths begin at the configuration's directory. of_scene: a pattern, as in struct
                   pb_file_config, or of a page its name, such as "page 4" */
    struct pb_band_config *bands;
    size_t n_bands;
    double scale, offset;
    bool has_nodata; /* overrides the file's */
    double nodata;
    bool has_complex; /* else complex pixels are refused */
    int32_t complex;  /* enum pb_complex_as */
    int32_t resample; /* enum pb_bring */
    bool of_scene;    /* one of input.files, or a page of the scene's file */
    int32_t nth;      /* of_scene: as in struct pb_file_config */
    int32_t page;     /* of_scene: as in struct pb_file_config */
    bool optional;
    bool is_needed; /* an output may depend on it; known when the load is over */
};

/* An entry of input.files: one band of a scene of many files. */
struct pb_file_config {
    char *band;
    char *match;      /* pattern (config/base/glob.h) of the base name, or with a slash of the path
                         inside the scene;      {scene} = the scene's name; upper and lower case are
                         alike */
    int32_t nth;      /* place among the matching files in input.order, from 1; 0: one matches */
    int32_t optional; /* not 0: a scene without the file has the band, valid nowhere */
    int32_t index;    /* of the band in the file, 1-based */
    int32_t page;     /* of a TIFF that has the band, from 1; 0: its first image */
    int32_t resample; /* enum pb_bring */
    double scale, offset;
    bool has_scale, has_offset; /* else those of the input */
    bool has_nodata;
    double nodata;
    bool has_complex; /* else as the input */
    int32_t complex;  /* enum pb_complex_as */
};

/* When a scene of many files is complete. */
struct pb_complete_config {
    int32_t all;       /* not 0: every file of input.files, else those that outputs need */
    int64_t expire_ms; /* how long the service waits for what is missing */
    int64_t reopen_ms; /* for how long after its last job loose files may join a scene; 0 = never */
};

/* The band whose values say which pixels are clouds and the like. */
struct pb_quality_config {
    char *band, *preset; /* as in the operator mask */
};

enum pb_when_full { PB_FULL_WAIT, PB_FULL_DROP_OLDEST };

/* A stream of lines: its scenes, and who may write it. */
struct pb_lines_config {
    int32_t every;      /* lines of a scene, at most */
    int64_t silence_ms; /* a scene that no line was added to for this long is closed */
    int32_t when_full;  /* enum pb_when_full */
    char **writers;     /* users (names or numbers) who may write */
    size_t n_writers;
    char *token; /* file with a token that permits any user to write; NULL = absent */
};

struct pb_input_config {
    char *preset; /* NULL once it is in effect: the other members are what it says then */
    char **match; /* patterns (config/base/glob.h) for the base name */
    size_t n_match;
    char *scene;     /* pattern of the folders that are a scene each; NULL = none */
    char **archives; /* patterns of the names of archives that hold scenes, in addition to those
                        that scene and group fit */
    size_t n_archives;
    char *group; /* regular expression of the names of loose files that make a scene; NULL = none */
    char *by;    /* the scene's name from groups of the expression; NULL = its group "scene" */
    int32_t order;                          /* enum pb_file_order */
    struct pb_group_pattern *group_pattern; /* compiled; the config's */
    struct pb_file_config *files; /* of a scene of many files; n_files 0 = scenes are one file */
    size_t n_files;
    char *list;      /* pattern of the file that lists the scene's; NULL = none */
    char *grid;      /* the band whose grid is the scene's; NULL = the first of files */
    char **metadata; /* patterns of the files with the product's metadata */
    size_t n_metadata;
    bool metadata_each; /* files are counted, and each has metadata of its own: what those say of
                           one file is asked (order: cloud, {meta.*} of by) */
    char **sidecars;    /* endings of files beside the scene's that GDAL is to see */
    size_t n_sidecars;
    struct pb_complete_config complete;
    bool has_complete;
    struct pb_quality_config quality;
    bool has_quality;
    char *stream; /* name of the stream whose lines are its scenes; NULL = scenes are files */
    struct pb_lines_config lines;
    bool has_lines;
    double scale, offset;
    bool has_nodata; /* overrides the file's */
    double nodata;
    int32_t valid;    /* enum pb_valid */
    bool has_complex; /* else complex pixels are refused */
    int32_t complex;  /* enum pb_complex_as */
    int32_t pages;    /* not 0: the scene's file has a page for each band, and numbers of own_bands
                         are those of pages */
    struct pb_band_config *own_bands; /* as written: input.bands, input.sources */
    size_t n_own_bands;
    struct pb_source_config *own_sources;
    size_t n_own_sources;
    /* What follows from the above (config/input_files.h): the bands of the file that gives the
     * grid, how they are scaled, and all other files, those of the scene first. With pages, a page
     * is like a file. */
    char *file;                   /* pattern of that file; NULL = the scene is one file */
    int32_t file_nth, file_page;  /* as in struct pb_file_config */
    struct pb_band_config *bands; /* empty: B1, B2, ... by number */
    size_t n_bands;
    struct pb_source_config *sources;
    size_t n_sources;
};
#endif
