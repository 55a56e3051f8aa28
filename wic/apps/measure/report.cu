// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables and the JSON files of wic-apps and wic-pairs.
#include "wic/apps/measure/report.cuh"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <cuda_runtime.h>

namespace
{
const char *const verdicts[] = {"takes the headroom", "misses the headroom", "nothing to win",
                                "nothing to win, slower", "ORACLE IS BEATEN"};
constexpr double least_noise = 0.02, host_decides = 0.9;

// Share in per cent, or "-".
std::string share(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.1f", value * 100.0);
    return std::isnan(value) ? "-" : text;
}
// Microseconds, or "-".
std::string micro(double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%.1f", seconds * 1e6);
    return std::isnan(seconds) ? "-" : text;
}
std::string number(double value) // in JSON
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", value);
    return std::isfinite(value) ? text : "null";
}
std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    return out + '"';
}

// True if only the strategies differ.
bool is_beside(const app_row &a, const app_row &b)
{
    return a.app == b.app && a.size == b.size && std::string(a.party0) == b.party0;
}
// The rows of one application and size.
struct group {
    const app_row *oracle = nullptr, *wic = nullptr, *best = nullptr;
    double host = INFINITY; // the least work of party 0 by any strategy; 0 for a kernel

    // No strategy can be faster with this host: each party does all its work.
    double floor() const
    {
        return std::fmax(oracle->total, host);
    }
};

std::vector<group> groups(const app_report &report)
{
    std::vector<group> all;
    const app_row *before = nullptr;
    for (const app_row &row : report.rows) {
        if (before == nullptr || !is_beside(*before, row)) {
            all.emplace_back();
        }
        before = &row;
        group &g = all.back();
        if (!app_is_timed(row)) {
            continue;
        }
        if (row.strategy != "oracle") {
            g.host = std::isnan(row.host) ? 0.0 : std::fmin(g.host, row.host);
        }
        if (row.strategy == "oracle") {
            g.oracle = &row;
        } else if (row.strategy == "wic") {
            g.wic = &row;
        } else if (g.best == nullptr || row.total < g.best->total) {
            g.best = &row;
        }
    }
    return all;
}

// `least`: the oracle's time, or the floor.
std::string verdict(const group &g, double least)
{
    if (g.host >= host_decides * g.best->total) {
        return "the host's work decides";
    }

    const double noise =
        std::max({least_noise, app_spread(g.oracle->totals), app_spread(g.best->totals),
                  g.wic != nullptr ? app_spread(g.wic->totals) : 0.0});
    if (g.wic != nullptr) {
        return verdicts[app_judge(g.wic->total, least, g.best->total, noise)];
    }
    return g.best->total < least * (1.0 - noise) ? verdicts[APP_ORACLE_IS_BEATEN] : "no wic";
}
} // namespace

double app_median(std::vector<double> values)
{
    if (values.empty()) {
        return NAN;
    }
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

double app_spread(const std::vector<double> &values)
{
    const double middle = app_median(values);
    std::vector<double> away;
    for (const double value : values) {
        away.push_back(std::abs(value - middle) / middle);
    }
    return values.empty() ? 0.0 : app_median(away);
}

void app_print_head(const app_options &options)
{
    cudaDeviceProp gpu = {};
    int device = 0;
    cudaGetDevice(&device);
    cudaGetDeviceProperties(&gpu, device);
    printf("%s; party 0 is the host in every application, up to %u threads\n", gpu.name,
           options.threads);
    if (options.fault != APP_BREAK_NONE) {
        return;
    }
    printf(
        "party 0 works, or replays chunks that it made before\n"
        "times in us, shares in per cent; host: all work of party 0; overhead: of the consumer\n");
    app_print_columns();
}

void app_print_columns()
{
    printf("%-4s %-6s %-7s %-13s %6s %12s %12s %12s %8s %8s %8s\n", "app", "size", "party 0",
           "strategy", "rounds", "total", "oracle", "host", "exposed", "overlap", "overhead");
}

void app_print(const app_row &row)
{
    printf("%-4s %-6s %-7s %-13s ", row.app.c_str(), row.size.c_str(), row.party0,
           row.strategy.c_str());
    if (!row.why.empty() && row.wrong == 0) {
        printf("%s%s\n", row.why.compare(0, 7, "not run") == 0 ? "" : "cannot: ", row.why.c_str());
    } else if (row.wrong > 0) {
        printf("FAIL: %u of %u runs wrong: %s\n", row.wrong, row.runs, row.what.c_str());
    } else if (row.strategy == "oracle") {
        printf("%6zu %12.1f\n", row.totals.size(), row.total * 1e6);
    } else {
        printf("%6zu %12.1f %12s %12s %8s %8s %8s  %s\n", row.totals.size(), row.total * 1e6,
               micro(row.oracle).c_str(), micro(row.host).c_str(),
               share(app_exposed_wait(row.total, row.oracle)).c_str(),
               share(app_overlap(row.total, row.oracle, row.host)).c_str(),
               share(row.overhead).c_str(), row.shape.c_str());
    }
    fflush(stdout);
}

void app_print(const app_found &found)
{
    printf("%-4s %-6s %-13s mistake for party %d %s: %s\n", found.app.c_str(), found.size.c_str(),
           found.strategy.c_str(), found.receiver, found.found ? "found" : "FAIL: not found",
           found.what.c_str());
    fflush(stdout);
}

double app_mean(const app_report &report, const char *rival, size_t *count)
{
    std::vector<double> ratios;
    for (const app_row &row : report.rows) {
        for (const app_row &wic : report.rows) {
            if (row.strategy == rival && wic.strategy == "wic" && is_beside(row, wic) &&
                app_is_timed(row) && app_is_timed(wic)) {
                ratios.push_back(row.total / wic.total);
            }
        }
    }
    *count = ratios.size();
    return ratios.empty() ? 0.0 : app_geometric_mean(ratios.data(), ratios.size());
}

int app_status(const app_report &report)
{
    return std::any_of(report.rows.begin(), report.rows.end(),
                       [](const app_row &row) { return row.wrong > 0; }) ||
           std::any_of(report.found.begin(), report.found.end(),
                       [](const app_found &found) { return !found.found; });
}

void app_print_verdicts(const app_report &report)
{
    for (const group &g : groups(report)) {
        if (g.oracle == nullptr || g.best == nullptr) {
            continue;
        }
        printf("%-4s %-6s %-7s best rival %-12s", g.best->app.c_str(), g.best->size.c_str(),
               g.best->party0, g.best->strategy.c_str());
        if (g.wic != nullptr) {
            printf(" %5.2f x wic;", g.best->total / g.wic->total);
        }
        printf(" over the oracle %5.1f %%: %s",
               app_headroom(g.oracle->total, g.best->total) * 100.0,
               verdict(g, g.oracle->total).c_str());
        if (g.host > 0.0) {
            printf("; over both parties' work %5.1f %%: %s",
                   app_headroom(g.floor(), g.best->total) * 100.0, verdict(g, g.floor()).c_str());
        }
        printf("\n");
    }
}

bool app_write(const app_options &options, const char *figure, const app_report &report)
{
    FILE *file = fopen(options.json.c_str(), "w");
    if (file == nullptr) {
        fprintf(stderr, "'%s' cannot be written: %s\n", options.json.c_str(), strerror(errno));
        return false;
    }
    cudaDeviceProp gpu = {};
    int device = 0, driver = 0;
    cudaGetDevice(&device);
    cudaGetDeviceProperties(&gpu, device);
    cudaDriverGetVersion(&driver);
    fprintf(file,
            "{\"figure\": %s, \"gpu\": %s, \"driver_cuda\": \"%d.%d\", \"host_threads\": %u, "
            "\"seed\": %llu,\n"
            "\"rows\": [",
            quoted(figure).c_str(), quoted(gpu.name).c_str(), driver / 1000, driver % 1000 / 10,
            options.threads, static_cast<unsigned long long>(options.seed));
    const char *between = "\n ";
    for (const app_row &row : report.rows) {
        fprintf(
            file,
            "%s{\"app\": %s, \"paper\": %s, \"size\": %s, \"party0\": \"%s\", \"strategy\": %s, "
            "\"why\": %s, \"shape\": %s, "
            "\"runs\": %u, \"wrong\": %u",
            between, quoted(row.app).c_str(), quoted(row.paper).c_str(), quoted(row.size).c_str(),
            row.party0, quoted(row.strategy).c_str(), quoted(row.why).c_str(),
            quoted(row.shape).c_str(), row.runs, row.wrong);
        if (app_is_timed(row)) {
            fprintf(file, ", \"total_s\": %s, \"oracle_s\": %s, \"totals_s\": [",
                    number(row.total).c_str(), number(row.oracle).c_str());
            for (size_t i = 0; i < row.totals.size(); i++) {
                fprintf(file, "%s%s", i == 0 ? "" : ", ", number(row.totals[i]).c_str());
            }
            fprintf(file, "]");
        }
        if (app_is_timed(row) && row.strategy != "oracle") {
            fprintf(file,
                    ", \"host_s\": %s, \"make_s\": %s, \"exposed\": %s, \"overlap\": %s, "
                    "\"overhead\": %s",
                    number(row.host).c_str(), number(row.make).c_str(),
                    number(app_exposed_wait(row.total, row.oracle)).c_str(),
                    number(app_overlap(row.total, row.oracle, row.host)).c_str(),
                    number(row.overhead).c_str());
        }
        fprintf(file, "}");
        between = ",\n ";
    }
    fprintf(file, "],\n\"verdicts\": [");
    between = "\n ";
    for (const group &g : groups(report)) {
        if (g.oracle != nullptr && g.best != nullptr) {
            fprintf(file,
                    "%s{\"app\": %s, \"size\": %s, \"party0\": \"%s\", \"best\": %s, "
                    "\"oracle_s\": %s, \"floor_s\": %s, \"by_oracle\": %s, \"by_floor\": %s}",
                    between, quoted(g.best->app).c_str(), quoted(g.best->size).c_str(),
                    g.best->party0, quoted(g.best->strategy).c_str(),
                    number(g.oracle->total).c_str(), number(g.floor()).c_str(),
                    quoted(verdict(g, g.oracle->total)).c_str(),
                    quoted(verdict(g, g.floor())).c_str());
            between = ",\n ";
        }
    }
    fprintf(file, "],\n\"mistakes\": [");
    between = "\n ";
    for (const app_found &found : report.found) {
        fprintf(file,
                "%s{\"app\": %s, \"size\": %s, \"strategy\": %s, \"receiver\": %d, \"found\": %s}",
                between, quoted(found.app).c_str(), quoted(found.size).c_str(),
                quoted(found.strategy).c_str(), found.receiver, found.found ? "true" : "false");
        between = ",\n ";
    }
    fprintf(file, "]}\n");
    if (fclose(file) != 0) {
        fprintf(stderr, "'%s' cannot be written: %s\n", options.json.c_str(), strerror(errno));
        return false;
    }
    return true;
}
