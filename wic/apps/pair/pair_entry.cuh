// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_ENTRY_CUH
#define WIC_APP_PAIR_ENTRY_CUH
// An application of wic-pairs, which is compiled in a file of its own.
#include "wic/apps/measure/report.cuh"

struct pair_entry {
    const char *name;
    void (*measure)(const app_options &options, const app_size &size, app_report *report);
    const app_size *sizes;
};
extern const pair_entry *const pair_entries[]; // then NULL
#endif
