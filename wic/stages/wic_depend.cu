// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-depend: two dependent stages by workers, streams, graphs and kernels that spin, and transfer
// plans for tiles with a halo. Usage: wic-depend --help. Exit: 0, or 1 when a result was wrong or a
// mistake was not found.
#include "wic/stages/measure.cuh"

#include <cstring>

namespace
{
const char *const mistakes[STAGE_MISTAKES] = {"none", "early", "lost", "element", "silent"};

[[noreturn]] void help(int exit_code)
{
    fprintf(exit_code ? stderr : stdout,
            "wic-depend [OPTION [VALUE]]..\n"
            "  --part NAME    products, policies, halo, all [all]\n"
            "  --order NAME   of tiles: rows, columns, snake, bands [rows]\n"
            "  --all-orders   each of them\n"
            "  --rounds N     rounds, each with new inputs, all strategies in turn [9]\n"
            "  --runs N       runs of a strategy in a round [3]\n"
            "  --seed N       seed of the inputs [1]\n"
            "  --check        small stages and frames, for their results\n"
            "  --break NAME   a mistake that must be found: early, lost, element, silent\n"
            "  --json FILE    also write all figures there, an object a line\n");
    exit(exit_code);
}

template <size_t N> uint32_t find_name(const char *const (&names)[N], const char *value)
{
    for (uint32_t i = 0; i < N; i++) {
        if (strcmp(names[i], value) == 0) {
            return i;
        }
    }
    fprintf(stderr, "wic-depend: unknown name '%s'\n", value);
    help(2);
}

uint32_t number_of(const char *value)
{
    char *end;
    const unsigned long number = strtoul(value, &end, 10);
    if (*end != '\0' || number == 0 || number > 1000000) {
        fprintf(stderr, "wic-depend: '%s' is not a number from 1 to 1000000\n", value);
        help(2);
    }
    return static_cast<uint32_t>(number);
}

void set_value(depend_options *options, const std::string &name, const char *value)
{
    static const char *const orders[WIC_ORDERS] = {"rows", "columns", "snake", "bands"};
    static const char *const parts[] = {"all", "products", "policies", "halo"};
    if (name == "--part") {
        options->part = parts[find_name(parts, value)];
    } else if (name == "--order") {
        options->order = static_cast<wic_tile_order>(find_name(orders, value));
    } else if (name == "--rounds") {
        options->rounds = number_of(value);
    } else if (name == "--runs") {
        options->runs = number_of(value);
    } else if (name == "--seed") {
        options->seed = number_of(value);
    } else if (name == "--break") {
        options->mistake = static_cast<stage_mistake>(find_name(mistakes, value));
    } else if (name == "--json") {
        options->json = fopen(value, "we");
        if (options->json == nullptr) {
            perror(value);
            exit(2);
        }
    } else {
        fprintf(stderr, "wic-depend: unknown option '%s'\n", name.c_str());
        help(2);
    }
}

depend_options parse(int argc, char **argv)
{
    depend_options options;
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (name == "--help") {
            help(0);
        } else if (name == "--check") {
            options.check = true;
        } else if (name == "--all-orders") {
            options.all_orders = true;
        } else if (i + 1 < argc) {
            set_value(&options, name, argv[++i]);
        } else {
            fprintf(stderr, "wic-depend: '%s' is unknown or has no value\n", name.c_str());
            help(2);
        }
    }
    if (options.check || options.mistake != STAGE_RIGHT) {
        options.rounds = 2;
        options.runs = 1;
    }
    return options;
}
} // namespace

int main(int argc, char **argv)
{
    depend_options options = parse(argc, argv);
    bool good = true;
    if (options.part != "halo") {
        good = measure_stages(options);
    }
    if (options.part == "halo" || options.part == "all") {
        good = measure_halo(options) && good;
    }
    if (options.json && fclose(options.json) != 0) {
        perror("wic-depend: the JSON file");
        good = false;
    }
    if (options.check || options.mistake != STAGE_RIGHT) {
        printf("%s\n", good ? "good" : "WRONG");
    }
    return good ? 0 : 1;
}
