/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/core_use.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_TOLD  0.05 /* least share that the line mentions */
#define LINE_TOLD   4U   /* most kinds that the line mentions */
#define SHARE_LEAST 0.005

struct list {
    struct pb_core_uses *out;
    uint32_t cores;
    double core_ns; /* core time that was available */
};

__attribute__((format(printf, 3, 4))) static void add(struct list *list, double ns,
                                                      const char *format, ...)
{
    struct pb_core_uses *out = list->out;
    va_list arguments;
    if (list->core_ns <= 0 || ns < SHARE_LEAST * list->core_ns || out->n == PB_CORE_USES_MAX)
        return;
    struct pb_core_use *use = &out->use[out->n++];
    use->share = ns / list->core_ns;
    va_start(arguments, format);
    (void)vsnprintf(use->words, sizeof use->words, format, arguments);
    va_end(arguments);
    use->brief = strcspn(use->words, "%");
    use->brief += use->words[use->brief] == '%';
}

/* Makes "of both cores". */
static const char *of_cores(uint32_t cores, char *text, size_t bytes)
{
    if (cores == 1)
        return "of the core";
    if (cores == 2)
        return "of both cores";
    (void)snprintf(text, bytes, "of %u cores", cores);
    return text;
}

static void add_share(struct list *list, double ns, const char *what)
{
    char of[24];
    add(list, ns, "%s: %.0f%% %s", what, 100 * ns / list->core_ns,
        of_cores(list->cores, of, sizeof of));
}

static uint64_t cpu_of(const struct pb_part_report *part)
{
    uint64_t ns = 0;
    for (int k = 0; k < PB_WORK_KINDS; k++)
        ns += part->work.cpu_ns[k];
    return ns;
}

/* Makes "(sync 0.3 s, checksum 0.2 s)" from the two longest activities of the threads. */
static void name_longest(const struct pb_part_report *part, char *text, size_t bytes)
{
    int first = -1, second = -1;
    const uint64_t *ns = part->work.wall_ns;
    for (int k = 0; k < PB_WORK_KINDS; k++) {
        if (k == PB_WORK_WAIT || k == PB_WORK_OTHER || ns[k] == 0)
            continue;
        if (first < 0 || ns[k] > ns[first]) {
            second = first;
            first = k;
        } else if (second < 0 || ns[k] > ns[second]) {
            second = k;
        }
    }
    text[0] = '\0';
    if (first < 0)
        return;
    int n = snprintf(text, bytes, " (%s %.2f s", pb_work_name((enum pb_work)first),
                     (double)ns[first] / 1e9);
    if (second >= 0 && 10 * ns[second] >= ns[first] && n > 0)
        n += snprintf(text + n, bytes - (size_t)n, ", %s %.2f s",
                      pb_work_name((enum pb_work)second), (double)ns[second] / 1e9);
    (void)snprintf(text + n, bytes - (size_t)n, ")");
}

/* Adds a phase that finishes no tiles. */
static void add_phase(struct list *list, const struct pb_part_report *part, const char *when)
{
    double cpu = (double)cpu_of(part), wall = (double)part->wall_ns;
    char longest[80], on[32] = "one core";
    name_longest(part, longest, sizeof longest);
    if (cpu > 1.1 * wall)
        (void)snprintf(on, sizeof on, "%.1f cores", cpu / wall);
    if (cpu < 0.1 * wall)
        (void)snprintf(on, sizeof on, "no core");
    add(list, list->cores * wall - cpu, "%s: %.2f s on %s%s", when, wall / 1e9, on, longest);
}

/* Adds the idle cores of the phase of the tiles. */
static void add_idle(struct list *list, const struct pb_part_report *part)
{
    double idle = list->cores * (double)part->wall_ns - (double)cpu_of(part), asleep = 0;
    for (int k = 0; k < PB_WORK_KINDS; k++)
        asleep += (double)part->work.storage_ns[k];
    double storage = asleep < idle ? asleep : idle;
    add_share(list, storage, "waiting for storage");
    add_share(list, idle - storage, "idle, or with other programs, while tiles went through");
}

static int by_share(const void *a, const void *b)
{
    double first = ((const struct pb_core_use *)a)->share,
           second = ((const struct pb_core_use *)b)->share;
    return first < second ? 1 : first > second ? -1 : 0;
}

static void make_line(struct pb_core_uses *uses)
{
    size_t at = 0;
    bool is_named = false; /* true once the line has named the cores */
    uses->line[0] = '\0';
    unsigned told = 0;
    for (size_t i = 0; i < uses->n && told < LINE_TOLD; i++) {
        if (uses->use[i].in_phase || (told > 0 && uses->use[i].share < SHARE_TOLD))
            continue;
        const struct pb_core_use *use = &uses->use[i];
        size_t words = is_named ? use->brief : strlen(use->words);
        is_named = is_named || use->words[use->brief] != '\0';
        int n = snprintf(uses->line + at, sizeof uses->line - at, "%s%.*s", told++ > 0 ? "; " : "",
                         (int)words, use->words);
        at += n > 0 && at + (size_t)n < sizeof uses->line ? (size_t)n : 0;
    }
}

void pb_core_uses_find(const struct pb_core_facts *facts, struct pb_core_uses *out)
{
    struct list list = {.out = out, .cores = facts->cores};
    uint64_t counted = 0;
    *out = (struct pb_core_uses){.n = 0};
    for (int p = 0; p < PB_RUN_PARTS; p++) {
        list.core_ns += facts->cores * (double)facts->part[p].wall_ns;
        counted += cpu_of(&facts->part[p]);
    }
    for (int k = 0; k < PB_WORK_KINDS; k++) {
        double ns = 0;
        for (int p = 0; p < PB_RUN_PARTS; p++)
            ns += (double)facts->part[p].work.cpu_ns[k];
        size_t n = out->n;
        if (k != PB_WORK_OTHER)
            add_share(&list, ns, pb_work_name((enum pb_work)k));
        else
            counted -= (uint64_t)ns;
        if (out->n > n)
            out->use[n].in_phase = k == PB_WORK_OPEN || k == PB_WORK_FINISH || k == PB_WORK_PUBLISH;
    }
    out->other_ns = facts->process_ns > counted ? facts->process_ns - counted : 0;
    add_share(&list, (double)out->other_ns, pb_work_name(PB_WORK_OTHER));
    add_phase(&list, &facts->part[PB_RUN_OPEN], "before the first tile");
    add_idle(&list, &facts->part[PB_RUN_TILES]);
    add_phase(&list, &facts->part[PB_RUN_FINISH], "after the last tile");
    add_phase(&list, &facts->part[PB_RUN_PUBLISH], "publishing");
    qsort(out->use, out->n, sizeof out->use[0], by_share);
    make_line(out);
}
