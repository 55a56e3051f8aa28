/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Plans usual scenes like a run whose blocks the host decodes, and prints the plan of the resident
 * kernel. */
#include "pipeline/tune/device_plan.h"
#include "pipeline/plan/choose.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/plan.h"

#include <stdio.h>
#include <string.h>

enum { SCENE_PX = 10980, BLOCK_PX = 512 };

static const struct scene {
    int32_t bands;
    const char *bands_text, *chain, *steps;
} scenes[PB_DEVICE_PLANS] = {
    {2, "R: 1, N: 2", "index", "- index: {names: [NDVI]}\n      - math: {bands: {OUT: \"NDVI\"}}"},
    {4, "B: 1, G: 2, R: 3, N: 4", "math", "- math: {bands: {OUT: \"(B + G) / (R + N)\"}}"},
    {13, "", "math",
     "- math: {bands: {OUT: \"B1 + B2 + B3 + B4 + B5 + B6 + B7 + B8 + B9 + B10 + B11 + B12 + "
     "B13\"}}"},
    {1, "N: 1", "15 x 15 blur", "- convolve: {kernel: gaussian, size: 15, bands: {OUT: N}}"},
};

static int configure(const struct scene *scene, struct pb_config **out_config)
{
    char text[1000];
    struct pb_err_list errors;
    char bands[100] = "";
    if (scene->bands_text[0] != '\0')
        (void)snprintf(bands, sizeof bands, ", bands: {%s}", scene->bands_text);
    (void)snprintf(text, sizeof text,
                   "compute: {threads: 1, memory: 4GiB, codecs: host}\n"
                   "pipelines:\n"
                   "  usual:\n"
                   "    input: {match: [\"*\"]%s}\n"
                   "    steps:\n"
                   "      %s\n"
                   "    products:\n"
                   "      - cog: {bands: [OUT]}\n",
                   bands, scene->steps);
    return pb_config_parse(text, strlen(text), "usual", &pb_products, &errors, out_config);
}

static int plan_scene(const struct scene *scene, const struct pb_config *config,
                      const struct pb_device_traits *traits, struct pb_plan **out_plan)
{
    const struct pb_raster_info info = {.width = SCENE_PX,
                                        .height = SCENE_PX,
                                        .n_bands = scene->bands,
                                        .type = PB_U16,
                                        .block_w = BLOCK_PX,
                                        .block_h = BLOCK_PX,
                                        .stored_block_bytes = BLOCK_PX * BLOCK_PX * 2};
    const struct pb_plan_request request = {.config = config,
                                            .pipeline = &config->pipelines[0],
                                            .info = &info,
                                            .cuda = true,
                                            .traits = traits};
    struct pb_err err = {0};
    return pb_plan_create(&request, &err, out_plan);
}

static void describe(const struct scene *scene, const struct pb_device_traits *traits,
                     struct pb_device_plan *out)
{
    struct pb_config *config = NULL;
    struct pb_plan *plan = NULL;
    int rc = configure(scene, &config);
    if (rc == 0)
        rc = plan_scene(scene, config, traits, &plan);
    int32_t side = rc == 0 ? plan->layout.grid.side_px : 0;
    (void)snprintf(out->tile, sizeof out->tile, "%d x %d px, %d band%s of uint16, %s", side, side,
                   scene->bands, scene->bands == 1 ? "" : "s", scene->chain);
    if (rc == 0 && plan->engine.resident.used)
        (void)wic_transfer_plan_print(&plan->engine.resident.chunks, out->plan, sizeof out->plan);
    else
        (void)snprintf(out->plan, sizeof out->plan, "none: %s",
                       rc == 0 ? plan->engine.resident.why_not : "out of memory");
    out->measured = rc == 0 && plan->engine.resident.measured;
    pb_plan_destroy(plan);
    pb_config_destroy(config);
}

void pb_device_plan_list(const struct pb_device_traits *traits,
                         struct pb_device_plan out[PB_DEVICE_PLANS])
{
    for (int i = 0; i < PB_DEVICE_PLANS; i++)
        describe(&scenes[i], traits, &out[i]);
}

int pb_device_plans(int32_t index, struct pb_device_plan out[PB_DEVICE_PLANS])
{
    struct pb_device_traits traits;
    if (pb_device_traits(index, &traits) != 0)
        return 0;
    pb_device_plan_list(&traits, out);
    return PB_DEVICE_PLANS;
}
