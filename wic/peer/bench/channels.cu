// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic/peer itself: every element of a million chunks, the hand-over of a word, GB/s by chunk size
// and transport, schedules of more than two parties.
#include "wic/peer/bench/run.cuh"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace
{
constexpr uint32_t transports = WIC_PEER_TRANSPORTS;
constexpr uint64_t rate_bytes = uint64_t{4} << 30;

wic_peer_plan plan_for(const peer_options &o, uint32_t chunk_bytes, uint32_t transport,
                       uint32_t each)
{
    wic_peer_plan plan = {};
    const auto by = static_cast<wic_peer_transport>(transport);
    if (wic_peer_plan_choose(o.from, o.is_loopback() ? 2 : 1, chunk_bytes, by, &plan) != 0) {
        fprintf(stderr, "wic-peer: no plan: %s\n", wic_link_why());
        exit(1);
    }
    plan.each = each;
    plan.lanes *= each;
    return plan;
}

// One step with all chunks from party 0 to party 1.
std::vector<wic_step> one_way(uint64_t chunks, uint32_t chunk_bytes)
{
    wic_pattern_params params = {};
    wic_step step = {};
    size_t count = 0;
    char why[WIC_TEXT_BYTES] = "";
    params.parties = 2;
    params.slots = 4;
    params.chunk_bytes = std::max(chunk_bytes, 1u);
    params.chunks[0][1] = chunks;
    if (wic_schedule_record(&wic_pattern_unidirectional, &params, &step, 1, &count, why,
                            sizeof why) != 0) {
        fprintf(stderr, "wic-peer: no schedule: %s\n", why);
        exit(1);
    }
    return {step};
}

// Single chunks to and fro.
std::vector<wic_step> to_and_fro(uint32_t rounds, uint32_t chunk_bytes)
{
    std::vector<wic_step> steps(2 * size_t{rounds});
    for (size_t i = 0; i < steps.size(); i++) {
        steps[i].from = i % 2;
        steps[i].to = 1 - i % 2;
        steps[i].first = i / 2;
        steps[i].count = 1;
        steps[i].chunk_bytes = std::max(chunk_bytes, 1u);
    }
    return steps;
}

// --- a ring of parties, fan-out and fan-in, as patterns ---

struct turns {
    wic_pattern_params params;
    uint64_t moved, portion, step;
    const char *kind;
};

int begin_turns(const wic_pattern_params *params, const char *kind, void **out_state)
{
    *out_state = new turns{*params, 0, 3, 0, kind};
    return 0;
}
int next_turn(void *state, wic_step *out_step)
{
    turns *t = static_cast<turns *>(state);
    const uint32_t parties = t->params.parties;
    const bool is_ring = strcmp(t->kind, "ring") == 0;
    const uint32_t ways = is_ring ? parties : parties - 1;
    const uint32_t turn = static_cast<uint32_t>(t->step++ % ways);
    const uint32_t other = 1 + turn;
    const uint32_t from = is_ring ? turn : strcmp(t->kind, "fan_out") == 0 ? 0 : other;
    const uint32_t to = is_ring ? (turn + 1) % parties : from == 0 ? other : 0;
    const uint64_t all = t->params.chunks[from][to];
    if (t->moved >= all) {
        return 0;
    }
    out_step->from = static_cast<uint16_t>(from);
    out_step->to = static_cast<uint16_t>(to);
    out_step->first = t->moved;
    out_step->count = std::min(t->portion, all - t->moved);
    out_step->chunk_bytes = t->params.chunk_bytes;
    t->moved += turn + 1 == ways ? out_step->count : 0;
    return 1;
}
void end_turns(void *state)
{
    delete static_cast<turns *>(state);
}
template <const char *const &kind>
int create_turns(const wic_pattern_params *params, void **out_state)
{
    return begin_turns(params, kind, out_state);
}
const char *const ring_name = "ring", *const out_name = "fan_out", *const in_name = "fan_in";

wic_pattern pattern_of(const char *name, int (*create)(const wic_pattern_params *, void **))
{
    wic_pattern pattern = {};
    pattern.abi = WIC_PATTERN_ABI;
    pattern.size = sizeof pattern;
    pattern.name = name;
    pattern.doc = "A schedule of more than two parties.";
    pattern.create = create;
    pattern.next = next_turn;
    pattern.destroy = end_turns;
    return pattern;
}

void check_pattern(const peer_options &o, const wic_pattern &pattern, uint32_t parties,
                   peer_report *report)
{
    const uint64_t chunks = 1000;
    wic_pattern_params params = {};
    std::vector<wic_step> steps(parties * chunks);
    size_t count = 0;
    char why[WIC_TEXT_BYTES] = "";
    params.parties = parties;
    params.slots = 4;
    params.chunk_bytes = 4096;
    const bool is_ring = strcmp(pattern.name, "ring") == 0;
    for (uint32_t i = 0; i < parties; i++) {
        for (uint32_t k = 0; k < parties; k++) {
            const bool is_way = is_ring                                ? k == (i + 1) % parties
                                : strcmp(pattern.name, "fan_out") == 0 ? i == 0 && k > 0
                                                                       : k == 0 && i > 0;
            params.chunks[i][k] = is_way ? chunks : 0;
        }
    }
    if (wic_schedule_record(&pattern, &params, steps.data(), steps.size(), &count, why,
                            sizeof why) != 0) {
        report->line(false, "%s of %u parties: no schedule: %s", pattern.name, parties, why);
        return;
    }
    steps.resize(count);
    for (uint32_t transport = 0; transport < transports; transport++) {
        wic_peer_plan plan = plan_for(o, 4096, transport, 1);
        plan.lanes = 16;
        const peer_result result = peer_run({o, plan, steps, parties, PEER_RIGHT});
        report->line(result.is_right, "%s of %u parties, %s: %llu chunks, every element %s",
                     pattern.name, parties, wic_peer_transport_name(plan.transport),
                     static_cast<unsigned long long>(result.used), result.why.c_str());
    }
}
} // namespace

void peer_check(const peer_options &o, peer_report *report)
{
    for (uint32_t transport = 0; transport < transports; transport++) {
        const wic_peer_plan plan = plan_for(o, 16384, transport, 1);
        const peer_result result = peer_run({o, plan, one_way(o.chunks, 16384), 2, o.mistake});
        const bool is_good = o.mistake == PEER_RIGHT ? result.is_right : result.wrong > 0;
        report->line(is_good, "%s, %s: %llu chunks of 16 KiB, %llu elements wrong, %.1f GB/s %s",
                     o.where(), wic_peer_transport_name(plan.transport),
                     static_cast<unsigned long long>(result.used),
                     static_cast<unsigned long long>(result.wrong), result.gb_s,
                     o.mistake == PEER_RIGHT ? result.why.c_str()
                     : is_good               ? "(the mistake is found)"
                                             : "(THE MISTAKE IS NOT FOUND)");
        report->row("{\"what\": \"check\", \"transport\": \"%s\", \"chunks\": %llu, \"wrong\": "
                    "%llu, \"mistake\": %u, \"gb_s\": %.2f}",
                    wic_peer_transport_name(plan.transport),
                    static_cast<unsigned long long>(result.used),
                    static_cast<unsigned long long>(result.wrong), static_cast<unsigned>(o.mistake),
                    result.gb_s);
    }
}

void peer_words(const peer_options &o, peer_report *report)
{
    const uint32_t rounds = 20000;
    double tuned = 0;
    const int rc = wic_peer_tune_word(o.from, o.to, &tuned);
    report->line(rc == 0, "%s, wic_peer_tune_word: %.3f us one way %s", o.where(), tuned,
                 rc == 0 ? "" : wic_link_why());
    for (const uint32_t bytes : {0u, 16u, 4096u}) {
        for (uint32_t transport = 0; transport < (bytes == 0 ? 1 : transports); transport++) {
            for (const uint32_t warps : {1u, 16u}) {
                wic_peer_plan plan = plan_for(o, bytes, transport, 1);
                plan.lanes = 1;
                plan.warps = warps;
                const peer_result r = peer_run({o, plan, to_and_fro(rounds, bytes), 2, PEER_RIGHT});
                const double us = r.seconds * 1e6 / (2.0 * rounds);
                char what[64];
                snprintf(what, sizeof what, bytes == 0 ? "a word" : "a chunk of %u bytes by %s",
                         bytes, wic_peer_transport_name(plan.transport));
                report->line(r.is_right,
                             "%s, hand-over of %s, %2u parked warps: %.3f us one way %s", o.where(),
                             what, warps, us, r.why.c_str());
                report->row("{\"what\": \"hand-over\", \"bytes\": %u, \"transport\": \"%s\", "
                            "\"warps\": %u, \"us\": %.4f}",
                            bytes, wic_peer_transport_name(plan.transport), warps, us);
            }
        }
    }
}

void peer_rates(const peer_options &o, peer_report *report)
{
    for (const uint32_t kib : {4u, 16u, 64u, 256u}) {
        for (uint32_t transport = 0; transport < transports; transport++) {
            if (transport == WIC_PEER_LETTERS && kib > 16) {
                continue; // they are for small chunks, which fit into shared memory
            }
            for (uint32_t each = 1; each <= 2; each++) {
                const wic_peer_plan plan = plan_for(o, kib * 1024, transport, each);
                const peer_result r = peer_run(
                    {o, plan, one_way(rate_bytes / (kib * 1024), kib * 1024), 2, PEER_RIGHT});
                report->line(r.is_right,
                             "%s, %3u KiB chunks, %-11s %u a multiprocessor: %6.1f GB/s %s",
                             o.where(), kib, wic_peer_transport_name(plan.transport), each, r.gb_s,
                             r.why.c_str());
                report->row("{\"what\": \"rate\", \"who\": \"wic\", \"kib\": %u, \"transport\": "
                            "\"%s\", \"each\": %u, \"gb_s\": %.2f, \"checked\": true}",
                            kib, wic_peer_transport_name(plan.transport), each, r.gb_s);
            }
        }
        wic_peer_plan best;
        char text[160] = "";
        const int rc = wic_peer_tune(o.from, o.to, kib * 1024, &best, nullptr);
        if (rc == 0) {
            wic_peer_plan_print(&best, text, sizeof text);
        }
        report->line(rc == 0, "%s, %3u KiB chunks, plan of wic_peer_tune: %s", o.where(), kib,
                     rc == 0 ? text : wic_link_why());
    }
}

void peer_patterns(const peer_options &o, peer_report *report)
{
    const wic_pattern patterns[] = {pattern_of(ring_name, create_turns<ring_name>),
                                    pattern_of(out_name, create_turns<out_name>),
                                    pattern_of(in_name, create_turns<in_name>)};
    for (const wic_pattern &pattern : patterns) {
        for (const uint32_t parties : {2u, 3u, 4u}) {
            check_pattern(o, pattern, parties, report);
        }
    }
}
