/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFIG_PARTS_H
#define PB_CONFIG_PARTS_H
/* The readers and checks that pb_config_parse is made of, and the printers. All of them put
 * mistakes into load->report and go on; running out of memory shows in load->arena. Internal to
 * config/. */
#include "config/notify_config.h"
#include "config/schema.h"

#include <stdint.h>

struct pb_config;
struct pb_input_config;
struct pb_pipeline_config;
struct pb_service_config;
struct pb_web_config;

#define PB_TOP_KEYS 6
extern const char *const pb_top_keys[PB_TOP_KEYS];

/* config_pipelines.c */
void pb_read_pipelines(struct pb_load *load, const struct pb_yaml *root, struct pb_config *config);
/* Takes one list entry apart: "name: {body}", "name:" or "name". False after a mistake. what =
 * "step" or "product"; *out_body may be NULL. */
bool pb_read_entry(struct pb_load *load, const struct pb_yaml *entry, const char *what,
                   const char *example, const struct pb_yaml **out_name,
                   const struct pb_yaml **out_body);

/* Whether a mistake in the node, or in one below it, is in the report. */
bool pb_has_mistake(const struct pb_load *load, const struct pb_yaml *node);

/* Notes about the mistakes of a pipeline. */
#define PB_STEP_NONE SIZE_MAX
struct pb_step_note {
    const struct pb_yaml *entry; /* in the list, or its placeholder */
    size_t step;                 /* of the pipeline; PB_STEP_NONE = it became none */
    bool is_sound;
};
struct pb_pipeline_notes {
    bool is_sound, input_is_sound;
    struct pb_step_note *steps;
    size_t n_steps;
};

/* config_steps.c */
void pb_read_steps(struct pb_load *load, const struct pb_yaml *list,
                   struct pb_pipeline_config *pipeline, struct pb_pipeline_notes *notes);

/* notify/notify_read.c. list NULL: nobody is told. After the pipelines. */
void pb_read_notify(struct pb_load *load, const struct pb_yaml *list, struct pb_config *config);
/* notify_keys.c; their first PB_NOTIFY_COMMON keys are the same */
#define PB_NOTIFY_COMMON 7
extern const struct pb_section *const pb_notify_sections[PB_NOTIFY_KINDS];

/* config_wants.c: what operators want of the input (struct pb_op): bands as they are stored, and
 * the scene's metadata. */
void pb_check_wants(struct pb_load *load, const struct pb_pipeline_config *pipeline,
                    const struct pb_pipeline_notes *notes);

/* config_products.c */
void pb_read_products(struct pb_load *load, const struct pb_yaml *list,
                      struct pb_pipeline_config *pipeline, struct pb_pipeline_notes *notes);
/* After the pipelines: no two products put rows into one series. */
void pb_check_series(struct pb_load *load, const struct pb_config *config);

/* exchange.c. The key `exchange` of a pipeline (NULL = not given), before its steps are read; then
 * what its steps choose. */
void pb_read_exchange(struct pb_load *load, const struct pb_yaml *map,
                      struct pb_pipeline_config *pipeline);
void pb_choose_exchanges(struct pb_load *load, const struct pb_yaml *map,
                         struct pb_pipeline_config *pipeline);

/* config_check.c: builds the pipeline's chain for a scene that has every band the configuration
 * speaks of, and reports its mistakes, without those that follow from the mistakes in the notes.
 * body is the pipeline's node, a map. Marks the
 * files that the outputs depend on (config/input_files.h). */
void pb_check_chain(struct pb_load *load, const struct pb_yaml *body,
                    struct pb_pipeline_config *pipeline, const struct pb_pipeline_notes *notes);

/* streams.c. The keys of an input with a stream. */
void pb_check_stream(struct pb_load *load, const struct pb_yaml *owner, const struct pb_yaml *node,
                     const struct pb_input_config *input);
/* After the pipelines: no two of them have the same stream. */
void pb_check_streams(struct pb_load *load, const struct pb_yaml *pipelines,
                      const struct pb_config *config);

/* inboxes.c. service.inbox and service.inboxes become the list of inboxes. */
void pb_list_inboxes(struct pb_load *load, const struct pb_yaml *section,
                     struct pb_service_config *service);

/* service_store.c: the keys node, store and fetch. */
void pb_check_store(struct pb_load *load, const struct pb_yaml *section,
                    const struct pb_service_config *service);

/* web.c */
void pb_check_web(struct pb_load *load, const struct pb_yaml *section,
                  const struct pb_web_config *web);

/* config_service.c. clean: reading the section brought no mistake. */
void pb_check_service(struct pb_load *load, const struct pb_yaml *section,
                      const struct pb_service_config *service, bool clean);
#endif
