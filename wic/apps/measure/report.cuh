// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APPS_REPORT_CUH
#define WIC_APPS_REPORT_CUH
// Options, rows and parts of wic-apps.
#include "wic/apps/app.cuh"
#include "wic/apps/figures.h"

#include <cstdio>
#include <string>
#include <vector>

class app_team;

struct app_options {
    std::vector<std::string> apps, sizes, strategies, hosts;
    uint32_t rounds = 5;
    double seconds = 4.0; // time for an application and size, which limits the rounds
    double limit = 20.0;  // seconds of a run
    unsigned threads = 0; // host threads; 0: half of its cores, at most 8
    uint64_t seed = 1;
    app_break fault = APP_BREAK_NONE;
    bool check = false, help = false;
    std::string json;
};

// A strategy with an application of one size. Seconds of each round, medians.
struct app_row {
    std::string app, paper, size, strategy;
    bool replays;    // party 0 copies its chunks from a record
    std::string why; // it cannot be done; empty: it can
    std::vector<double> totals;
    double total, oracle, make, host; // host: all work of party 0, of which `make` makes chunks
    double overhead;                  // NAN: no stamps
    uint32_t runs, wrong;             // with the warm-up
    std::string what;                 // about the first wrong element
};

// A mistake that was made on purpose.
struct app_found {
    std::string app, size, strategy;
    int receiver;
    bool found;
    std::string what;
};

struct app_report {
    std::vector<app_row> rows;
    std::vector<app_found> found;
};

// Everything about one application, which is compiled in a file of its own.
struct app_entry {
    const char *name;
    void (*measure)(const app_options &options, const app_size &size, app_team *team,
                    app_report *report);
    const app_size *sizes;
};
extern const app_entry *const app_entries[]; // those that are compiled, then NULL

double app_median(std::vector<double> values);
// Largest part of the median that half of the values are away from it.
double app_spread(const std::vector<double> &values);
bool app_is_chosen(const std::vector<std::string> &names, const char *name); // none: all
void app_print_head(const app_options &options);
void app_print(const app_row &row);
void app_print(const app_found &found);
// Verdicts by application and size, and geometric means.
void app_print_end(const app_report &report);
bool app_write(const std::string &path, const app_options &options, const app_report &report);
#endif
