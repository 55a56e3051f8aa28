// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "tests/device/emulate_block.h"
#include "tests/device/emulate_pair.h"
#include "wic/apps/apps.cuh"
#include "wic/apps/pair/send.cuh"

#include <atomic>
#include <cstdio>
#include <thread>

namespace
{
struct block_memory : emulate_block_memory {
    alignas(16) unsigned char lines[pair_letters_bytes];
    std::atomic<bool> leaves{false};
};

struct way : emulate_thread<block_memory> {
    using emulate_thread::emulate_thread;
    pair_sender<way> sender;

    uint32_t taken_turn = 0; // number of the buffer of letters

    uint64_t take(const pair_view &p, const pair_sending &piece, const void **from)
    {
        if (p.send == PAIR_LETTERS) {
            return take_letters(p, piece, from);
        }
        uint64_t word = 0;
        if (own.thread == 0) {
            const bool is_here = pair_wait(p, [&] {
                word = pair_look(piece.lane, piece.number);
                return word != 0;
            });
            word = is_here ? static_cast<uint32_t>(word) : resident_leave;
        }
        *from = piece.data();
        return share(word);
    }
    uint64_t take_letters(const pair_view &p, const pair_sending &piece, const void **from)
    {
        bool is_lost = false;
        unsigned char *to = memory->lines + pair_lines_bytes + taken_turn * resident_piece_most;
        taken_turn ^= 1;
        *from = to;
        if (!pair_letters::take(p, piece, to, own, &is_lost)) {
            memory->leaves = true;
        }
        const uint64_t found = share(!is_lost);
        return memory->leaves ? resident_leave : found;
    }
    void taken()
    {
    }
    template <class Write> void make(pair_way_out send, const pair_sending &sending, Write write)
    {
        sender.make(send, sending, memory->lines, write);
    }
    void send(pair_way_out send, const pair_sending &sending, bool is_lost)
    {
        sender.send(send, sending, memory->lines, is_lost, *this);
    }
};

// The memory of a round, poisoned or zero.
struct memory {
    std::vector<uint64_t> board[2], ready[2], told;
    std::vector<uint32_t> made[2], ups;
    app_memory data[2], copy[2], letters[2];
    uint32_t taken[2] = {}, met[2] = {}, started[2] = {}, state[2] = {}, begin = 0, stop = 0;

    template <class A> pair_view lay_out(const emulate_pair &how)
    {
        const app_step most = A::most(A::sizes[0]);
        const uint32_t chunks[2] = {most.up, most.down};
        const size_t bytes[2] = {size_t(most.up_units) * A::facts.up_unit,
                                 size_t(most.down_units) * A::facts.down_unit};
        pair_view p = {};
        for (int to = 0; to < 2; to++) {
            const uint32_t places = emulate_ring(chunks[to], how.places);
            board[to].assign(places, 0);
            made[to].assign(places, 0);
            pair_lane &lane = p.to[to];
            lane.bytes = (bytes[to] + 15) / 16 * 16;
            data[to] = app_allocate(places * lane.bytes);
            lane.board = board[to].data();
            lane.made = made[to].data();
            lane.taken = &taken[to];
            lane.data = data[to].get();
            lane.mask = places - 1;
            if (how.send != PAIR_IN_PLACE) {
                copy[to] = app_allocate(places * lane.bytes);
                lane.copy = copy[to].get();
            }
            if (how.send == PAIR_LETTERS) {
                letters[to] = app_allocate(2 * places * lane.bytes);
                memset(letters[to].get(), 0, 2 * places * lane.bytes);
                lane.letters = letters[to].get();
            }
            if (how.send == PAIR_EFFSHARE) {
                ready[to].assign(places, 0);
                lane.ready = ready[to].data();
            }
            p.met[to] = &met[to];
            p.started[to] = &started[to];
            p.state[to] = &state[to];
        }
        told.assign(resident_steps_ring * resident_step_words, 0);
        ups.assign(resident_steps_ring, 0);
        p.steps = told.data();
        p.ups = ups.data();
        p.begin = &begin;
        p.stop = &stop;
        p.limit_ns = UINT64_MAX;
        p.send = static_cast<pair_way_out>(how.send);
        p.fault = {static_cast<app_break>(how.fault), how.receiver, 0, how.step};
        return p;
    }
};

template <class A, int party>
void start(const emulate_pair &how, const typename A::view &v, const pair_view &p,
           emulate_blocks<block_memory> *blocks, std::vector<std::thread> *running)
{
    for (uint32_t i = 0; i < how.blocks[party] * how.threads; i++) {
        block_memory *own = blocks->of(i / how.threads);
        running->emplace_back([=, &how, &v, &p] {
            way one(i / how.threads, how.blocks[party], {i % how.threads, how.threads}, own);
            pair_party<A, party, way>(v, p, one).run();
        });
    }
}

// The agent of effshare, until *is_over.
void serve(const pair_view &p, const uint32_t *is_over)
{
    pair_agent agent[2];
    while (__atomic_load_n(is_over, __ATOMIC_ACQUIRE) == 0) {
        bool is_idle = true;
        for (int to = 0; to < 2; to++) {
            const pair_lane &lane = p.to[to];
            is_idle &= !agent[to].serve(lane, [&](uint32_t at, uint32_t count) {
                memcpy(lane.data + at * lane.bytes, lane.copy + at * lane.bytes,
                       count * lane.bytes);
                for (uint32_t i = at; i < at + count; i++) {
                    __atomic_store_n(&lane.board[i], lane.ready[i], __ATOMIC_RELEASE);
                }
            });
        }
        if (is_idle) {
            sched_yield();
        }
    }
}

template <class A> bool round_of(const emulate_pair &how, uint32_t round, std::string *why)
{
    memory m;
    app_host<A> host(A::sizes[0]);
    host.begin(7, round);
    const pair_view p = m.lay_out<A>(how);
    emulate_blocks<block_memory> blocks[2] = {{how.blocks[0], how.threads},
                                              {how.blocks[1], how.threads}};
    const auto run = [&](bool first, bool second) {
        std::vector<std::thread> running;
        if (first) {
            start<A, 0>(how, host.view(0), p, &blocks[0], &running);
        }
        if (second) {
            start<A, 1>(how, host.view(1), p, &blocks[1], &running);
        }
        uint32_t is_over = 0;
        std::thread agent;
        if (how.send == PAIR_EFFSHARE) {
            agent = std::thread(serve, std::cref(p), &is_over);
        }
        __atomic_store_n(how.stops ? &m.stop : &m.begin, 1, __ATOMIC_RELEASE);
        for (std::thread &thread : running) {
            thread.join();
        }
        __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
        if (agent.joinable()) {
            agent.join();
        }
    };
    run(true, true);
    if (how.alone && m.state[0] == RESIDENT_DONE && m.state[1] == RESIDENT_DONE) {
        host.begin(7, round);
        for (int party = 0; party < 2; party++) {
            m.begin = m.state[party] = 0;
            pair_forget(p, party, [](void *at, size_t bytes) { memset(at, 0, bytes); });
            run(party == 0, party == 1);
        }
    }
    *why = "a party has not reached the end";
    return m.state[0] == RESIDENT_DONE && m.state[1] == RESIDENT_DONE && host.verify(why);
}

template <class A> unsigned rounds_of(const emulate_pair *how, char why[200])
{
    unsigned right = 0;
    why[0] = 0;
    for (uint32_t round = 0; round < how->rounds; round++) {
        std::string what;
        const bool is_right = round_of<A>(*how, round, &what);
        right += is_right;
        if (!is_right && why[0] == 0) {
            snprintf(why, 200, "round %u: %s", round, what.c_str());
        }
    }
    return right;
}

const struct {
    const char *name;
    unsigned (*rounds)(const emulate_pair *how, char why[200]);
} apps[] = {{"c2d", rounds_of<c2d>}, {"stn", rounds_of<stn>}, {"bs", rounds_of<bs>},
            {"bfs", rounds_of<bfs>}, {"gem", rounds_of<gem>}, {"kmn", rounds_of<kmn>}};
} // namespace

const char *emulate_pair_app(unsigned app)
{
    return app < sizeof apps / sizeof *apps ? apps[app].name : nullptr;
}

unsigned emulate_pair_rounds(unsigned app, const struct emulate_pair *how, char why[200])
{
    return apps[app].rounds(how, why);
}
