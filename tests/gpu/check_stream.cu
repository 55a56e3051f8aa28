// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic/stream.hpp, rows.hpp and reduction.hpp on a GPU: units and images of many shapes, frames of
// all sizes, user bytes, mistakes of the work; every element is compared. Then the rate of a planar
// 3 x 3 filter as a share of that of copies alone.
//
//   check_stream [--speed]        exit 0, or 1 if a result is wrong
#include "wic/reduction.hpp"
#include "wic/rows.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

static int failures;

static void check(bool good, const char *what, const std::string &words)
{
    failures += !good;
    printf("  %s %s%s%s\n", good ? "ok  " : "FAIL", what, words.empty() ? "" : ": ", words.c_str());
}

static uint32_t noise(uint64_t at)
{
    at *= 0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(at >> 29 ^ at >> 47);
}

// --- units ---

template <size_t bytes> struct unit {
    uint8_t b[bytes];
};

// Each byte of a result is a sum of bytes of its unit, of the unit's place in the frame and of the
// frame's first user byte.
template <class In, class Out>
__host__ __device__ Out mixed(const In &in, uint32_t place, uint8_t user)
{
    Out out;
    for (size_t i = 0; i < sizeof(Out); i++) {
        out.b[i] = static_cast<uint8_t>(in.b[i % sizeof(In)] + in.b[(i * 5 + 3) % sizeof(In)] +
                                        place + user);
    }
    return out;
}

template <size_t in_bytes, size_t out_bytes> static void check_units(size_t units)
{
    using In = unit<in_bytes>;
    using Out = unit<out_bytes>;
    wic::options o;
    o.slots = 5;
    o.user_bytes = 16;
    wic::stream<In, Out, 8> s(units, o, [] __device__(auto piece) {
        const uint8_t user = *static_cast<const uint8_t *>(piece.user);
        for (auto i : piece) {
            piece.out[i] = mixed<In, Out>(piece.in[i], piece.first + i, user);
        }
    });
    const auto size_of = [&](uint64_t n) {
        return n % 3 == 0 ? units : static_cast<size_t>(noise(n)) % (units + 1);
    };
    uint64_t done = 0, wrong = 0;
    const auto verify = [&](const wic::frame<const Out> &r) {
        const uint64_t n = done++;
        wrong += r.number() != n || r.size() != size_of(n);
        for (size_t i = 0; i < r.size(); i++) {
            In in;
            for (size_t k = 0; k < in_bytes; k++) {
                in.b[k] = static_cast<uint8_t>(noise(n * 7919 + i * in_bytes + k));
            }
            const Out want =
                mixed<In, Out>(in, static_cast<uint32_t>(i), static_cast<uint8_t>(n * 3));
            wrong += memcmp(&want, &r[i], sizeof want) != 0;
        }
    };
    const uint64_t frames = 60;
    for (uint64_t n = 0; n < frames; n++) {
        auto frame = s.acquire();
        if (!frame) {
            break;
        }
        for (size_t i = 0; i < size_of(n) * in_bytes; i++) {
            reinterpret_cast<uint8_t *>(frame->data())[i] =
                static_cast<uint8_t>(noise(n * 7919 + i));
        }
        *static_cast<uint8_t *>(frame->user()) = static_cast<uint8_t>(n * 3);
        s.publish(*frame, size_of(n));
        while (auto r = s.try_pop()) {
            verify(*r);
        }
    }
    s.close();
    while (auto r = s.pop()) {
        verify(*r);
    }
    char what[100];
    snprintf(what, sizeof what, "%zu units of %zu to %zu bytes", units, in_bytes, out_bytes);
    check(s && done == frames && wrong == 0, what, s.error());
}

// --- rows ---

static void check_rows(const wic::image &shape, const char *name, int32_t halo)
{
    const wic::image in = shape.of(2);
    wic::options o;
    o.slots = 3;
    wic::rows<uint16_t, uint32_t> s(shape, 2, o, [halo] __device__(auto piece) {
        for (auto [x, y] : piece) {
            uint32_t sum = 0;
            for (uint32_t band = 0; band < piece.bands; band++) {
                sum += piece.in(band, x - halo, y - halo) + 3u * piece.in(band, x + halo, y) +
                       7u * piece.in(band, x, y + halo);
            }
            piece.out(0, x, y) = sum;
            piece.out(1, x, y) = sum ^ static_cast<uint32_t>(y);
        }
    });
    const uint64_t frames = 20;
    uint64_t done = 0, wrong = 0;
    std::vector<uint16_t> frame(s.units());
    const auto expose = [&](uint64_t n) {
        for (size_t i = 0; i < frame.size(); i++) {
            frame[i] = static_cast<uint16_t>(noise(n * 104729 + i));
        }
    };
    const auto verify = [&](const wic::frame<const uint32_t> &r) {
        expose(done);
        wrong += r.number() != done++ || r.size() != size_t{2} * in.width * in.height;
        const auto at = [&](uint32_t band, int32_t x, int32_t y) {
            return uint32_t{frame[in.at(band, x, y) / 2]};
        };
        for (size_t i = 0; i < size_t{in.width} * in.height && r.size() > 0; i++) {
            const int32_t x = static_cast<int32_t>(i % in.width);
            const int32_t y = static_cast<int32_t>(i / in.width);
            uint32_t sum = 0;
            for (uint32_t band = 0; band < in.bands; band++) {
                sum += at(band, x - halo, y - halo) + 3 * at(band, x + halo, y) +
                       7 * at(band, x, y + halo);
            }
            wrong += r[i] != sum;
            wrong += r[size_t{in.width} * in.height + i] != (sum ^ static_cast<uint32_t>(y));
        }
    };
    for (uint64_t n = 0; n < frames; n++) {
        expose(n);
        if (!s.push(frame.data())) {
            break;
        }
        while (auto r = s.try_pop()) {
            verify(*r);
        }
    }
    s.close();
    while (auto r = s.pop()) {
        verify(*r);
    }
    char what[100];
    snprintf(what, sizeof what, "rows: %u x %u, %u bands %s, halo %d", in.width, in.height,
             in.bands, name, halo);
    check(s && done == frames && wrong == 0, what, s.error());
}

// --- reductions ---

static void check_sums(size_t samples)
{
    wic::reduction<float, float, 5> s(samples, {}, [] __device__(auto piece) {
        float sum = 0;
        for (auto i : piece) {
            sum += piece.in[i];
        }
        return sum;
    });
    std::vector<float> frame(samples);
    uint64_t wrong = 0, unequal = 0, done = 0;
    float first = 0;
    for (uint64_t n = 0; n < 20; n++) {
        double want = 0;
        float have = 0;
        for (size_t i = 0; i < samples; i++) {
            frame[i] = static_cast<float>(noise(i) % 1000) / 7;
            want += static_cast<double>(frame[i]);
        }
        if (!s.push(frame.data())) {
            break;
        }
        const auto r = s.pop();
        for (size_t i = 0; r && i < r->size(); i++) {
            have += (*r)[i];
        }
        done += r.has_value();
        first = n == 0 ? have : first;
        unequal += memcmp(&first, &have, sizeof have) != 0;
        wrong += !(std::abs(static_cast<double>(have) - want) <= want * 1e-4);
    }
    char what[100];
    snprintf(what, sizeof what, "sums of %zu floats, the same bits each time", samples);
    check(s && done == 20 && wrong == 0 && unequal == 0, what, s.error());
}

// --- failures ---

static void check_refusals()
{
    wic::stream<unit<200000>, unit<200000>> large(4, {}, [] __device__(auto) {});
    check(!large && large.error().find("shared memory") != std::string::npos,
          "a unit that does not fit is refused", large.error());
    wic::options o;
    o.hang_ns = 1000000000;
    wic::stream<uint32_t, uint32_t> hangs(1000, o, [] __device__(auto piece) {
        const uint64_t since = wic_now();
        while (piece.tile == 3 && wic_now() - since < 3000000000) { // then it ends
        }
        for (auto i : piece) {
            piece.out[i] = piece.in[i];
        }
    });
    const std::vector<uint32_t> frame(1000);
    uint32_t popped = 0;
    for (uint32_t n = 0; n < 6 && hangs.push(frame.data()); n++) {
    }
    while (hangs.pop()) {
        popped++;
    }
    check(!hangs && popped <= 3 && hangs.error().find("did not finish tile 3") != std::string::npos,
          "work that hangs ends the stream", hangs.error());
    check(hangs.stop(), "its kernel leaves when the work goes on", "");
}

// --- speed ---

static double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Both ways at once, of buffers of the frame's size.
static double copies_alone(size_t in_bytes, size_t out_bytes, uint32_t frames)
{
    void *host[2] = {}, *device[2] = {};
    const size_t bytes[2] = {in_bytes, out_bytes};
    cudaStream_t stream[2];
    for (int i = 0; i < 2; i++) {
        if (cudaMallocHost(&host[i], bytes[i]) || cudaMalloc(&device[i], bytes[i]) ||
            cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking)) {
            return 0;
        }
    }
    double start = 0;
    for (uint32_t n = 0; n < frames + 10; n++) {
        if (n == 10) {
            cudaDeviceSynchronize();
            start = seconds();
        }
        cudaMemcpyAsync(device[0], host[0], in_bytes, cudaMemcpyHostToDevice, stream[0]);
        cudaMemcpyAsync(host[1], device[1], out_bytes, cudaMemcpyDeviceToHost, stream[1]);
    }
    const bool good = cudaDeviceSynchronize() == cudaSuccess;
    const double took = seconds() - start;
    for (int i = 0; i < 2; i++) {
        cudaFreeHost(host[i]);
        cudaFree(device[i]);
        cudaStreamDestroy(stream[i]);
    }
    return good ? frames / took : 0;
}

static void show_speed(uint32_t width, uint32_t height, uint32_t bands, uint32_t slots)
{
    const uint32_t frames = 400, before = 20;
    wic::options o;
    o.slots = slots;
    wic::rows<uint16_t, uint16_t> s({width, height, bands}, bands, o, [] __device__(auto piece) {
        for (auto [x, y] : piece) {
            for (uint32_t b = 0; b < piece.bands; b++) {
                uint32_t sum = 0;
                for (int32_t dy = -1; dy <= 1; dy++) {
                    for (int32_t dx = -1; dx <= 1; dx++) {
                        sum += piece.in(b, x + dx, y + dy);
                    }
                }
                piece.out(b, x, y) = static_cast<uint16_t>(sum / 9);
            }
        }
    });
    double start = 0;
    uint32_t sent = 0, popped = 0;
    while (popped < frames + before) {
        while (sent < frames + before && sent - popped < slots) {
            auto frame = s.acquire();
            if (!frame || !s.publish(*frame)) {
                break;
            }
            sent++;
        }
        if (!s.pop()) {
            break;
        }
        start = ++popped == before ? seconds() : start;
    }
    const double rate = popped == frames + before ? frames / (seconds() - start) : 0;
    const size_t bytes = s.units() * 2;
    s.stop();
    const double alone = copies_alone(bytes, bytes, frames);
    printf("  planar 3 x 3, %u x %u x %u, %u slots: %.0f frames/s, %.1f GB/s each way, %.3f of "
           "copies alone (%.1f GB/s) %s\n",
           width, height, bands, slots, rate, rate * static_cast<double>(bytes) / 1e9,
           alone > 0 ? rate / alone : 0, alone * static_cast<double>(bytes) / 1e9,
           s.error().c_str());
    failures += rate <= 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--speed") == 0) {
        for (const uint32_t slots : {4u, 8u, 16u}) {
            show_speed(1024, 1024, 3, slots);
        }
        show_speed(2048, 2048, 4, 8);
        show_speed(256, 256, 3, 64);
        return failures > 0;
    }
    check_units<1, 1>(100003);
    check_units<3, 1>(70001);
    check_units<12, 8>(40000);
    check_units<4, 16>(1);
    check_units<5, 24>(20011);
    check_units<48, 2>(100000);
    check_units<20000, 3000>(30);
    check_rows({1, 1, 1}, "planar", 1);
    check_rows({1000, 3, 2, 2048}, "planar with a pitch", 1);
    check_rows({517, 700, 3}, "planar", 1);
    check_rows({517, 700, 3, 517 * 6, 517 * 2}, "by line", 5);
    check_rows({517, 700, 3, 0, 2, 6}, "by pixel", 600);
    check_rows({7, 5000, 1}, "planar", 2);
    check_sums(1);
    check_sums(1000);
    check_sums(2000003);
    check_refusals();
    printf("%d failures\n", failures);
    return failures > 0;
}
