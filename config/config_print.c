/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The effective configuration. What it prints loads to the same values again. */
#include "config/config.h"
#include "config/base/text.h"
#include "config/config_parts.h"
#include "config/pipeline_config.h"
#include "config/product_config.h"
#include "config/product_words.h"
#include "config/units.h"
#include "kernels/op.h"
#include "kernels/view.h"

#include <string.h>

static const char *const type_names[PB_TYPE_COUNT] = {
    [PB_U8] = "uint8",   [PB_I16] = "int16",   [PB_U16] = "uint16",  [PB_I32] = "int32",
    [PB_U32] = "uint32", [PB_F32] = "float32", [PB_F64] = "float64",
};
static const char *const compress_names[] = {
    [PB_COMPRESS_NONE] = "none", [PB_COMPRESS_DEFLATE] = "deflate", [PB_COMPRESS_ZSTD] = "zstd",
    [PB_COMPRESS_LZW] = "lzw",   [PB_COMPRESS_JPEG] = "jpeg",       [PB_COMPRESS_WEBP] = "webp",
};

int pb_existing_find(const char *word)
{
    static const char *const words[] = {"refuse", "replace", "version"};
    for (int i = 0; i < 3; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

unsigned pb_products_mode(const struct pb_service_config *service)
{
    static const unsigned modes[] = {0, 0600, 0640, 0644, 0660, 0664};
    return modes[service->products_mode];
}

int32_t pb_device_jobs(const struct pb_service_config *service)
{
    return service->parallel_jobs > 0 ? service->parallel_jobs : 1;
}

int32_t pb_publishing_jobs(const struct pb_service_config *service)
{
    return service->has_duplicates ? 0 : service->publishing_jobs;
}

const char *pb_type_name(enum pb_type type)
{
    return (unsigned)type < PB_TYPE_COUNT ? type_names[type] : "unknown";
}

const char *pb_compress_name(enum pb_compress compress)
{
    return (unsigned)compress < PB_COMPRESS_COUNT ? compress_names[compress] : "unknown";
}

/* A step or product: its name, and its keys below or {}. */
static void add_entry(struct pb_text *out, const struct pb_section *section, const void *values)
{
    pb_text_add(out, "      - %s:", section->name);
    size_t before = out->length;
    pb_text_add(out, "\n");
    pb_schema_print(out, section, values, 10);
    if (!out->failed && out->length == before + 1) { /* no key is set */
        out->length = before;
        pb_text_add(out, " {}\n");
    }
}

char *pb_config_step_text(const struct pb_step_config *step)
{
    struct pb_text out = {.text = NULL};
    const struct pb_section section = pb_op_section(step->op);
    pb_text_add(&out, "%s: ", section.name);
    pb_schema_print_short(&out, &section, step->params);
    return pb_text_take(&out);
}

static void add_pipeline(struct pb_text *out, const struct pb_pipeline_config *pipeline)
{
    pb_text_add(out, "  ");
    pb_text_yaml(out, pipeline->name);
    pb_text_add(out, ":\n");
    pb_schema_print(out, &pb_section_pipeline, pipeline, 4);
    pb_text_add(out, "    input:\n");
    pb_schema_print(out, &pb_section_input, &pipeline->input, 6);
    pb_text_add(out, "    output:\n");
    pb_schema_print(out, &pb_section_output, &pipeline->output, 6);
    struct pb_exchange_keys room;
    pb_text_add(out, "    exchange:\n");
    pb_schema_print(out, pb_exchange_section(pipeline->exchange.pattern, &room),
                    &pipeline->exchange, 6);
    size_t n_steps = pipeline->n_steps; /* those of products come last, and are theirs to say */
    while (n_steps > 0 && pipeline->steps[n_steps - 1].product != NULL)
        n_steps--;
    if (n_steps)
        pb_text_add(out, "    steps:\n");
    for (size_t i = 0; i < n_steps; i++) {
        const struct pb_section section = pb_op_section(pipeline->steps[i].op);
        add_entry(out, &section, pipeline->steps[i].params);
    }
    pb_text_add(out, "    products:\n");
    for (size_t i = 0; i < pipeline->n_products; i++)
        add_entry(out, &pipeline->products[i]->kind->section, pipeline->products[i]);
}

char *pb_config_pipeline_text(const struct pb_pipeline_config *pipeline)
{
    struct pb_text out = {.text = NULL};
    struct pb_exchange_keys room;
    pb_text_yaml(&out, pipeline->name);
    pb_text_add(&out, ": ");
    pb_schema_print_short(&out, &pb_section_pipeline, pipeline);
    pb_text_add(&out, "\ninput: ");
    pb_schema_print_short(&out, &pb_section_input, &pipeline->input);
    pb_text_add(&out, "\noutput: ");
    pb_schema_print_short(&out, &pb_section_output, &pipeline->output);
    pb_text_add(&out, "\nexchange: ");
    pb_schema_print_short(&out, pb_exchange_section(pipeline->exchange.pattern, &room),
                          &pipeline->exchange);
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_section section = pb_op_section(pipeline->steps[i].op);
        if (pipeline->steps[i].product != NULL)
            break; /* the steps of products are the last */
        pb_text_add(&out, "\nstep %s: ", section.name);
        pb_schema_print_short(&out, &section, pipeline->steps[i].params);
    }
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_section *section = &pipeline->products[i]->kind->section;
        pb_text_add(&out, "\nproduct %s: ", section->name);
        pb_schema_print_short(&out, section, pipeline->products[i]);
    }
    return pb_text_take(&out);
}

char *pb_config_print(const struct pb_config *config)
{
    struct pb_text out = {.text = NULL};
    pb_text_add(&out, "service:\n");
    pb_schema_print(&out, &pb_section_service, &config->service, 2);
    pb_text_add(&out, "compute:\n");
    pb_schema_print(&out, &pb_section_compute, &config->compute, 2);
    pb_text_add(&out, "limits:\n");
    pb_schema_print(&out, &pb_section_limits, &config->limits, 2);
    pb_text_add(&out, "web:\n");
    pb_schema_print(&out, &pb_section_web, &config->web, 2);
    pb_text_add(&out, "pipelines:\n");
    for (size_t i = 0; i < config->n_pipelines; i++)
        add_pipeline(&out, &config->pipelines[i]);
    if (config->n_notify > 0)
        pb_text_add(&out, "notify:\n");
    for (size_t i = 0; i < config->n_notify; i++) {
        const struct pb_section *section = pb_notify_sections[config->notify[i].kind];
        pb_text_add(&out, "  - %s:\n", section->name);
        pb_schema_print(&out, section, &config->notify[i], 6);
    }
    return pb_text_take(&out);
}
