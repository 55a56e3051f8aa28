// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-peer: channels between kernels of two GPUs, or of one: checks, figures and rivals.
// Usage: wic-peer --help. Exit: 0; 1 when something was wrong or a mistake was not found; 2 for
// options; 77 when it was not run because there is one GPU.
#include "wic/peer/bench/bench.cuh"

#include <cstdarg>
#include <cstring>

namespace
{
const struct {
    const char *name, *about;
    void (*run)(const peer_options &, peer_report *);
} parts[] = {
    {"check", "every element of --chunks chunks of 16 KiB, each transport", peer_check},
    {"words", "hand-over of a word and of small chunks, with parked warps", peer_words},
    {"rates", "GB/s by chunk size and transport, every element checked", peer_rates},
    {"rivals", "the same by copies with events, and by put-signal", peer_rivals},
    {"nccl", "the same by NCCL's device API, where it was found at build time", peer_nccl},
    {"patterns", "rings, fan-out and fan-in of 2 to 4 parties", peer_patterns},
    {"ways-out", "ends: a stop, a kernel that dies, a host that stops", peer_ways_out},
    {"trap", "of ways-out: a kernel that traps", peer_trap},
    {"silent", "of ways-out: waits to be stopped for 6 s", peer_silent},
};
constexpr size_t parts_of_all = 7;
const char *const mistakes[] = {"none", "early", "lost", "wrong", "twice"};

void help()
{
    printf(
        "wic-peer [OPTION VALUE]..\n"
        "  --gpus A,B     sender's and receiver's; the same twice: two kernels of one GPU [0,1]\n"
        "  --part NAME    [all], of\n");
    for (const auto &part : parts) {
        printf("                   %-9s %s\n", part.name, part.about);
    }
    printf("  --chunks N     of check [1000000]\n"
           "  --break NAME   early, lost, wrong or twice: a mistake that check must find\n"
           "  --json FILE    also write the figures there\n");
}

bool parse(int argc, char **argv, peer_options *o)
{
    o->to = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i], value = argv[i + 1];
        char end;
        if (name == "--gpus" && sscanf(value.c_str(), "%d,%d%c", &o->from, &o->to, &end) == 2) {
        } else if (name == "--part") {
            o->part = value;
        } else if (name == "--chunks") {
            o->chunks = strtoull(value.c_str(), nullptr, 10);
        } else if (name == "--json") {
            o->json = value;
        } else if (name == "--break") {
            uint32_t at = 1;
            while (at < 5 && value != mistakes[at]) {
                at++;
            }
            o->mistake = static_cast<peer_break>(at);
            o->part = "check";
        } else {
            return false;
        }
    }
    bool is_part = o->part == "all";
    for (const auto &part : parts) {
        is_part = is_part || o->part == part.name;
    }
    return argc % 2 == 1 && is_part && o->mistake < 5 && o->chunks > 0;
}

bool write(const peer_options &o, const char *gpu, const peer_report &report)
{
    FILE *file = fopen(o.json.c_str(), "w");
    if (file == nullptr) {
        return false;
    }
    fprintf(file, "{\"gpu\": \"%s\", \"where\": \"%s\",\n\"rows\": [", gpu, o.where());
    for (size_t i = 0; i < report.rows.size(); i++) {
        fprintf(file, "%s\n %s", i == 0 ? "" : ",", report.rows[i].c_str());
    }
    fprintf(file, "]}\n");
    return fclose(file) == 0;
}
} // namespace

void peer_report::line(bool is_right, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%-4s ", is_right ? "ok" : "FAIL");
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
    is_good = is_good && is_right;
}

void peer_report::row(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    rows.emplace_back(text);
}

int main(int argc, char **argv)
{
    peer_options o;
    int count = 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        help();
        return 0;
    }
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "wic-peer: these options are not valid; see --help\n");
        return 2;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // no first launch after a resident kernel
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        fprintf(stderr, "wic-peer: there is no GPU that CUDA can use\n");
        return 1;
    }
    if (o.from < 0 || o.to < 0 || o.from >= count || o.to >= count) {
        printf("not run: %d GPU%s\n", count, count == 1 ? "" : "s");
        return 77;
    }
    cudaDeviceProp gpu = {};
    PEER_MUST(cudaGetDeviceProperties(&gpu, o.from));
    printf("%s, %s: GPU %d to GPU %d\n", gpu.name, o.where(), o.from, o.to);
    peer_report report;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (o.part == "all" ? i < parts_of_all : o.part == parts[i].name) {
            parts[i].run(o, &report);
        }
    }
    if (!o.json.empty() && !write(o, gpu.name, report)) {
        fprintf(stderr, "wic-peer: '%s' cannot be written\n", o.json.c_str());
        return 1;
    }
    return report.is_good ? 0 : 1;
}
