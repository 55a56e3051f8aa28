// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-pairs: the applications of wic/apps between two kernels of one GPU, each on half of it.
// Usage: wic-pairs --help. Exit: 0, or 1 when a result was wrong or a mistake was not found.
#include "wic/apps/figures.h"
#include "wic/apps/pair/pair_report.cuh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

namespace
{
const char *const strategies[] = {
#define PAIR(id, name, about) name,
#include "wic/apps/pair/strategies.def"
#undef PAIR
};
const char *const breaks[] = {"none", "early-read", "lost-last", "stale"};

void help()
{
    printf("wic-pairs [OPTION VALUE]..\n"
           "  --app NAME,..       applications [all]\n"
           "  --size NAME,..      tiny, small, middle, large [small,middle]\n"
           "  --strategy NAME,..  [all], of\n"
#define PAIR(id, name, about) "                      " name ": " about "\n"
#include "wic/apps/pair/strategies.def"
#undef PAIR
           "  --rounds N          rounds, each with new inputs, all strategies in turn [5]\n"
           "  --seconds S         of all runs of an application and size; fewer rounds if slower "
           "[3]\n"
           "  --break MISTAKE     early-read, lost-last or stale, which must be found\n"
           "  --seed N            seed of the inputs [1]\n"
           "  --limit S           longest run [10]\n"
           "  --json FILE         also write all figures there\n");
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

bool parse(int argc, char **argv, pair_options *o)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i], value = argv[i + 1];
        if (name == "--app") {
            o->apps = split(value);
        } else if (name == "--size") {
            o->sizes = split(value);
        } else if (name == "--strategy") {
            o->strategies = split(value);
        } else if (name == "--rounds") {
            o->rounds = std::max(1u, static_cast<uint32_t>(atoi(value.c_str())));
        } else if (name == "--seconds") {
            o->seconds = atof(value.c_str());
        } else if (name == "--limit") {
            o->limit = atof(value.c_str());
        } else if (name == "--seed") {
            o->seed = strtoull(value.c_str(), nullptr, 10);
        } else if (name == "--json") {
            o->json = value;
        } else if (name == "--break" && std::count(breaks + 1, breaks + 4, value) == 1) {
            o->fault = static_cast<app_break>(std::find(breaks, breaks + 4, value) - breaks);
        } else {
            fprintf(stderr, "wic-pairs: '%s %s' is no option; see --help\n", argv[i], argv[i + 1]);
            return false;
        }
    }
    const auto is_app = [](const std::string &name) {
        const pair_entry *const *at = pair_entries;
        while (*at != nullptr && name != (*at)->name) {
            at++;
        }
        return *at != nullptr;
    };
    const auto is_strategy = [](const std::string &name) {
        return std::count(std::begin(strategies), std::end(strategies), name) == 1;
    };
    if (argc % 2 == 0 || !std::all_of(o->apps.begin(), o->apps.end(), is_app) ||
        !std::all_of(o->strategies.begin(), o->strategies.end(), is_strategy)) {
        fprintf(stderr, "wic-pairs: an option without a value, an application or a strategy that "
                        "does not exist; see --help\n");
        return false;
    }
    return true;
}

const char *const verdicts[] = {"takes the headroom", "misses the headroom", "nothing to win",
                                "nothing to win, slower", "ORACLE IS BEATEN"};

// Median distance from the median, as a part of it; at least 0.02.
double spread(const std::vector<double> &values)
{
    std::vector<double> away = values;
    std::sort(away.begin(), away.end());
    const double middle = away[away.size() / 2];
    for (double &value : away) {
        value = std::abs(value - middle) / middle;
    }
    std::sort(away.begin(), away.end());
    return std::max(0.02, away[away.size() / 2]);
}

bool is_timed(const pair_row &row)
{
    return row.why.empty() && row.wrong == 0 && !row.totals.empty();
}

// The faster shape of wic and the best rival for each application and size, and the verdict.
void print_end(const pair_report &report)
{
    for (size_t i = 0; i < report.rows.size(); i++) {
        const pair_row &first = report.rows[i];
        if (i > 0 && first.app == report.rows[i - 1].app && first.size == report.rows[i - 1].size) {
            continue;
        }
        const pair_row *wic = nullptr, *best = nullptr, *managed = nullptr;
        for (const pair_row &row : report.rows) {
            if (!is_timed(row) || row.app != first.app || row.size != first.size) {
                continue;
            }
            const pair_row *&of = row.strategy.compare(0, 3, "wic") == 0 ? wic : best;
            of = of == nullptr || row.total < of->total ? &row : of;
            managed = row.strategy == "managed-flag" ? &row : managed;
        }
        if (wic == nullptr || best == nullptr || wic->oracle == 0.0) {
            continue;
        }
        const double noise = std::max(spread(wic->totals), spread(best->totals));
        printf("%-4s %-6s best rival %-14s %5.2f x %s; over the oracle %5.1f %%: %s",
               wic->app.c_str(), wic->size.c_str(), best->strategy.c_str(),
               best->total / wic->total, wic->strategy.c_str(),
               app_headroom(wic->oracle, best->total) * 100.0,
               verdicts[app_judge(wic->total, wic->oracle, best->total, noise)]);
        if (managed != nullptr) {
            printf("; managed-flag %5.2f x", managed->total / wic->total);
        }
        printf("\n");
    }
}

bool write(const std::string &path, const pair_options &options, const char *gpu,
           const pair_report &report)
{
    FILE *file = fopen(path.c_str(), "w");
    if (file == nullptr) {
        return false;
    }
    fprintf(file, "{\"figure\": \"" PAIR_FIGURE "\", \"gpu\": \"%s\", \"seed\": %llu,\n\"rows\": [",
            gpu, static_cast<unsigned long long>(options.seed));
    const char *between = "\n ";
    for (const pair_row &row : report.rows) {
        fprintf(file,
                "%s{\"figure\": \"" PAIR_FIGURE "\", \"app\": \"%s\", \"paper\": \"%s\", "
                "\"size\": \"%s\", \"strategy\": \"%s\", \"why\": \"%s\", \"runs\": %u, "
                "\"wrong\": %u, \"totals_s\": [",
                between, row.app.c_str(), row.paper.c_str(), row.size.c_str(), row.strategy.c_str(),
                row.why.c_str(), row.runs, row.wrong);
        for (size_t i = 0; i < row.totals.size(); i++) {
            fprintf(file, "%s%.9g", i == 0 ? "" : ", ", row.totals[i]);
        }
        fprintf(file, "], \"total_s\": %.9g, \"oracle_s\": %.9g}", row.total, row.oracle);
        between = ",\n ";
    }
    fprintf(file, "],\n\"mistakes\": [");
    between = "\n ";
    for (const pair_found &found : report.found) {
        fprintf(file,
                "%s{\"app\": \"%s\", \"size\": \"%s\", \"strategy\": \"%s\", \"receiver\": %d, "
                "\"found\": %s}",
                between, found.app.c_str(), found.size.c_str(), found.strategy.c_str(),
                found.receiver, found.found ? "true" : "false");
        between = ",\n ";
    }
    fprintf(file, "]}\n");
    return fclose(file) == 0;
}
} // namespace

bool pair_is_chosen(const std::vector<std::string> &names, const char *name)
{
    return names.empty() || std::count(names.begin(), names.end(), name) > 0;
}

void pair_print(const pair_row &row)
{
    printf("%-4s %-6s %-14s ", row.app.c_str(), row.size.c_str(), row.strategy.c_str());
    if (row.wrong > 0) {
        printf("FAIL: %u of %u runs wrong: %s\n", row.wrong, row.runs, row.what.c_str());
    } else if (!row.why.empty()) {
        printf("cannot: %s\n", row.why.c_str());
    } else {
        printf("%6zu %12.1f %12.1f\n", row.totals.size(), row.total * 1e6, row.oracle * 1e6);
    }
    fflush(stdout);
}

void pair_print(const pair_found &found)
{
    printf("%-4s %-6s %-14s mistake for party %d %s: %s\n", found.app.c_str(), found.size.c_str(),
           found.strategy.c_str(), found.receiver, found.found ? "found" : "FAIL: not found",
           found.what.c_str());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    pair_options options;
    options.sizes = {"small", "middle"};
    if (argc > 1 && argv[1] == std::string("--help")) {
        help();
        return 0;
    }
    if (!parse(argc, argv, &options)) {
        return 2;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);      // no first launch after a resident kernel
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); // streams do not wait for each other
    cudaDeviceProp gpu = {};
    if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess) {
        fprintf(stderr, "wic-pairs: there is no GPU that CUDA can use\n");
        return 1;
    }
    printf("%s, " PAIR_FIGURE ": each party is a kernel on half of the multiprocessors; times of a "
           "round in us, medians\n%-4s %-6s %-14s %6s %12s %12s\n",
           gpu.name, "app", "size", "strategy", "rounds", "total", "oracle");
    pair_report report;
    for (const pair_entry *const *at = pair_entries; *at != nullptr; at++) {
        for (uint32_t i = 0; i < app_sizes && pair_is_chosen(options.apps, (*at)->name); i++) {
            if (pair_is_chosen(options.sizes, (*at)->sizes[i].name)) {
                (*at)->measure(options, (*at)->sizes[i], &report);
            }
        }
    }
    print_end(report);
    if (!options.json.empty() && !write(options.json, options, gpu.name, report)) {
        fprintf(stderr, "wic-pairs: '%s' cannot be written\n", options.json.c_str());
        return 1;
    }
    const bool is_wrong = std::any_of(report.rows.begin(), report.rows.end(),
                                      [](const pair_row &row) { return row.wrong > 0; }) ||
                          std::any_of(report.found.begin(), report.found.end(),
                                      [](const pair_found &found) { return !found.found; });
    return is_wrong ? 1 : 0;
}
