/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/stays.h"

#include "config/base/clock.h"

#include <stdio.h>
#include <string.h>

static void add(struct pb_stays *out, const char *name, enum pb_settle_reason reason,
                enum pb_code code, const char *text)
{
    if (out->n == PB_STAYS_MAX)
        return;
    struct pb_stay *stay = &out->at[out->n++];
    size_t n = strlen(name), room = sizeof stay->name - 1;
    (void)snprintf(stay->name, sizeof stay->name, "%s", n <= room ? name : name + n - room);
    (void)snprintf(stay->text, sizeof stay->text, "%s", text);
    stay->reason = reason;
    stay->code = code;
}

static void collect_left(struct pb_left *left, enum pb_settle_reason reason, struct pb_stays *out)
{
    const struct pb_left_entry *first[PB_LEFT_FIRST_MAX];
    size_t n = pb_left_first(left, reason, first);
    for (size_t i = 0; i < n; i++)
        add(out, first[i]->name, reason, first[i]->code, first[i]->text);
}

/* Collects the files whose claims were refused. */
static void collect_refused(const struct pb_settle *settle, struct pb_stays *out)
{
    for (size_t i = 0; i < pb_settle_count(settle); i++) {
        const struct pb_settle_note *note = pb_settle_note(settle, i);
        if (note == NULL || note->reason != PB_SETTLE_REFUSED)
            continue;
        out->n_refused++;
        add(out, pb_settle_at(settle, i)->name, note->reason, note->code, note->text);
    }
}

void pb_stays_collect(struct pb_left *left, const struct pb_settle *settle, struct pb_stays *out)
{
    int64_t due_ms;
    out->n = 0;
    out->n_refused = pb_left_count(left, PB_SETTLE_REFUSED);
    out->n_foreign = pb_left_count(left, PB_SETTLE_FOREIGN);
    out->n_settling = pb_settle_settling(settle, &due_ms);
    out->settled_ms = out->n_settling > 0 ? pb_clock_wall_ms() + due_ms - pb_clock_mono_ms() : 0;
    collect_left(left, PB_SETTLE_REFUSED, out);
    collect_refused(settle, out);
    collect_left(left, PB_SETTLE_FOREIGN, out);
}
