/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/pairing.h"

#include <stdio.h>

/* Notes that the input waits for its marker or checksum file. */
static void note_missing(struct pb_settle *settle, size_t i, const char *companion)
{
    struct pb_settle_note note = {.reason = PB_SETTLE_LACKS, .code = PB_E_INPUT_INCOMPLETE};
    (void)snprintf(note.text, sizeof note.text, "%.400s is missing", companion);
    pb_settle_set_note(settle, i, &note);
}

static void sort_one(const struct pb_inbox *inbox, struct pb_settle *settle, size_t i,
                     struct pb_pairing *out)
{
    char other[PB_FILES_PATH_BYTES] = "";
    size_t k;
    const struct pb_settle_file *file = pb_settle_at(settle, i);
    if (!file->is_folder && pb_companion_input(&inbox->companion, file->name, other)) {
        bool is_still = pb_settle_decide(settle, i, PB_SETTLE_ASIDE);
        if (pb_settle_find(settle, other, &k) || !is_still)
            return;
        if (out->n_alone++ == 0)
            (void)snprintf(out->first, sizeof out->first, "%s", file->name);
        return;
    }
    bool has = pb_companion_of(&inbox->companion, file->name, other) &&
               pb_settle_find(settle, other, &k) && !pb_settle_at(settle, k)->is_folder;
    const struct pb_settle_note *note = pb_settle_note(settle, i);
    if (note != NULL && note->reason == PB_SETTLE_LACKS)
        pb_settle_set_note(settle, i, NULL);
    if (!has && pb_settle_decide(settle, i, PB_SETTLE_WAIT))
        note_missing(settle, i, other);
    else if (!has)
        return;
    else if (inbox->companion.kind == PB_COMPANION_MARKER)
        (void)pb_settle_decide(settle, i, PB_SETTLE_TAKE);
    else
        pb_settle_wait_for(settle, i, k);
}

void pb_pairing_sort(const struct pb_inbox *inbox, struct pb_settle *settle, struct pb_pairing *out)
{
    *out = (struct pb_pairing){0};
    if (inbox->companion.kind == PB_COMPANION_NONE)
        return;
    for (size_t i = 0; i < pb_settle_count(settle); i++)
        if (!pb_settle_is_held(settle, i))
            sort_one(inbox, settle, i, out);
}
