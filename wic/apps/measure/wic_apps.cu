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

const char *const size_names[app_sizes] = {"tiny", "small", "middle", "large"};
const char *const break_names[] = {"none", "early-read", "lost-last", "stale"};

void help()
{
    printf("wic-apps [OPTION VALUE]..\n"
           "  --app NAME,..       applications [all]\n"
           "  --size NAME,..      tiny, small, middle, large [small,middle,large]\n"
           "  --strategy NAME,..  [all]\n"
           "  --party0 MODE       works, or replays chunks that it made before\n"
           "                      [replays; both with --check and in the tiny size]\n"
           "  --rounds N          rounds, each with new inputs, all strategies in turn [5]\n"
           "  --seconds S         runs of an application and size; fewer rounds if slower,\n"
           "                      one of a strategy that takes more than a tenth of it [4]\n"
           "  --check             two rounds, for their results\n"
           "  --break MISTAKE     early-read, lost-last or stale, which must be found\n"
           "  --threads N         threads of the host [half of the cores, at most 8]\n"
           "  --seed N            seed of the inputs [1]\n"
           "  --limit S           longest run [20]\n"
           "  --json FILE         also write all figures there\n"
           "  --list              application, size and strategy names\n");
}

void list()
{
    for (const app_entry *const *at = app_entries; *at != nullptr; at++) {
        const app_entry *entry = *at;
        printf("application %s\n", entry->name);
    }
    for (const char *name : size_names) {
        printf("size %s\n", name);
    }
    for (const auto &strategy : strategies) {
        printf("strategy %s: %s\n", strategy.name, strategy.about);
    }
}

std::vector<std::string> split(const std::string &list)
{
    std::vector<std::string> names;
    for (size_t at = 0; at <= list.size();) {
        const size_t end = std::min(list.find(',', at), list.size());
        names.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return names;
}

template <class Names> bool are_known(const std::vector<std::string> &given, Names known)
{
    for (const std::string &name : given) {
        if (!known(name)) {
            fprintf(stderr, "wic-apps: there is no '%s'; see --list\n", name.c_str());
            return false;
        }
    }
    return true;
}

bool parse(int argc, char **argv, app_options *o)
{
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (name == "--check") {
            o->check = true;
            continue;
        }
        if (i + 1 == argc) {
            fprintf(stderr, "wic-apps: '%s' is no option, or lacks its value; see --help\n",
                    argv[i]);
            return false;
        }
        const char *value = argv[++i];
        if (name == "--app") {
            o->apps = split(value);
        } else if (name == "--size") {
            o->sizes = split(value);
        } else if (name == "--strategy") {
            o->strategies = split(value);
        } else if (name == "--party0") {
            o->hosts = split(value);
        } else if (name == "--rounds") {
            o->rounds = std::max(1u, static_cast<uint32_t>(strtoul(value, nullptr, 10)));
        } else if (name == "--seconds") {
            o->seconds = atof(value);
        } else if (name == "--limit") {
            o->limit = atof(value);
        } else if (name == "--threads") {
            o->threads = static_cast<unsigned>(strtoul(value, nullptr, 10));
        } else if (name == "--seed") {
            o->seed = strtoull(value, nullptr, 10);
        } else if (name == "--json") {
            o->json = value;
        } else if (name == "--break") {
            const auto *found = std::find_if(break_names + 1, break_names + 4, [&](const char *b) {
                return value == std::string(b);
            });
            if (found == break_names + 4) {
                fprintf(stderr, "wic-apps: --break is early-read, lost-last or stale\n");
                return false;
            }
            o->fault = static_cast<app_break>(found - break_names);
        } else {
            fprintf(stderr, "wic-apps: '%s' is no option; see --help\n", name.c_str());
            return false;
        }
    }
    return are_known(o->apps,
                     [](const std::string &name) {
                         const app_entry *const *at = app_entries;
                         while (*at != nullptr && name != (*at)->name) {
                             at++;
                         }
                         return *at != nullptr;
                     }) &&
           are_known(o->sizes,
                     [](const std::string &name) {
                         return std::count(std::begin(size_names), std::end(size_names), name) > 0;
                     }) &&
           are_known(
               o->hosts,
               [](const std::string &name) { return name == "works" || name == "replays"; }) &&
           are_known(o->strategies, [](const std::string &name) {
               return std::any_of(std::begin(strategies), std::end(strategies),
                                  [&](const auto &s) { return name == s.name; });
           });
}
} // namespace

bool app_is_chosen(const std::vector<std::string> &names, const char *name)
{
    return names.empty() || std::count(names.begin(), names.end(), name) > 0;
}

int main(int argc, char **argv)
{
    app_options options;
    options.sizes = {"small", "middle", "large"};
    const std::string first = argc > 1 ? argv[1] : "";
    if (first == "--help" || first == "--list") {
        first == "--help" ? help() : list();
        return 0;
    }
    if (!parse(argc, argv, &options)) {
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
        app_print_end(report);
    }
    if (!options.json.empty() && !app_write(options.json, options, report)) {
        fprintf(stderr, "wic-apps: '%s' cannot be written\n", options.json.c_str());
        return 1;
    }
    const bool is_wrong = std::any_of(report.rows.begin(), report.rows.end(),
                                      [](const app_row &row) { return row.wrong > 0; }) ||
                          std::any_of(report.found.begin(), report.found.end(),
                                      [](const app_found &found) { return !found.found; });
    return is_wrong ? 1 : 0;
}
