// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulate_stream.h"

#include "wic/guest.hpp"
#include "wic/reduction.hpp"
#include "wic/rows.hpp"

#include <cstdio>
#include <ctime>
#include <sched.h>
#include <thread>

namespace
{
constexpr size_t units = 500;
constexpr size_t key_at = 8;

class byte_stream : public wic::unit_flow<uint8_t, uint8_t>
{
  public:
    byte_stream(size_t n, const wic::options &o, bool whole = false)
    {
        is_whole_ = whole;
        start(0, n, o, 4, this, std::make_shared<const int>(0));
    }
};

wic::options with_slots(uint32_t slots)
{
    wic::options o;
    o.slots = slots;
    o.user_bytes = 16;
    return o;
}

size_t size_of(uint64_t number)
{
    return number % 5 == 0 ? units : number * 37 % units;
}

uint8_t sample(uint64_t number, size_t i)
{
    return static_cast<uint8_t>(number * 7 + i);
}

template <class T> void fill(T *to, uint64_t number)
{
    for (size_t i = 0; i < size_of(number); i++) {
        to[i] = sample(number, i);
    }
}

bool send(byte_stream &s, uint64_t number, bool copies)
{
    uint8_t frame[units];
    fill(frame, number);
    if (copies) {
        return s.push(frame, size_of(number));
    }
    auto slot = s.acquire();
    if (!slot) {
        return false;
    }
    fill(slot->data(), number);
    memset(slot->user(), static_cast<int>(number % 250 + 1), key_at + 1);
    return slot->number() == number && s.publish(*slot, size_of(number));
}

// Counts the result if it is the next one and right.
bool is_right(const wic::frame<const uint8_t> &result, bool copies, uint64_t *count)
{
    const uint64_t number = (*count)++;
    const uint8_t key = copies ? static_cast<const uint8_t *>(result.user())[key_at]
                               : static_cast<uint8_t>(number % 250 + 1);
    bool good = result.number() == number && result.size() == size_of(number);
    for (size_t i = 0; good && i < result.size(); i++) {
        good = result[i] == static_cast<uint8_t>(sample(number, i) + key);
    }
    return good;
}

const char *ends(const wic::flow &s, const char *wrong, char *words)
{
    snprintf(words, EMULATE_WORDS, "%s", s.error().c_str());
    return wrong;
}
} // namespace

const char *emulate_stream_frames(uint32_t frames, uint32_t slots, bool copies, bool alone,
                                  char *words)
{
    wic::options o = with_slots(slots);
    o.one_thread = alone;
    byte_stream s(units, o);
    uint64_t count = 0;
    for (uint64_t n = 0; n < frames; n++) {
        if (!send(s, n, copies)) {
            return ends(s, "a frame was refused", words);
        }
        while (auto result = s.try_pop()) {
            if (!is_right(*result, copies, &count)) {
                return ends(s, "a result is wrong", words);
            }
        }
    }
    s.close();
    while (auto result = s.pop()) {
        if (!is_right(*result, copies, &count)) {
            return ends(s, "a result is wrong", words);
        }
    }
    return ends(s,
                count != frames ? "not every frame has a result"
                : s             ? nullptr
                                : "it failed",
                words);
}

const char *emulate_stream_dropped_frame(char *words)
{
    byte_stream s(units, with_slots(2));
    {
        auto dropped = s.acquire();
        auto moved = std::move(*dropped);
    }
    const bool sent = send(s, 1, true);
    s.close();
    auto empty = s.pop(), full = s.pop();
    const bool good = sent && empty && empty->size() == 0 && full && full->size() == size_of(1);
    return ends(s, !good ? "an empty result and one more were expected" : nullptr, words);
}

const char *emulate_stream_full(char *words)
{
    wic::options o = with_slots(2);
    o.push_ns = 1000000; // passes for sure, because nothing pops
    byte_stream s(units, o);
    uint64_t sent = 0, count = 0;
    while (send(s, sent, true)) {
        sent++;
    }
    const char *const wrong = ends(s, sent < 2 || sent > 4 ? "2 to 4 frames fit" : nullptr, words);
    s.close();
    while (auto result = s.pop()) {
        if (!is_right(*result, true, &count)) {
            return "a result is wrong";
        }
    }
    return wrong ? wrong : count != sent ? "results are lost" : s ? nullptr : "it failed";
}

const char *emulate_stream_wrong_size(bool whole, char *words)
{
    byte_stream s(units, with_slots(2), whole);
    uint8_t frame[units + 1] = {0};
    if (s.push(frame, whole ? units - 1 : units + 1)) {
        return "it was accepted";
    }
    const char *const wrong = ends(s, nullptr, words);
    return s.push(frame) ? wrong : "a good frame was refused";
}

const char *emulate_stream_open(size_t n, uint32_t slots, bool good, char *words)
{
    byte_stream s(n, with_slots(slots));
    uint8_t frame = 0;
    ends(s, nullptr, words);
    if (!good && (s.push(&frame, 1) || s.acquire() || s.pop() || s.try_pop())) {
        return "a stream that is not open works";
    }
    if (!good && (s.error() != words || words[0] == '\0')) {
        return "the reason is lost";
    }
    return static_cast<bool>(s) == good ? nullptr : "open";
}

const char *emulate_stream_failure(char *words)
{
    byte_stream s(units, with_slots(4));
    uint8_t frame[units] = {0};
    while (s.push(frame)) {
        while (s.try_pop()) {
        }
    }
    if (s) {
        return ends(s, "it has not failed", words);
    }
    const std::string first = s.error();
    if (s.pop() || s.error() != "pop" + first.substr(first.find(':'))) {
        return ends(s, "pop has other words", words);
    }
    return ends(s, nullptr, words);
}

const char *emulate_stream_cancel(char *words)
{
    byte_stream s(units, with_slots(4));
    uint64_t popped = 0;
    std::thread reader([&] {
        while (s.pop()) {
            popped++;
        }
    });
    const bool sent = send(s, 0, true);
    s.cancel();
    reader.join();
    const bool refused = !send(s, 1, true);
    return ends(s, sent && refused && popped <= 1 ? nullptr : "cancel", words);
}

const char *emulate_stream_stop(bool good, void (*wait)(void), char *words)
{
    byte_stream s(units, with_slots(4));
    uint8_t frame[units] = {0};
    if (!s.push(frame) || !s.push(frame)) {
        return ends(s, "push", words);
    }
    wait();
    if (s.stop() != good || !s.stop()) {
        return ends(s, "stop", words);
    }
    ends(s, nullptr, words);
    return s.push(frame) || s.pop() ? "a stream that was stopped works" : nullptr;
}

namespace
{
class byte_guests : public wic::guest_flow<uint8_t, uint8_t>
{
  public:
    byte_guests(size_t n, const wic::guest_options &o)
    {
        start(0, n, o, this, std::make_shared<const int>(0));
    }
};
} // namespace

const char *emulate_stream_guests(void (*wait)(void), char *words)
{
    wic::guest_options o;
    o.slots = 4;
    byte_guests s(units, o);
    uint8_t frame[units] = {7};
    wait(); // the kernel is there before a frame
    uint64_t popped = 0;
    for (int i = 0; i < 3; i++) {
        const timespec longer_than_idle = {0, 2 * WIC_DEVICE_IDLE_NS};
        nanosleep(&longer_than_idle, nullptr);
        if (!s.push(frame)) {
            return ends(s, "a frame was refused", words);
        }
        const auto r = s.pop();
        popped += r && r->size() == units && (*r)[0] == 7;
    }
    s.close();
    const bool over = !s.pop();
    return ends(s, popped != 3 || !over || !s ? "a result is wrong" : nullptr, words);
}

const char *emulate_stream_guests_without_kernel(char *words)
{
    wic::guest_options o;
    byte_guests s(units, o);
    while (s) { // until it is noticed, without a frame
        sched_yield();
    }
    if (s.pop()) {
        return ends(s, "a result of no kernel", words);
    }
    return ends(s, nullptr, words);
}

const char *emulate_stream_guests_open(size_t n, bool alone, char *words)
{
    wic::guest_options o;
    o.one_thread = alone;
    byte_guests s(n, o);
    return ends(s, s ? "it is open" : nullptr, words);
}

namespace
{
class byte_rows : public wic::row_flow<uint8_t, uint16_t>
{
  public:
    byte_rows(const wic::image &image, uint32_t bands)
    {
        prepare(0, image, bands);
        start(with_slots(4), 4, this, std::make_shared<const int>(0));
    }
};
} // namespace

const char *emulate_stream_rows(char *words)
{
    constexpr size_t bytes = 2 * 30 * 16 - 6; // to the last pixel
    byte_rows s({10, 30, 2, 16}, 3);
    const uint8_t frame[bytes] = {1, 2, 3};
    ends(s, nullptr, words);
    if (!s || s.units() != bytes || !s.push(frame)) {
        return "a frame is refused";
    }
    {
        auto dropped = s.acquire();
        if (!dropped || dropped->size() < bytes + 6) {
            return "a slot has no room for the gap after the last pixel";
        }
    }
    auto last = s.acquire();
    if (!last || s.publish(*last, bytes - 1)) {
        return "a part of a frame is accepted";
    }
    if (!s.publish(*last) || s.publish(*last)) {
        return "a frame is refused, or taken twice";
    }
    s.close();
    const size_t sizes[] = {3 * 30 * 10, 0, 3 * 30 * 10};
    for (const size_t size : sizes) {
        const auto result = s.pop();
        if (!result || result->size() != size) {
            return "a result has another size";
        }
    }
    return s.pop() ? "a result too many" : nullptr;
}

const char *emulate_stream_pixels()
{
    for (const uint32_t threads : {32u, 96u, 512u}) {
        for (const uint32_t width : {1u, 7u, 31u, 32u, 33u, 512u, 1000u}) {
            const uint32_t first = 5, last = 5 + (width * threads) % 11;
            std::vector<int> seen(width * 20);
            for (uint32_t thread = 0; thread < threads; thread++) {
                wic::pixel_walk at(thread, threads, first, width);
                for (const wic::pixel_walk end(0, threads, last, width); at != end; ++at) {
                    const auto [x, y] = *at;
                    if (x < 0 || x >= static_cast<int32_t>(width) || y < 5 || y >= 20) {
                        return "a pixel is not in the image";
                    }
                    seen[static_cast<size_t>(y) * width + static_cast<size_t>(x)]++;
                }
            }
            for (size_t i = 0; i < seen.size(); i++) {
                if (seen[i] != (i / width >= first && i / width < last)) {
                    return "a pixel is not met once";
                }
            }
        }
    }
    return nullptr;
}

const char *emulate_stream_layouts()
{
    const wic::image planar = wic::image{10, 20, 3, 40}.of(2);
    const wic::image lines = wic::image{10, 20, 3, 60, 20}.of(2);
    const wic::image pixels = wic::image{10, 20, 3, 0, 2, 6}.of(2);
    const bool places = planar.at(2, 3, 4) == 2 * 800 + 4 * 40 + 3 * 2 &&
                        lines.at(2, 3, 4) == 4 * 60 + 2 * 20 + 3 * 2 &&
                        pixels.at(2, 3, 4) == (4 * 10 + 3) * 6 + 2 * 2;
    const bool sizes = planar.whole_bytes() == 2400 && planar.bytes(2) == 2380 &&
                       lines.whole_bytes() == 1200 && lines.bytes(2) == 1200 &&
                       pixels.whole_bytes() == 1200 && pixels.bytes(2) == 1200;
    const bool border =
        planar.at(1, -7, -1) == planar.at(1, 0, 0) && planar.at(1, 10, 99) == planar.at(1, 9, 19);
    return !places ? "places" : !sizes ? "sizes" : !border ? "border" : nullptr;
}

const char *emulate_stream_wrong_image(uint32_t width, uint32_t height, uint32_t bands,
                                       size_t pitch, char *words)
{
    class sixteen_bits : public wic::row_flow<uint16_t, uint16_t>
    {
      public:
        explicit sixteen_bits(const wic::image &image)
        {
            prepare(0, image, 1);
            start({}, 4, this, nullptr);
        }
    } s({width, height, bands, pitch});
    snprintf(words, EMULATE_WORDS, "%s", s.error().c_str());
    return s ? "it was opened" : nullptr;
}

const char *emulate_stream_parts(char *words)
{
    struct line {
        uint8_t samples[16];
    };
    class sums : public wic::part_flow<line, uint32_t>
    {
      public:
        explicit sums(size_t n)
        {
            start(0, n, with_slots(4), 4, this, std::make_shared<const int>(0));
        }
    } s(4000); // the link of the test writes a byte of results a unit, which a page holds
    const std::vector<line> frame(4000);
    const size_t sizes[] = {4000, 3999, 2000, 1, 0};
    size_t parts[5];
    for (size_t i = 0; i < 5; i++) {
        if (!s.push(frame.data(), sizes[i])) {
            return ends(s, "a frame is refused", words);
        }
        const auto result = s.pop();
        parts[i] = result ? result->size() : SIZE_MAX;
    }
    const bool good = parts[0] >= 4 && parts[0] < 100 && parts[1] == parts[0] &&
                      parts[2] >= parts[0] / 2 && parts[2] <= parts[0] / 2 + 1 && parts[3] == 1 &&
                      parts[4] == 0;
    return ends(s, good ? nullptr : "a result does not have a value of each piece", words);
}

const char *emulate_stream_tree()
{
    for (const uint32_t threads : {1u, 2u, 5u, 32u, 33u}) {
        std::vector<uint64_t> values(threads);
        std::vector<std::thread> running;
        unsigned wrong = 0; // thread 0 counts
        pthread_barrier_t barrier;
        pthread_barrier_init(&barrier, nullptr, threads);
        for (uint32_t thread = 0; thread < threads; thread++) {
            running.emplace_back([&, thread] {
                for (uint64_t turn = 1; turn <= 3; turn++) { // each follows at once
                    values[thread] = turn << thread;
                    wic::combine_all(values.data(), thread, threads, wic::plus(),
                                     [&] { pthread_barrier_wait(&barrier); });
                    if (thread == 0) {
                        wrong += values[0] != turn * ((uint64_t{1} << threads) - 1);
                    }
                }
            });
        }
        for (std::thread &thread : running) {
            thread.join();
        }
        pthread_barrier_destroy(&barrier);
        if (wrong > 0) {
            return "a value is lost or counted twice";
        }
    }
    return nullptr;
}
