// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APPS_REPORT_CUH
#define WIC_APPS_REPORT_CUH
// Options, rows and parts of wic-apps and wic-pairs.
#include "wic/apps/app.cuh"
#include "wic/apps/figures.h"

#include <cstdio>
#include <string>
#include <vector>

class app_team;

struct app_options {
    std::vector<std::string> apps, sizes, strategies, hosts;
    uint32_t rounds = 5;
    double seconds = 3.0; // time for an application and size, which limits the rounds
    double limit = 10.0;  // seconds of a run
    unsigned threads = 0; // host threads; 0: half of its cores, at most 8
    uint64_t seed = 1;
    app_break fault = APP_BREAK_NONE;
    bool check = false;
    int gpus[2] = {0, 0}; // device of each party, in wic-pairs
    std::string json;
};

// Names that a program knows.
struct app_names {
    const char *program;
    std::vector<std::string> apps, strategies;
    bool has_host; // party 0 is the host
};

// A strategy with an application of one size. Seconds of each round, medians.
struct app_row {
    std::string app, paper, size, strategy;
    const char *party0; // works, or replays: copies its chunks from a record; or is a kernel
    std::string shape;  // shape of the kernels, if the strategy has several
    std::string why;    // it cannot be done; empty: it can
    std::vector<double> totals;
    double total, oracle, make, host; // host: all work of party 0, of which `make` makes chunks;
                                      // NAN: not measured
    double overhead;                  // NAN: no stamps
    uint32_t runs, wrong;             // with the warm-up
    std::string what;                 // about the first wrong element
};

// True if a strategy was measured, and all was right.
inline bool app_is_timed(const app_row &row)
{
    return row.why.empty() && row.wrong == 0 && !row.totals.empty();
}

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

extern const char *const app_size_names[app_sizes];

double app_median(std::vector<double> values);
// Largest part of the median that half of the values are away from it.
double app_spread(const std::vector<double> &values);
bool app_is_chosen(const std::vector<std::string> &names, const char *name); // none: all
// The options that both programs have, and all of wic-apps.
void app_print_options();
// False: a message was printed.
bool app_parse(int argc, char **argv, const app_names &names, app_options *options);
void app_print_head(const app_options &options);
void app_print_columns();
void app_print(const app_row &row);
void app_print(const app_found &found);
// Verdicts by application and size.
void app_print_verdicts(const app_report &report);
// Geometric mean of the times of a rival, relative to wic; 0 if it was not measured.
double app_mean(const app_report &report, const char *rival, size_t *count);
// figure: a title for the times. False: a message was printed.
bool app_write(const app_options &options, const char *figure, const app_report &report);
// The exit status of a program: 1 if a result was wrong or a mistake was not found.
int app_status(const app_report &report);
#endif
