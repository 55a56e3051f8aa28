// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulate_stream.h"

#include "wic/stream.hpp"

#include <cstdio>
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
    ~byte_stream()
    {
        stop();
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

const char *ends(byte_stream &s, const char *wrong, char *words)
{
    snprintf(words, EMULATE_WORDS, "%s", s.error().c_str());
    return wrong;
}
} // namespace

const char *emulate_stream_frames(uint32_t frames, uint32_t slots, bool copies, char *words)
{
    byte_stream s(units, with_slots(slots));
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
