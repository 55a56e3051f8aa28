/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The sections of the configuration with their places in the file. */
#include "config/config_parts.h"

#include "config/config.h"
#include "config/exchange.h"
#include "config/product_config.h"
#include "wic/pattern/schedule.h"

#include <stdio.h>

void pb_config_sections(const struct pb_product_kinds *kinds,
                        void (*visit)(void *user, const char *path,
                                      const struct pb_section *section),
                        void *user)
{
    struct pb_exchange_keys room;
    char path[120];
    const struct {
        const char *path;
        const struct pb_section *section;
    } parts[] = {
        {"service", &pb_section_service},
        {"service.inboxes", &pb_section_inbox},
        {"service.inboxes.complete", &pb_section_inbox_complete},
        {"service.retention", &pb_section_retention},
        {"service.duplicates", &pb_section_duplicates},
        {"service.unmatched", &pb_section_unmatched},
        {"service.store", &pb_section_store},
        {"service.fetch", &pb_section_fetch},
        {"compute", &pb_section_compute},
        {"limits", &pb_section_limits},
        {"web", &pb_section_web},
        {"pipelines.NAME", &pb_section_pipeline},
        {"pipelines.NAME.input", &pb_section_input},
        {"pipelines.NAME.input.files.BAND", &pb_section_file},
        {"pipelines.NAME.input.quality", &pb_section_quality},
        {"pipelines.NAME.input.lines", &pb_section_lines},
        {"pipelines.NAME.input.complete", &pb_section_complete},
        {"pipelines.NAME.input.sources.NAME", &pb_section_source},
        {"pipelines.NAME.output", &pb_section_output},
        {"pipelines.NAME.exchange", pb_exchange_section(&wic_pattern_unidirectional, &room)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        visit(user, parts[i].path, parts[i].section);
    for (size_t i = 0; i < kinds->n; i++) {
        (void)snprintf(path, sizeof path, "pipelines.NAME.products: %s",
                       kinds->kinds[i]->section.name);
        visit(user, path, &kinds->kinds[i]->section);
    }
    for (int i = 0; i < PB_NOTIFY_KINDS; i++) {
        (void)snprintf(path, sizeof path, "notify: %s", pb_notify_sections[i]->name);
        visit(user, path, pb_notify_sections[i]);
    }
}
