// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The one list of options: it is parsed by and printed by --help.
#include "wic/bench/measure/options.cuh"
#include "wic/bench/strategies/strategies.cuh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace
{
struct option {
    const char *name;
    const char *value; // what --help calls it; NULL: none
    const char *help;
    void (*set)(bench_options *o, const char *value);
};

uint32_t number(const char *text)
{
    return static_cast<uint32_t>(strtoul(text, nullptr, 10));
}

std::vector<size_t> numbers(const std::string &list)
{
    std::vector<size_t> values;
    for (const std::string &one : bench_split(list)) {
        values.push_back(number(one.c_str()));
    }
    return values;
}

using O = bench_options;

const option table[] = {
    {"--help", nullptr, "this", [](O *o, const char *) { o->help = true; }},
    {"--json", "FILE", "also write all figures there (tests/bench/wic_plot.py draws them)",
     [](O *o, const char *v) { o->json = v; }},
    {"--sizes", "KIB,..", "chunk sizes [4,16,64,256,1024,4096]",
     [](O *o, const char *v) { o->sizes = numbers(v); }},
    {"--strategies", "NAME,..",
     "of those below, or all [wic,poll-host,poll-device,poll-nanosleep,stream,graph]",
     [](O *o, const char *v) { o->strategies = v; }},
    {"--frontier", nullptr, "latency against offered load instead of the table",
     [](O *o, const char *) { o->frontier = true; }},
    {"--check", nullptr, "every element of every result of the strategies, and no timing",
     [](O *o, const char *) { o->check = true; }},
    {"--loads", "PERCENT,..", "of the link's ceiling; max: all slots full [5,25,50,80,95,max]",
     [](O *o, const char *v) { o->loads = v; }},
    {"--rounds", "N", "of frontier and neighbours: all strategies in turn, then all again [9]",
     [](O *o, const char *v) { o->rounds = std::max(1u, number(v)); }},
    {"--no-tune", nullptr, "the frontier with each strategy's first shape, not its best",
     [](O *o, const char *) { o->tune = false; }},
    {"--seconds", "S", "of each measurement of throughput, and of each load [0.2]",
     [](O *o, const char *v) { o->seconds = atof(v); }},
    {"--samples", "N", "of each measurement of latency, or as many as 3 s allow [2000]",
     [](O *o, const char *v) { o->samples = static_cast<int>(std::max(1u, number(v))); }},
    {"--neighbours", "WHERE",
     "compute kernels beside each strategy, and beside wic's room asleep: own, process (another "
     "one), mps (another one, with MPS)",
     [](O *o, const char *v) { o->neighbours = v; }},
    {"--ablation", nullptr, "wic's kernel with gate, pull and credit limiter exchanged",
     [](O *o, const char *) { o->ablation = true; }},
    {"--gaps", "US,..", "between chunks while neighbours run; 0: no chunks [0,1000,200,50]",
     [](O *o, const char *v) { o->gaps = numbers(v); }},
    {"--serve-neighbour", nullptr, "used by --neighbours process for the other process",
     [](O *o, const char *) { o->serve = true; }},
    {"--window", "MIB", "of input slots [256]",
     [](O *o, const char *v) { o->window = std::max(64u, number(v)); }},
    {"--huge", nullptr, "slots in huge pages", [](O *o, const char *) { o->huge = true; }},
    {"--piece", "BYTES", "instead of the transfer plan's; so are the next six",
     [](O *o, const char *v) { o->piece = number(v); }},
    {"--depth", "N", "stages of a block", [](O *o, const char *v) { o->depth = number(v); }},
    {"--blocks", "N", "of the resident kernel", [](O *o, const char *v) { o->blocks = number(v); }},
    {"--pulls", "N", "pieces on the link at a time",
     [](O *o, const char *v) { o->pulls = number(v); }},
    {"--warps", "N", "that work, of a block", [](O *o, const char *v) { o->warps = number(v); }},
    {"--backlog", "BYTES", "under way from which on copy engines take over; 0: never",
     [](O *o, const char *v) { o->backlog = strtoll(v, nullptr, 10); }},
    {"--results", "N", "0 by bulk copies, 1 by the working warps' stores",
     [](O *o, const char *v) { o->results = static_cast<int>(number(v)); }},
    {"--sweep", nullptr, "many shapes of plan for wic, and nothing else (fills transfer_plan.c)",
     [](O *o, const char *) { o->sweep = true; }},
    {"--soak", "TILES", "so many tiles through channels and kernel, every element checked",
     [](O *o, const char *v) { o->soak = strtoull(v, nullptr, 10); }},
    {"--transport", "NAME",
     "of the soak: pull, lines, mixed, managed, copy, place or resident [all]",
     [](O *o, const char *v) { o->transport = v; }},
    {"--lanes", "N",
     "the soak through up to N lanes of one kernel; without --soak: what a lane costs, how they "
     "share",
     [](O *o, const char *v) { o->lanes = number(v); }},
    {"--ways-out", nullptr, "every way in which the kernel leaves",
     [](O *o, const char *) { o->ways_out = true; }},
    {"--joins", nullptr, "what it costs that tasks wait for all tasks of the stage before",
     [](O *o, const char *) { o->joins = true; }},
    {"--guests", nullptr, "ordinary kernels of 64 to 1,048,576 threads that wait for frames",
     [](O *o, const char *) { o->guests = true; }},
    {"--shares", nullptr,
     "a stream of chunks next to kernels that fill the GPU, by the ways to share it",
     [](O *o, const char *) { o->shares = true; }},
    {"--rates", "GB/S,..", "of that stream [5,20,45]", [](O *o, const char *v) { o->rates = v; }},
    {"--replay", nullptr, "host and kernel walk the same schedules",
     [](O *o, const char *) { o->replay = true; }},
    {"--patterns", "SIZES",
     "classify, composite and gate by wic/patterns and by streams: all, or small",
     [](O *o, const char *v) { o->patterns = v; }},
    {"--park", "MS", "a kernel without chunks for so long, for a profiler",
     [](O *o, const char *v) { o->park_ms = atof(v); }},
};
} // namespace

std::vector<std::string> bench_split(const std::string &list, const char *ends)
{
    std::vector<std::string> parts;
    for (size_t at = 0; at <= list.size();) {
        const size_t comma = std::min(list.find_first_of(ends, at), list.size());
        parts.push_back(list.substr(at, comma - at));
        at = comma + 1;
    }
    return parts;
}

bool bench_parse(int argc, char **argv, bench_options *out)
{
    for (int i = 1; i < argc; i++) {
        const auto known = std::find_if(std::begin(table), std::end(table), [&](const option &o) {
            return std::string(argv[i]) == o.name;
        });
        if (known == std::end(table)) {
            fprintf(stderr, "wic-bench: unknown option %s; see --help\n", argv[i]);
            return false;
        }
        if (known->value && i + 1 == argc) {
            fprintf(stderr, "wic-bench: %s needs %s\n", argv[i], known->value);
            return false;
        }
        known->set(out, known->value ? argv[++i] : nullptr);
    }
    return true;
}

void bench_help()
{
    printf("wic-bench: the ways to get chunks through a GPU side by side, in one run.\n\n"
           "  wic-bench [options]          throughput, latency and leaving of each\n"
           "  wic-bench --frontier | --neighbours WHERE | --ablation | --check [options]\n"
           "  wic-bench --soak TILES [--transport NAME | --lanes N] | --ways-out | --replay | "
           "--joins | --shares | "
           "--guests | --park MS\n\n");
    for (const option &o : table) {
        const std::string name =
            std::string(o.name) + (o.value ? " " : "") + (o.value ? o.value : "");
        printf("  %-22s %s\n", name.c_str(), o.help);
    }
    printf("\nThe strategies:\n");
    for (const strategy_kind &kind : bench_strategies()) {
        printf("  %-22s %s\n", kind.name, kind.what);
    }
    printf("\nExit: 0; 1 when an element was wrong or the kernel did not do as it must; 2 wrong "
           "usage.\n");
}
