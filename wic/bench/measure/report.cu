// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON file, and what its figures are made by.
#include "wic/bench/measure/report.cuh"

#include <algorithm>
#include <ctime>

namespace
{
// "580.95.05", as the kernel module says; "" where it is hidden.
std::string driver_version()
{
    char line[256] = "";
    if (FILE *file = fopen("/proc/driver/nvidia/version", "r")) {
        line[fread(line, 1, sizeof line - 1, file)] = 0;
        fclose(file);
    }
    for (const std::string &word : bench_split(line, " \n")) {
        if (word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos) {
            return word;
        }
    }
    return "";
}

std::string utc_now()
{
    char text[32];
    const time_t now = time(nullptr);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return text;
}

void write_head(FILE *file, const bench_report &report)
{
    int cuda = 0;
    CUDA_MUST(cudaDriverGetVersion(&cuda));
    const wic_gpu gpu = bench_gpu();
    fprintf(file,
            "{\"gpu\": \"%s\", \"compute\": %d, \"code\": %d, \"driver\": \"%s\", \"cuda\": "
            "\"%d.%d\", \"date\": \"%s\", \"ceiling_gbs\": %.3f",
            gpu.name, gpu.compute, bench_code_architecture(), driver_version().c_str(), cuda / 1000,
            cuda % 1000 / 10, utc_now().c_str(), report.ceiling_gbs);
}

void write_row(FILE *file, const table_row &r)
{
    const wic_transfer_plan &plan = r.shape.plan;
    fprintf(file,
            "{\"strategy\": \"%s\", \"chunk_bytes\": %zu, \"gbs\": %.3f, \"p50_us\": %.2f, "
            "\"p99_us\": %.2f, \"leave_ms\": %.3f, \"wrong\": %llu, \"pieces\": %u, "
            "\"piece_bytes\": %u, \"depth\": %u, \"blocks\": %u, \"warps\": %u, \"pulls\": %u}",
            r.strategy.c_str(), r.chunk, r.gbs, r.p50_us, r.p99_us, r.leave_ms,
            static_cast<unsigned long long>(r.wrong), plan.pieces, plan.in_piece, plan.depth,
            plan.blocks, plan.warps, plan.pulls);
}

void write_quartiles(FILE *file, const char *name, const quartiles &q)
{
    if (q.middle > 0) {
        fprintf(file, "\"%s\": [%.3f, %.3f, %.3f], ", name, q.low, q.middle, q.high);
    } else { // with all slots full there is no latency
        fprintf(file, "\"%s\": null, ", name);
    }
}

void write_row(FILE *file, const neighbour_row &r)
{
    fprintf(file, "{\"strategy\": \"%s\", \"where\": \"%s\", \"gap_us\": %u, ", r.strategy.c_str(),
            r.where.c_str(), r.gap_us);
    write_quartiles(file, "fma", r.fma);
    write_quartiles(file, "memory", r.memory);
    write_quartiles(file, "l1", r.l1);
    if (r.resident) {
        fprintf(file, "\"room\": {\"registers\": %.1f, \"shared\": %.1f, \"processors\": %.1f}, ",
                r.room.registers, r.room.shared, r.room.processors);
    }
    fprintf(file, "\"p50_us\": %.2f}", r.p50_us);
}

void write_row(FILE *file, const ablation_row &r)
{
    fprintf(file, "{\"gate\": \"%s\", \"pull\": \"%s\", \"credits\": %s, ", r.gate, r.pull,
            r.limited ? "true" : "false");
    write_quartiles(file, "gbs", r.gbs);
    write_quartiles(file, "p50_us", r.p50_us);
    write_quartiles(file, "p99_us", r.p99_us);
    write_quartiles(file, "fma", r.slower[NEIGHBOUR_FMA]);
    write_quartiles(file, "memory", r.slower[NEIGHBOUR_MEMORY]);
    write_quartiles(file, "l1", r.slower[NEIGHBOUR_L1]);
    fprintf(file, "\"chunk_bytes\": %zu}", r.chunk);
}

void write_row(FILE *file, const frontier_row &r)
{
    fprintf(file,
            "{\"strategy\": \"%s\", \"chunk_bytes\": %zu, \"load\": %u, \"offered_gbs\": %.3f, "
            "\"rounds\": %u, \"kept_up\": %s, ",
            r.strategy.c_str(), r.chunk, r.load, r.offered_gbs, r.rounds,
            r.kept_up ? "true" : "false");
    write_quartiles(file, "gbs", r.gbs);
    write_quartiles(file, "p50_us", r.p50_us);
    write_quartiles(file, "p99_us", r.p99_us);
    fprintf(file, "\"cpu\": %.3f, \"calls\": %.3f, ", r.cpu, r.calls);
    r.watts < 0 ? fprintf(file, "\"watts\": null, ") : fprintf(file, "\"watts\": %.1f, ", r.watts);
    fprintf(file, "\"samples\": %llu, \"shape\": \"%s\"}",
            static_cast<unsigned long long>(r.samples), r.shape.c_str());
}

template <class Row> void write_rows(FILE *file, const char *name, const std::vector<Row> &rows)
{
    fprintf(file, ",\n\"%s\": [", name);
    for (size_t i = 0; i < rows.size(); i++) {
        fprintf(file, i ? ",\n " : "\n ");
        write_row(file, rows[i]);
    }
    fprintf(file, "]");
}
} // namespace

int bench_code_architecture()
{
    cudaFuncAttributes found;
    CUDA_MUST(cudaFuncGetAttributes(&found, resident_kernel(WAIT_PARKED)));
    return found.ptxVersion;
}

quartiles bench_quartiles(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) { // between two values in proportion
        const double place = share * static_cast<double>(values.size() - 1);
        const size_t low = static_cast<size_t>(place), high = std::min(low + 1, values.size() - 1);
        return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
    };
    return {at(0.25), at(0.5), at(0.75)};
}

void write_report(const std::string &path, const bench_report &report)
{
    FILE *file = fopen(path.c_str(), "w");
    if (!file) {
        bench_fail("the JSON file cannot be written", __LINE__);
    }
    write_head(file, report);
    write_rows(file, "results", report.table);
    write_rows(file, "neighbours", report.beside);
    write_rows(file, "ablation", report.ablation);
    write_rows(file, "frontier", report.frontier);
    fprintf(file, "}\n");
    if (fclose(file) != 0) {
        bench_fail("the JSON file cannot be written", __LINE__);
    }
}
