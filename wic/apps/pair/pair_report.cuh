// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_REPORT_CUH
#define WIC_APP_PAIR_REPORT_CUH
// Options and rows of wic-pairs.
#include "wic/apps/app.cuh"

#include <string>
#include <vector>

#define PAIR_FIGURE "two kernels of one GPU"

struct pair_options {
    std::vector<std::string> apps, sizes, strategies;
    uint32_t rounds = 5;
    double seconds = 3.0, limit = 10.0; // for the runs of an application and size; of one run
    uint64_t seed = 1;
    app_break fault = APP_BREAK_NONE;
    std::string json;
};

struct pair_row {
    std::string app, paper, size, strategy;
    std::string why;            // it cannot be done; empty: it can
    std::vector<double> totals; // seconds of each round
    double total, oracle;       // medians; oracle: 0 if a party did not end
    uint32_t runs, wrong;
    std::string what; // about the first wrong element
};

// A mistake that was made on purpose.
struct pair_found {
    std::string app, size, strategy;
    int receiver;
    bool found;
    std::string what;
};

struct pair_report {
    std::vector<pair_row> rows;
    std::vector<pair_found> found;
};

// An application, which is compiled in a file of its own.
struct pair_entry {
    const char *name;
    void (*measure)(const pair_options &options, const app_size &size, pair_report *report);
    const app_size *sizes;
};
extern const pair_entry *const pair_entries[]; // then NULL

bool pair_is_chosen(const std::vector<std::string> &names, const char *name); // none: all
void pair_print(const pair_row &row);
void pair_print(const pair_found &found);
#endif
