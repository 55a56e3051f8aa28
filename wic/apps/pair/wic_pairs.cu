// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-pairs: the applications of wic/apps between two kernels, each on a GPU or on half of one.
// Usage: wic-pairs --help. Exit: 0; 1 if a result was wrong or a mistake was not found; 77 if it
// did not run, because it needs more GPUs.
#include "wic/apps/pair/pair_entry.cuh"
#include "wic/apps/pair/pair_figures.h"

#include <algorithm>
#include <cstdlib>
#include <cuda_runtime.h>

namespace
{
constexpr int not_run = 77;
const char *const paper_rivals[PAIR_PAPER_RIVALS] = {"effshare", "gps", "finepack"};

app_names known()
{
    app_names names = {"wic-pairs",
                       {},
                       {
#define PAIR(id, name, about) name,
#include "wic/apps/pair/strategies.def"
#undef PAIR
                       },
                       false};
    for (const pair_entry *const *at = pair_entries; *at != nullptr; at++) {
        names.apps.emplace_back((*at)->name);
    }
    return names;
}

void help()
{
    printf("wic-pairs [OPTION VALUE]..\n");
    app_print_options();
    printf("  --gpus A,B          the parties' GPUs [0,0: both on one, each on half of it]\n"
           "sizes [small,middle], seconds [3], limit [10]; strategies, * copies hardware:\n"
#define PAIR(id, name, about) "  " name ": " about "\n"
#include "wic/apps/pair/strategies.def"
#undef PAIR
    );
}

// The rows of one application and size.
bool case_of(const app_report &report, const app_row &wic, pair_case *c)
{
    *c = {wic.total, wic.oracle, INFINITY, {0.0, 0.0, 0.0}};
    for (const app_row &row : report.rows) {
        if (!app_is_timed(row) || row.app != wic.app || row.size != wic.size ||
            row.strategy == "wic" || row.strategy == "oracle") {
            continue;
        }
        c->best = std::min(c->best, row.total);
        for (int r = 0; r < PAIR_PAPER_RIVALS; r++) {
            c->rival[r] = row.strategy == paper_rivals[r] ? row.total : c->rival[r];
        }
    }
    return std::isfinite(c->best);
}

// The bar is one for two GPUs.
void print_bar(const app_report &report, bool is_between)
{
    std::vector<pair_case> cases;
    for (const app_row &row : report.rows) {
        pair_case c;
        if (cases.size() < PAIR_CASES_MOST && row.strategy == "wic" && app_is_timed(row) &&
            case_of(report, row, &c)) {
            cases.push_back(c);
        }
    }
    for (int r = 0; r < PAIR_PAPER_RIVALS; r++) {
        const double mean = pair_mean(cases.data(), cases.size(), r);
        mean > 0.0 ? (void)printf("%s* / wic, geometric mean: %.2f\n", paper_rivals[r], mean)
                   : (void)printf("%s*: not run\n", paper_rivals[r]);
    }
    const size_t won = static_cast<size_t>(std::count_if(
        cases.begin(), cases.end(), [](const pair_case &c) { return pair_is_won(&c); }));
    if (!is_between) {
        printf("the bar of two GPUs: not run: 1 GPU\n");
    } else if (!cases.empty()) {
        printf(
            "all three / wic: %.2f (bar %.2f); at least as fast as the best rival, or nothing to "
            "win: %zu of %zu; the bar is %s\n",
            pair_mean(cases.data(), cases.size(), -1), PAIR_MEAN_LEAST, won, cases.size(),
            pair_bar_is_met(cases.data(), cases.size()) ? "met" : "missed");
    }
}

// 0, or the exit status; a message was printed then.
int open_gpus(const int gpus[2])
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        fprintf(stderr, "wic-pairs: there is no GPU that CUDA can use\n");
        return 1;
    }
    if (std::max(gpus[0], gpus[1]) >= count) {
        printf("not run: %d GPU%s\n", count, count > 1 ? "s" : "");
        return not_run;
    }
    for (int i = 0; i < 2 && gpus[0] != gpus[1]; i++) {
        int can = 0;
        if (cudaDeviceCanAccessPeer(&can, gpus[i], gpus[1 - i]) != cudaSuccess || can == 0 ||
            cudaSetDevice(gpus[i]) != cudaSuccess ||
            cudaDeviceEnablePeerAccess(gpus[1 - i], 0) != cudaSuccess) {
            printf("not run: GPU %d has no access to the memory of GPU %d\n", gpus[i], gpus[1 - i]);
            return not_run;
        }
    }
    return cudaSetDevice(gpus[0]) == cudaSuccess ? 0 : 1;
}

void print_head(const app_options &options, const char *figure)
{
    cudaDeviceProp gpu = {};
    cudaGetDeviceProperties(&gpu, options.gpus[0]);
    printf("%s, %s; times of a round in us, medians\n", gpu.name, figure);
    if (options.fault == APP_BREAK_NONE) {
        app_print_columns();
    }
}
} // namespace

int main(int argc, char **argv)
{
    app_options options;
    options.sizes = {"small", "middle"};
    if (argc > 1 && argv[1] == std::string("--help")) {
        help();
        return 0;
    }
    if (!app_parse(argc, argv, known(), &options)) {
        return 2;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);      // no first launch after a resident kernel
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); // streams do not wait for each other
    const int status = open_gpus(options.gpus);
    if (status != 0) {
        return status;
    }
    const bool is_between = options.gpus[0] != options.gpus[1];
    const char *figure =
        is_between ? "two GPUs, a kernel on each" : "two kernels of one GPU, each on half of it";
    app_report report;
    print_head(options, figure);
    for (const pair_entry *const *at = pair_entries; *at != nullptr; at++) {
        for (uint32_t i = 0; i < app_sizes && app_is_chosen(options.apps, (*at)->name); i++) {
            if (app_is_chosen(options.sizes, (*at)->sizes[i].name)) {
                (*at)->measure(options, (*at)->sizes[i], &report);
            }
        }
    }
    if (options.fault == APP_BREAK_NONE) {
        app_print_verdicts(report);
        print_bar(report, is_between);
    }
    if (!options.json.empty() && !app_write(options, figure, report)) {
        return 1;
    }
    return app_status(report);
}
