/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFIG_H
#define PB_CONFIG_H
/* The configuration as one read-only value. Loading checks everything that can be known without an
 * image: syntax, names, types, ranges, operators and their parameters, expressions, products. All
 * mistakes of a file are reported at once (up to PB_CONFIG_ERRORS_MAX). The value owns every string
 * in it. Any thread may read. */
#include "config/compute_config.h"
#include "config/limits_config.h"
#include "config/service_config.h"
#include "config/web_config.h"

#include <stdatomic.h>
#include <stddef.h>

struct pb_err_list;
struct pb_notify_config;   /* config/notify_config.h */
struct pb_pipeline_config; /* config/pipeline_config.h */
struct pb_product_kinds;   /* config/product_config.h */
struct pb_section;
struct pb_step_config;

struct pb_config {
    const struct pb_product_kinds *kinds; /* borrowed */
    char *path;                           /* as given, for messages */
    char *text;                           /* text of all its files, for pb_config_parse */
    const char *const *files;             /* their names by number, the first is path */
    struct pb_service_config service;
    struct pb_compute_config compute;
    struct pb_limits limits;
    struct pb_web_config web;
    struct pb_pipeline_config *pipelines;
    size_t n_pipelines;
    struct pb_notify_config *notify;
    size_t n_notify;
    void *memory;      /* arena that owns everything above */
    atomic_uint holds; /* pb_config_hold calls whose pb_config_destroy is missing yet */
};

/* Reads and checks a file with the presets that it names and, if it is called pushbroom.yaml, the
 * files of pipelines.d in the same directory; path may be the name of a preset (config/presets.h).
 * 0 and *out_config (the caller's, destroy it), or a negative errno and at least one error in
 * *errors. path is borrowed. Thread: any. */
int pb_config_load(const char *path, const struct pb_product_kinds *kinds,
                   struct pb_err_list *errors, struct pb_config **out_config);
/* The same from text in memory, of one file or as `text` of a configuration has several, without
 * opening any; name is what messages call it. */
int pb_config_parse(const char *text, size_t bytes, const char *name,
                    const struct pb_product_kinds *kinds, struct pb_err_list *errors,
                    struct pb_config **out_config);
/* Keeps the configuration for one more pb_config_destroy. Thread: any. */
struct pb_config *pb_config_hold(const struct pb_config *config);
/* Frees the configuration, unless it is held. NULL is allowed. Thread: any. */
void pb_config_destroy(struct pb_config *config);
/* The name of the file that a line of the configuration is of (of a step, an item, ...), and its
 * number there. */
const char *pb_config_place(const struct pb_config *config, int line, int *out_line);
const struct pb_pipeline_config *pb_config_pipeline(const struct pb_config *config,
                                                    const char *name);
/* The pipeline of a stream of lines (input.stream); NULL = none has it. */
const struct pb_pipeline_config *pb_config_stream(const struct pb_config *config,
                                                  const char *stream);

/* What is no mistake, but does not do what was probably meant, in the order of the file: pipelines
 * that no file reaches, as an earlier one takes all that fits (of patterns with '?' and '[' only
 * equal ones are recognised), and those whose every job would fail. text is borrowed for the call.
 */
typedef void pb_config_warning(void *user, const char *file, int line, int col, const char *text);
void pb_config_warnings(const struct pb_config *config, pb_config_warning *warn, void *user);

/* The effective configuration as YAML (defaults filled in); malloc'd string, the caller's. */
char *pb_config_print(const struct pb_config *config);
/* The text of one pipeline in the form of pb_config_print, without the values that are defaults of
 * keys: a version with a further key makes the same text. malloc'd. */
char *pb_config_pipeline_text(const struct pb_pipeline_config *pipeline);
/* A step on one line, without what has its default: "index: {names: [NDVI]}"; malloc'd. */
char *pb_config_step_text(const struct pb_step_config *step);
/* All sections of keys, with their places in a file ("pipelines.NAME.input"): for documents. Those
 * of operators are found by kernels/op.h. */
void pb_config_sections(const struct pb_product_kinds *kinds,
                        void (*visit)(void *user, const char *path,
                                      const struct pb_section *section),
                        void *user);
/* The commented default file, generated from the schema; malloc'd string, the caller's. */
char *pb_config_default_text(const struct pb_product_kinds *kinds);
#endif
