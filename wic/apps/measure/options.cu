// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line of wic-apps and wic-pairs.
#include "wic/apps/measure/report.cuh"

#include <algorithm>
#include <cstdlib>

const char *const app_size_names[app_sizes] = {"tiny", "small", "middle", "large"};

namespace
{
const char *const break_names[] = {"none", "early-read", "lost-last", "stale"};
constexpr int gpus_most = 64;

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

bool has(const std::vector<std::string> &names, const std::string &name)
{
    return std::count(names.begin(), names.end(), name) > 0;
}

bool are_known(const char *program, const std::vector<std::string> &given,
               const std::vector<std::string> &known)
{
    for (const std::string &name : given) {
        if (!has(known, name)) {
            fprintf(stderr, "%s: there is no '%s'; see --help\n", program, name.c_str());
            return false;
        }
    }
    return true;
}

bool parse_gpus(const std::string &value, int gpus[2])
{
    char rest = 0;
    return sscanf(value.c_str(), "%d,%d%c", &gpus[0], &gpus[1], &rest) == 2 &&
           std::min(gpus[0], gpus[1]) >= 0 && std::max(gpus[0], gpus[1]) < gpus_most;
}

// Takes an option of both programs. False: it is unknown, or its value is.
bool take(const std::string &name, const std::string &value, app_options *o)
{
    if (name == "--app") {
        o->apps = split(value);
    } else if (name == "--size") {
        o->sizes = split(value);
    } else if (name == "--strategy") {
        o->strategies = split(value);
    } else if (name == "--rounds") {
        o->rounds = std::max(1u, static_cast<uint32_t>(strtoul(value.c_str(), nullptr, 10)));
    } else if (name == "--seconds") {
        o->seconds = atof(value.c_str());
    } else if (name == "--limit") {
        o->limit = atof(value.c_str());
    } else if (name == "--seed") {
        o->seed = strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--json") {
        o->json = value;
    } else if (name == "--break" && std::count(break_names + 1, break_names + 4, value) == 1) {
        o->fault =
            static_cast<app_break>(std::find(break_names, break_names + 4, value) - break_names);
    } else {
        return false;
    }
    return true;
}
bool take_of_host(const std::string &name, const std::string &value, app_options *o)
{
    if (name == "--party0") {
        o->hosts = split(value);
    } else if (name == "--threads") {
        o->threads = static_cast<unsigned>(strtoul(value.c_str(), nullptr, 10));
    } else {
        return false;
    }
    return true;
}
} // namespace

bool app_is_chosen(const std::vector<std::string> &names, const char *name)
{
    return names.empty() || has(names, name);
}

void app_print_options()
{
    printf(
        "  --app NAME,..       applications [all]\n"
        "  --size NAME,..      tiny, small, middle, large\n"
        "  --strategy NAME,..  [all]\n"
        "  --rounds N          rounds, each with new inputs, all strategies in turn [5]\n"
        "  --seconds S         runs of an application and size; fewer rounds if slower, one of a\n"
        "                      strategy that takes more than a tenth of it\n"
        "  --break MISTAKE     early-read, lost-last or stale, which must be found\n"
        "  --seed N            seed of the inputs [1]\n"
        "  --limit S           longest run\n"
        "  --json FILE         also write all figures there\n");
}

bool app_parse(int argc, char **argv, const app_names &names, app_options *o)
{
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (name == "--check" && names.has_host) {
            o->check = true;
            continue;
        }
        const std::string value = i + 1 < argc ? argv[++i] : "";
        const bool is_taken = take(name, value, o) ||
                              (names.has_host ? take_of_host(name, value, o)
                                              : name == "--gpus" && parse_gpus(value, o->gpus));
        if (value.empty() || !is_taken) {
            fprintf(stderr, "%s: '%s %s' is no option; see --help\n", names.program, name.c_str(),
                    value.c_str());
            return false;
        }
    }
    const std::vector<std::string> sizes(app_size_names, app_size_names + app_sizes);
    return are_known(names.program, o->apps, names.apps) &&
           are_known(names.program, o->sizes, sizes) &&
           are_known(names.program, o->hosts, {"works", "replays"}) &&
           are_known(names.program, o->strategies, names.strategies);
}
