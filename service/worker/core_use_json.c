/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/core_use.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"

#include <math.h>
#include <string.h>

#define MS_MAX 1e12 /* 30 years */

/* Prints milliseconds, rounded to whole microseconds. */
static void print_ms(struct pb_json *json, const char *key, uint64_t ns)
{
    pb_json_number(json, key, round((double)ns / 1e3) / 1e3);
}

static void print_part(struct pb_json *json, int p, const struct pb_part_report *part)
{
    uint64_t cpu = 0;
    for (int k = 0; k < PB_WORK_KINDS; k++)
        cpu += part->work.cpu_ns[k];
    pb_json_object(json, NULL);
    pb_json_string(json, "name", pb_run_part_name((enum pb_run_part)p));
    print_ms(json, "wall_ms", part->wall_ns);
    print_ms(json, "cpu_ms", cpu);
    pb_json_array(json, "work");
    for (int k = 0; k < PB_WORK_KINDS; k++) {
        if (part->work.wall_ns[k] == 0 && part->work.cpu_ns[k] == 0 &&
            part->work.storage_ns[k] == 0)
            continue;
        pb_json_object(json, NULL);
        pb_json_string(json, "name", pb_work_name((enum pb_work)k));
        print_ms(json, "cpu_ms", part->work.cpu_ns[k]);
        print_ms(json, "wall_ms", part->work.wall_ns[k]);
        print_ms(json, "storage_ms", part->work.storage_ns[k]);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

void pb_core_facts_print(const struct pb_core_facts *facts, struct pb_json *json)
{
    pb_json_int(json, "cores", facts->cores);
    print_ms(json, "cpu_ms", facts->process_ns);
    pb_json_array(json, "phases");
    for (int p = 0; p < PB_RUN_PARTS; p++)
        if (facts->part[p].wall_ns > 0)
            print_part(json, p, &facts->part[p]);
    pb_json_end(json);
}

void pb_core_uses_print(const struct pb_core_uses *uses, struct pb_json *json)
{
    pb_json_string(json, "limit", uses->line[0] != '\0' ? uses->line : NULL);
    pb_json_array(json, "limits");
    for (size_t i = 0; i < uses->n; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "words", uses->use[i].words);
        pb_json_number(json, "share", round(uses->use[i].share * 1e4) / 1e4);
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* --- reading ---------------------------------------------------------------------------------*/

static double number(const struct pb_json_value *object, const char *key)
{
    double n = pb_json_number_of(pb_json_get(object, key, NULL), 0);
    return n > 0 && n < MS_MAX ? n : 0;
}

static uint64_t read_ms(const struct pb_json_value *object, const char *key)
{
    return (uint64_t)(number(object, key) * 1e6);
}

static void read_part(const struct pb_json_value *from, struct pb_part_report *out)
{
    const struct pb_json_value *work = pb_json_get(from, "work", NULL);
    out->wall_ns = read_ms(from, "wall_ms");
    for (size_t i = 0; i < pb_json_count(work); i++) {
        const struct pb_json_value *one = pb_json_at(work, i);
        const char *name = pb_json_get_text(one, "name");
        for (int k = 0; name != NULL && k < PB_WORK_KINDS; k++) {
            if (strcmp(name, pb_work_name((enum pb_work)k)) != 0)
                continue;
            out->work.cpu_ns[k] = read_ms(one, "cpu_ms");
            out->work.wall_ns[k] = read_ms(one, "wall_ms");
            out->work.storage_ns[k] = read_ms(one, "storage_ms");
        }
    }
}

void pb_core_facts_read(const struct pb_json_value *report, struct pb_core_facts *out)
{
    const struct pb_json_value *phases = pb_json_get(report, "phases", NULL);
    *out = (struct pb_core_facts){.cores = (uint32_t)fmin(number(report, "cores"), 1e6),
                                  .process_ns = read_ms(report, "cpu_ms")};
    for (size_t i = 0; i < pb_json_count(phases); i++) {
        const char *name = pb_json_get_text(pb_json_at(phases, i), "name");
        for (int p = 0; name != NULL && p < PB_RUN_PARTS; p++)
            if (strcmp(name, pb_run_part_name((enum pb_run_part)p)) == 0)
                read_part(pb_json_at(phases, i), &out->part[p]);
    }
}
