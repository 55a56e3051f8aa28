// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-apps: the applications of wic/apps by every strategy, compared to an oracle that never waits.
// Usage: wic-apps --help. Exit: 0, or 1 when a result was wrong or a mistake was not found.
#include "wic/apps/measure/report.cuh"
#include "wic/apps/measure/team.cuh"

#include <algorithm>
#include <cstdlib>
#include <cuda_runtime.h>

namespace
{
const struct {
    const char *name, *about;
} strategies[] = {
#define STRATEGY(id, name, about) {name, about},
#include "wic/apps/strategies/strategies.def"
#undef STRATEGY
};

app_names known()
{
    app_names names = {"wic-apps", {}, {}, true};
    for (const app_entry *const *at = app_entries; *at != nullptr; at++) {
        names.apps.emplace_back((*at)->name);
    }
    for (const auto &strategy : strategies) {
        names.strategies.emplace_back(strategy.name);
    }
    return names;
}

void help()
{
    printf("wic-apps [OPTION VALUE]..\n");
    app_print_options();
    printf("  --party0 MODE       works, or replays chunks that it made before\n"
           "                      [replays; both with --check and in the tiny size]\n"
           "  --check             two rounds, for their results\n"
           "  --threads N         threads of the host [half of the cores, at most 8]\n"
           "  --list              application, size and strategy names\n"
           "sizes [small,middle,large], seconds [4], limit [20]\n");
}

void list()
{
    for (const app_entry *const *at = app_entries; *at != nullptr; at++) {
        const app_entry *entry = *at;
        printf("application %s\n", entry->name);
    }
    for (const char *name : app_size_names) {
        printf("size %s\n", name);
    }
    for (const auto &strategy : strategies) {
        printf("strategy %s: %s\n", strategy.name, strategy.about);
    }
}

void print_means(const app_report &report)
{
    const struct {
        const char *name;
        double paper;
    } rivals[] = {{"managed-flag", 1.13}, {"nblocking", 1.20}, {"demandcpy", 1.15}};
    for (const auto &rival : rivals) {
        size_t count = 0;
        const double mean = app_mean(report, rival.name, &count);
        if (count > 0) {
            printf("%s / wic, geometric mean of %zu: %.2f (paper: %.2f)\n", rival.name, count, mean,
                   rival.paper);
        }
    }
}
} // namespace

int main(int argc, char **argv)
{
    app_options options;
    options.sizes = {"small", "middle", "large"};
    options.seconds = 4.0;
    options.limit = 20.0;
    const std::string first = argc > 1 ? argv[1] : "";
    if (first == "--help" || first == "--list") {
        first == "--help" ? help() : list();
        return 0;
    }
    if (!app_parse(argc, argv, known(), &options)) {
        return 2;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);      // no first launch after a resident kernel
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); // streams do not wait for each other
    if (cudaFree(nullptr) != cudaSuccess) {
        fprintf(stderr, "wic-apps: there is no GPU that CUDA can use\n");
        return 1;
    }
    if (options.threads == 0) {
        options.threads = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
    }
    app_team team(options.threads);
    app_report report;
    app_print_head(options);
    for (const app_entry *const *at = app_entries; *at != nullptr; at++) {
        const app_entry *entry = *at;
        for (uint32_t i = 0; i < app_sizes && app_is_chosen(options.apps, entry->name); i++) {
            if (app_is_chosen(options.sizes, entry->sizes[i].name)) {
                entry->measure(options, entry->sizes[i], &team, &report);
            }
        }
    }
    if (options.fault == APP_BREAK_NONE) {
        app_print_verdicts(report);
        print_means(report);
    }
    if (!options.json.empty() && !app_write(options, "party 0 is the host", report)) {
        return 1;
    }
    return app_status(report);
}
