/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_CONFIG_FIXTURE_H
#define PB_TEST_CONFIG_FIXTURE_H
/* Configurations that load, for tests of one thread. */
#include "config/base/err.h"
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* The file of the design document, word for word. */
static const char design[] =
    "service:\n"
    "  inbox: /var/lib/pushbroom/inbox          # watched; files are claimed by rename\n"
    "  work: /var/lib/pushbroom/work\n"
    "  products: /var/lib/pushbroom/products    # products/<scene>/<files>\n"
    "  quarantine: /var/lib/pushbroom/quarantine\n"
    "  state: /var/lib/pushbroom/state          # job store\n"
    "  socket: /run/pushbroom/status.sock\n"
    "  settle: 2s                               # size and mtime unchanged = complete\n"
    "compute:\n"
    "  device: auto                             # auto | cpu | cuda | cuda:N\n"
    "  memory: 512MiB                           # all tile buffers together\n"
    "  buffers: auto                            # auto | pinned | managed | host\n"
    "  sync: wic                                # wic | stream\n"
    "  threads: 0                               # 0 = all cores\n"
    "pipelines:\n"
    "  vegetation:\n"
    "    input:\n"
    "      match: [\"*.tif\", \"*.tiff\"]\n"
    "      bands: {B: 1, G: 2, R: 3, N: 4}      # names by band number\n"
    "      scale: 0.0001                        # reflectance = DN * scale + offset\n"
    "      offset: 0.0\n"
    "    steps:\n"
    "      - index: {names: [NDVI, EVI]}\n"
    "      - math: {bands: {WATER: \"(G - N) / (G + N)\"}}\n"
    "    products:\n"
    "      - cog: {bands: [NDVI, EVI, WATER], type: float32, compress: deflate}\n"
    "      - quicklook: {bands: [R, G, B], size: 1024, stretch: [2, 98]}\n"
    "      - statistics: {}\n"
    "      - stac: {}\n";

static struct pb_err_list errors;

/* The configuration of the text; the test fails when it has a mistake. The caller destroys it. */
static inline struct pb_config *parse(const char *text)
{
    struct pb_config *config = NULL;
    int rc = pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config);
    if (rc) {
        char message[900];
        pb_err_text(&errors.err[0], message, sizeof message);
        ck_abort_msg("%s\n%s", message, text);
    }
    return config;
}

/* Loads a configuration of the source tree. */
static inline struct pb_config *load(const char *name)
{
    char path[4096];
    struct pb_config *config = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", PB_SOURCE_DIR, name);
    if (pb_config_load(path, &pb_products, &errors, &config))
        ck_abort_msg("%s:%d:%d: %s", path, errors.err[0].line, errors.err[0].col,
                     errors.err[0].msg);
    return config;
}
#endif
