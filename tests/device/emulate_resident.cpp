// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "tests/device/emulate_block.h"
#include "tests/device/emulate_resident.h"
#include "wic/apps/apps.cuh"
#include "wic/apps/strategies/resident.cuh"

#include <cstdio>
#include <sched.h>
#include <thread>

namespace
{
struct block_memory : emulate_block_memory {
    uint32_t letter[resident_letter_words];
};

// slices == 1: with letters.
template <uint32_t slices_> struct way : resident_plain, emulate_thread<block_memory> {
    using emulate_thread::emulate_thread;
    static constexpr uint32_t slices = slices_;
    static constexpr bool letters = slices == 1;
    uint64_t take(const resident_view &r, uint32_t number, size_t offset, uint32_t letter,
                  const void **from, bool must_wait)
    {
        if (letter > 0) {
            *from = memory->letter;
            return share(own.thread == 0 ? read_letter(r, number, letter) : 0);
        }
        const auto see = [](const uint64_t *word, uint32_t of) {
            sched_yield();
            return mapped(word, of);
        };
        *from = r.down + size_t(number & r.down_mask) * r.down_bytes + offset;
        return share(own.thread == 0 ? look(r, number, must_wait, see) : 0);
    }
    uint64_t read_letter(const resident_view &r, uint32_t number, uint32_t letter)
    {
        const uint64_t *of = r.letters_down + (number & r.bell_mask) * resident_letter_words;
        uint32_t tag = 0;
        for (uint32_t i = 0; i < letter; i++) {
            const bool is_here = resident_wait(r, [&] {
                sched_yield();
                const uint64_t word = wic_brought_see(&of[i]);
                memory->letter[i] = static_cast<uint32_t>(word);
                tag = static_cast<uint32_t>(word >> 32);
                return (tag & ~resident_lost) == number + 1;
            });
            if (!is_here) {
                return resident_leave;
            }
        }
        return tag >= resident_lost ? 0 : letter;
    }
    void *desk()
    {
        return memory->letter;
    }
    void give_letter(const resident_view &r, uint32_t number, uint32_t words)
    {
        share(0);
        for (uint32_t i = 0; own.thread == 0 && i < words; i++) {
            __atomic_store_n(&r.letters_up[(number & r.up_mask) * resident_letter_words + i],
                             uint64_t(number + 1) << 32 | memory->letter[i], __ATOMIC_RELEASE);
        }
        share(0);
    }
    void give(const resident_view &r, uint32_t number, uint32_t pieces)
    {
        share(0);
        if (own.thread == 0) {
            post(r, number, pieces);
        }
    }
};

// The host's party; chunks for it are right.
template <class A> struct host_party : app_host<A> {
    const emulate_resident &how;
    app_fault fault;
    bool met = false;
    uint32_t steps = 0, *stop;

    host_party(const app_size &size, const emulate_resident &how, uint32_t *stop)
        : app_host<A>(size),
          how(how), fault{static_cast<app_break>(how.fault), 1, how.round, how.step}, stop(stop)
    {
    }
    bool next(app_step *step)
    {
        const bool is_step = app_host<A>::next(step);
        steps = step->index;
        return is_step;
    }
    bool is_wrong(const app_step &step, uint32_t chunk)
    {
        const bool is_it = fault.kind != APP_BREAK_NONE && fault.round == step.round &&
                           fault.step == step.index && chunk + 1 == step.down;
        met = met || is_it;
        return is_it;
    }
    bool is_late()
    {
        sched_yield();
        if (how.late > 0 && steps >= how.late) {
            __atomic_store_n(stop, 1, __ATOMIC_RELEASE);
        }
        return __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
    }
};

template <bool letters_> struct no_side {
    static constexpr bool letters = letters_;
    void sent(unsigned char *)
    {
    }
    void reading(unsigned char *)
    {
    }
    void beat()
    {
    }
    void over(uint32_t)
    {
    }
};

// The memory of a round, poisoned or zero.
struct memory {
    std::vector<uint64_t> doorbell, told, letters;
    std::vector<uint32_t> answer, made, ups;
    app_memory down, up;
    uint32_t taken = 0, begin = 0, state = 0, met = 0, started = 0;

    template <class A>
    resident_view lay_out(const app_step &most, uint32_t least, const uint32_t *stop)
    {
        const bool is_piped = A::facts.order == APP_PIPED;
        const uint32_t downs = is_piped ? least
                               : A::facts.order == APP_EXCHANGES
                                   ? emulate_ring(2 * most.down, least)
                                   : emulate_ring(most.down, least);
        const uint32_t ups_of = is_piped ? least : emulate_ring(2 * most.up, least);
        const size_t down_bytes = (most.down_units * A::facts.down_unit + 15) / 16 * 16;
        const size_t up_bytes = (most.up_units * A::facts.up_unit + 15) / 16 * 16;
        doorbell.assign(downs, 0);
        told.assign(2 * resident_steps_ring * resident_step_words, 0);
        answer.assign(ups_of, 0);
        made.assign(ups_of, 0);
        ups.assign(resident_steps_ring, 0);
        down = app_allocate(downs * down_bytes);
        up = app_allocate(ups_of * up_bytes);
        resident_view r = {};
        r.doorbell = doorbell.data();
        r.answer = answer.data();
        r.steps = told.data();
        r.steps_copy = r.steps + resident_steps_ring * resident_step_words;
        letters.assign((downs + ups_of) * resident_letter_words, 0);
        r.letters_down = letters.data();
        r.letters_up = letters.data() + downs * resident_letter_words;
        r.ups = ups.data();
        r.taken = &taken;
        r.begin = &begin;
        r.state = &state;
        r.down = down.get();
        r.up = up.get();
        r.down_bytes = down_bytes;
        r.up_bytes = up_bytes;
        r.bell_mask = r.down_mask = downs - 1;
        r.up_mask = ups_of - 1;
        r.met = &met;
        r.started = &started;
        r.made = made.data();
        r.stop = stop;
        r.limit_ns = UINT64_MAX;
        return r;
    }
};

template <class A, uint32_t slices>
bool round_of(const emulate_resident &how, host_party<A> &host, uint32_t round, std::string *why)
{
    memory m;
    *host.stop = 0;
    host.begin(7, round);
    const resident_view r = m.lay_out<A>(A::most(A::sizes[0]), how.slots, host.stop);
    emulate_blocks<block_memory> blocks(how.blocks, how.threads);
    std::vector<std::thread> running;
    for (uint32_t i = 0; i < how.blocks * how.threads; i++) {
        running.emplace_back([&, i] {
            const uint32_t block = i / how.threads;
            way<slices> own(block, how.blocks, {i % how.threads, how.threads}, blocks.of(block));
            resident_party<A, way<slices>>(host.view(1), r, own).run();
        });
    }
    no_side<slices == 1> side;
    const bool is_done =
        resident_drive<A, host_party<A>, no_side<slices == 1>>(r, host, side).run();
    for (std::thread &thread : running) {
        thread.join();
    }
    *why = "the host gave up";
    return is_done && host.verify(why);
}

template <class A>
unsigned rounds_of(const emulate_resident *how, bool *met, uint32_t *steps, char why[200])
{
    uint32_t stop;
    host_party<A> host(A::sizes[0], *how, &stop);
    unsigned right = 0;
    why[0] = 0;
    for (uint32_t round = 0; round < how->rounds; round++) {
        std::string what;
        const bool is_right = how->sliced ? round_of<A, 3>(*how, host, round, &what)
                                          : round_of<A, 1>(*how, host, round, &what);
        right += is_right;
        if (!is_right && why[0] == 0) {
            snprintf(why, 200, "round %u: %s", round, what.c_str());
        }
    }
    *met = host.met;
    *steps = host.steps;
    return right;
}

const struct {
    unsigned (*rounds)(const emulate_resident *how, bool *met, uint32_t *steps, char why[200]);
} apps[] = {
#define APP(app) {rounds_of<app>},
#include "wic/apps/apps.def"
#undef APP
};
} // namespace

unsigned emulate_resident_rounds(unsigned app, const struct emulate_resident *how, bool *met,
                                 uint32_t *steps, char why[200])
{
    return apps[app].rounds(how, met, steps, why);
}
