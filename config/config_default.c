/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The default file: every key of every section with its documentation, around one pipeline that
 * works on any four-band scene. config/pushbroom.yaml is this text; a test holds them equal. */
#include "config/config.h"

#include "config/base/text.h"
#include "config/config_parts.h"
#include "config/exchange.h"
#include "config/product_config.h"
#include "wic/pattern/schedule.h"

static void add_section(struct pb_text *out, const struct pb_section *section)
{
    pb_text_add(out, "\n");
    pb_text_comment(out, 0, section->doc);
    pb_text_add(out, "%s:\n", section->name);
    pb_schema_default(out, section, 2);
}

static void add_pipeline(struct pb_text *out, const struct pb_product_kinds *kinds)
{
    pb_text_add(out, "\n");
    pb_text_comment(out, 0,
                    "Processing of scenes. A scene is processed by the first pipeline whose "
                    "input.match fits its name.");
    pb_text_add(out, "pipelines:\n  vegetation:\n");
    pb_schema_default(out, &pb_section_pipeline, 4);
    pb_text_comment(out, 4, pb_section_input.doc);
    pb_text_add(out, "    input:\n");
    pb_schema_default(out, &pb_section_input, 6);
    pb_text_comment(out, 4, pb_section_output.doc);
    pb_text_add(out, "    output:\n");
    pb_schema_default(out, &pb_section_output, 6);
    struct pb_exchange_keys room;
    const struct pb_section *exchange = pb_exchange_section(&wic_pattern_unidirectional, &room);
    pb_text_comment(out, 4, exchange->doc);
    pb_text_add(out, "    exchange:\n");
    pb_schema_default(out, exchange, 6);
    pb_text_comment(out, 4,
                    "Operators, one after the other; each sees the bands of the input and those "
                    "made by the steps before it. 'pushbroom operators' lists them all.");
    pb_text_add(out, "    steps:\n"
                     "      - index: {names: [NDVI, EVI]}\n"
                     "      - math: {bands: {WATER: \"(G - N) / (G + N)\"}}\n");
    pb_text_comment(out, 4, "Products. Any number of each kind, but one stac.");
    pb_text_add(out, "    products:\n");
    for (size_t i = 0; i < kinds->n; i++) {
        const struct pb_section *section = &kinds->kinds[i]->section;
        const bool is_optional = kinds->kinds[i]->is_optional;
        pb_text_comment(out, 6, section->doc);
        pb_text_add(out, "      %s- %s:\n", is_optional ? "# " : "", section->name);
        if (is_optional)
            pb_schema_default_commented(out, section, 6, 5);
        else
            pb_schema_default(out, section, 10);
    }
}

/* As comments: nobody is told of events by default. */
static void add_notify(struct pb_text *out)
{
    pb_text_add(out, "\n");
    pb_text_comment(
        out, 0,
        "Receivers of events, to which pushbroom-notify delivers each at least once. Without this "
        "list there are no receivers. A secret is the path of a file, or the name of a credential "
        "(LoadCredential=) of pushbroom-notify.service.");
    pb_text_add(out, "# notify:\n");
    for (int i = 0; i < PB_NOTIFY_KINDS; i++) {
        struct pb_section section = *pb_notify_sections[i];
        pb_text_add(out, "#   # %s\n#   - %s:\n", section.doc, section.name);
        if (i > 0) { /* what the first has said */
            section.keys += PB_NOTIFY_COMMON;
            section.n -= PB_NOTIFY_COMMON;
            pb_text_add(out, "#       # name to expire: as above.\n");
        }
        pb_schema_default_commented(out, &section, 0, 7);
    }
}

char *pb_config_default_text(const struct pb_product_kinds *kinds)
{
    struct pb_text out = {.text = NULL};
    pb_text_comment(&out, 0, "Configuration of pushbroom, with every key and its default.");
    pb_text_comment(&out, 0,
                    "Sizes: 512MiB, 1.5GiB, 10MB. Durations: 500ms, 2s, 5m, 1h, 1d. "
                    "'pushbroom check-config FILE' finds mistakes and shows what is in effect.");
    add_section(&out, &pb_section_service);
    add_section(&out, &pb_section_compute);
    add_section(&out, &pb_section_limits);
    add_section(&out, &pb_section_web);
    add_pipeline(&out, kinds);
    add_notify(&out);
    return pb_text_take(&out);
}
