/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/run_limit.h"

#include "config/base/json_reader.h"
#include "pipeline/run/base/device_report.h"

#include <stdio.h>
#include <string.h>

#define BUSY_SHARE 0.5 /* a stage that is busy for less does not limit the run alone */

struct stage {
    const char *what, *how; /* "decoding on the GPU", "under way" */
    double share;           /* fraction of the time of the phase of the tiles */
};

static double number(const struct pb_json_value *object, const char *key)
{
    double n = pb_json_number_of(pb_json_get(object, key, NULL), 0);
    return n > 0 ? n : 0;
}

static void take(struct stage *busiest, const char *what, const char *how, double share)
{
    if (share > busiest->share)
        *busiest = (struct stage){what, how, share};
}

/* Finds an object by its name in a list. */
static const struct pb_json_value *named(const struct pb_json_value *list, const char *name)
{
    for (size_t i = 0; i < pb_json_count(list); i++) {
        const char *own = pb_json_get_text(pb_json_at(list, i), "name");
        if (own != NULL && strcmp(own, name) == 0)
            return pb_json_at(list, i);
    }
    return NULL;
}

static double busy_share(const struct pb_json_value *stage, double elapsed_ms)
{
    double thread_ms = elapsed_ms * number(stage, "threads");
    return thread_ms > 0 ? number(stage, "busy_ms") / thread_ms : 0;
}

/* Returns true if work of kind a took longer on the cores than b. */
static bool is_more(const struct pb_core_facts *facts, enum pb_work a, enum pb_work b)
{
    const uint64_t *ns = facts->part[PB_RUN_TILES].work.cpu_ns;
    return ns[a] > ns[b];
}

static struct stage find_stage(const struct pb_core_facts *facts,
                               const struct pb_json_value *report)
{
    static const char *const work[PB_DEVICE_WORKS] = {"decoding on the GPU", "computing on the GPU",
                                                      "encoding on the GPU"};
    const struct pb_json_value *link = pb_json_get(report, "link", NULL),
                               *gpu = pb_json_get(report, "gpu", NULL),
                               *stages = pb_json_get(report, "stages", NULL);
    double elapsed_ms = number(report, "elapsed_ms");
    struct stage busiest = {"", "", 0};
    for (int i = 0; i < PB_DEVICE_WORKS; i++)
        take(&busiest, work[i], "under way",
             number(
                 named(pb_json_get(gpu, "work", NULL), pb_device_work_name((enum pb_device_work)i)),
                 "share"));
    take(&busiest, "the link to the GPU", "in use", number(link, "to_device_share"));
    take(&busiest, "the link from the GPU", "in use", number(link, "from_device_share"));
    take(&busiest,
         is_more(facts, PB_WORK_DECODE, PB_WORK_LOAD) ? "decoding on the cores" : "reading",
         "its threads busy", busy_share(named(stages, "read"), elapsed_ms));
    take(&busiest,
         is_more(facts, PB_WORK_ENCODE, PB_WORK_STORE) ? "encoding on the cores" : "writing",
         "its threads busy", busy_share(named(stages, "write"), elapsed_ms));
    return busiest;
}

void pb_run_limit_find(const struct pb_core_facts *facts, const struct pb_json_value *report,
                       char out[PB_RUN_LIMIT_BYTES])
{
    const struct pb_part_report *part = facts->part;
    double open = (double)part[PB_RUN_OPEN].wall_ns / 1e9,
           tiles = (double)part[PB_RUN_TILES].wall_ns / 1e9,
           after = (double)(part[PB_RUN_FINISH].wall_ns + part[PB_RUN_PUBLISH].wall_ns) / 1e9;
    double all = open + tiles + after;
    out[0] = '\0';
    if (all <= 0 || pb_json_get(report, "link", NULL) == NULL)
        return;
    if (after >= tiles && after >= open) {
        (void)snprintf(out, PB_RUN_LIMIT_BYTES,
                       "publishing: %.2f of %.2f s are after the last tile", after, all);
        return;
    }
    if (open >= tiles) {
        (void)snprintf(out, PB_RUN_LIMIT_BYTES,
                       "setting up: %.2f of %.2f s are before the first tile", open, all);
        return;
    }
    struct stage busiest = find_stage(facts, report);
    if (busiest.share < BUSY_SHARE)
        (void)snprintf(out, PB_RUN_LIMIT_BYTES,
                       "no stage alone: in the %.2f s of tiles the busiest is %s%s%s (%.0f%%)",
                       tiles, busiest.share > 0 ? busiest.what : "none",
                       busiest.share > 0 ? ", " : "", busiest.how, 100 * busiest.share);
    else
        (void)snprintf(out, PB_RUN_LIMIT_BYTES, "%s: %s %.0f%% of the %.2f s of tiles",
                       busiest.what, busiest.how, 100 * busiest.share, tiles);
}
