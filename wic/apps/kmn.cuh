// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_KMN_CUH
#define WIC_APP_KMN_CUH
// G_KMN: k-means of pixels of three bands, 16 classes. Party 1 has the pixels; in each pass party 0
// sends the centres, and gets the sums and counts of the classes, of which it makes the next ones.
// The paper's is unidirectional. Size: n = pixels in units of 1024, m = passes.
#include "wic/apps/app.cuh"

#include <vector>

struct kmn_view {
    uint32_t kilopixels, passes;
    int32_t *centres;         // [pass][class][band]; party 1 has them as received
    unsigned long long *sums; // [pass][class][band, count]; party 0 has them as received
    uint16_t *pixels;         // party 1: [band][pixel]
    uint32_t *partial;        // party 1: sums of each lane, [word][lane]
    uint8_t *classes;         // party 1: of the last pass
};

struct kmn : app_base<kmn_view> {
    using view = kmn_view;
    static constexpr uint32_t k = 16, bands = 3, words = k * (bands + 1);
    static constexpr app_facts facts = {"kmn", "G_KMN", "alternating", "streaming", APP_ANSWERS,
                                        4,     8,       false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 1, 4}, {"small", 64, 20}, {"middle", 1024, 20}, {"large", 8192, 20}};

    static view lay_out(const app_size &size, int party, app_arena &arena)
    {
        view v = {size.n, size.m, nullptr, nullptr, nullptr, nullptr, nullptr};
        v.centres = arena.take<int32_t>(k * bands * (size.m + 1));
        v.sums = arena.take<unsigned long long>(words * size.m);
        if (party == 1) {
            v.pixels = arena.take<uint16_t>(bands * count(v));
            v.partial = arena.take<uint32_t>(words * lanes(v));
            v.classes = arena.take<uint8_t>(count(v));
        }
        return v;
    }
    static APP_DO size_t count(const view &v)
    {
        return size_t(v.kilopixels) * 1024;
    }
    // Lane l sums pixels l, l + lanes and so on: at least 16, at most 256 of the sizes above.
    static APP_DO uint32_t lanes(const view &v)
    {
        return v.kilopixels < 512 ? v.kilopixels * 64 : 32768;
    }
    static app_step most(const app_size &)
    {
        return {0, 0, 1, 1, k * bands, words};
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        step->down = step->up = 1;
        step->down_units = k * bands;
        step->up_units = words;
        return step->index < v.passes;
    }

    static uint16_t pixel_of(uint64_t seed, size_t pixel, uint32_t band)
    {
        return app_random(seed, pixel) >> (16 * band) & 0xfff;
    }
    static int32_t first_centre(uint64_t seed, uint32_t i)
    {
        return pixel_of(seed, i / bands, i % bands);
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        for (uint32_t i = 0; i < k * bands; i++) {
            v0.centres[i] = first_centre(seed, i);
        }
        for (size_t i = 0; i < bands * count(v1); i++) {
            v1.pixels[i] = pixel_of(seed, i % count(v1), static_cast<uint32_t>(i / count(v1)));
        }
        memset(v1.sums, 0, words * v1.passes * sizeof *v1.sums);
    }

    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            if constexpr (party == 0) {
                static_cast<int32_t *>(to)[u] = v.centres[step.index * k * bands + piece.first + u];
            } else {
                static_cast<unsigned long long *>(to)[u] =
                    v.sums[step.index * words + piece.first + u];
            }
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            if constexpr (party == 1) {
                v.centres[step.index * k * bands + piece.first + u] =
                    static_cast<const int32_t *>(from)[u];
            } else {
                v.sums[step.index * words + piece.first + u] =
                    static_cast<const unsigned long long *>(from)[u];
            }
        }
    }

    template <int party>
    static APP_DO void settle(const view &v, const app_step &step, uint32_t phase, app_part part)
    {
        if constexpr (party == 1) {
            phase == 0   ? classify(v, step, part)
            : phase == 1 ? sum_lanes(v, part)
                         : add_lanes(v, step, part);
        } else if (phase == 0) { // the next centres; a class without pixels keeps its own
            const uint32_t now = step.index * k * bands;
            for (uint32_t i = part.thread; i < k * bands; i += part.threads) {
                const unsigned long long *of =
                    v.sums + step.index * words + i / bands * (bands + 1);
                v.centres[now + k * bands + i] =
                    of[bands] == 0 ? v.centres[now + i]
                                   : static_cast<int32_t>(of[i % bands] / of[bands]);
            }
        }
    }
    // Unsigned, because centres may be poison.
    static APP_DO void classify(const view &v, const app_step &step, app_part part)
    {
        const int32_t *centre = v.centres + step.index * k * bands;
        const size_t all = count(v);
        for (size_t i = part.thread; i < all; i += part.threads) {
            const uint32_t r = v.pixels[i], g = v.pixels[all + i], b = v.pixels[2 * all + i];
            uint32_t nearest = 0, least = UINT32_MAX;
            for (uint32_t c = 0; c < k; c++) {
                const uint32_t x = r - static_cast<uint32_t>(centre[c * bands]);
                const uint32_t y = g - static_cast<uint32_t>(centre[c * bands + 1]);
                const uint32_t z = b - static_cast<uint32_t>(centre[c * bands + 2]);
                const uint32_t distance = x * x + y * y + z * z;
                nearest = distance < least ? c : nearest;
                least = distance < least ? distance : least;
            }
            v.classes[i] = static_cast<uint8_t>(nearest);
        }
    }
    // A thread has half of the classes in a lane, so that their sums fit into registers.
    static APP_DO void sum_lanes(const view &v, app_part part)
    {
        constexpr uint32_t half = words / 2;
        const size_t all = count(v);
        for (uint32_t i = part.thread; i < 2 * lanes(v); i += part.threads) {
            const uint32_t lane = i % lanes(v), first = i / lanes(v) * half;
            uint32_t own[half] = {};
            for (size_t at = lane; at < all; at += lanes(v)) {
                const uint32_t word = v.classes[at] * (bands + 1) - first;
                const uint32_t r = v.pixels[at], g = v.pixels[all + at], b = v.pixels[2 * all + at];
                for (uint32_t w = 0; w < half; w += bands + 1) {
                    own[w] += w == word ? r : 0;
                    own[w + 1] += w == word ? g : 0;
                    own[w + 2] += w == word ? b : 0;
                    own[w + 3] += w == word;
                }
            }
            for (uint32_t w = 0; w < half; w++) {
                v.partial[size_t(first + w) * lanes(v) + lane] = own[w];
            }
        }
    }
    static APP_DO void add_lanes(const view &v, const app_step &step, app_part part)
    {
        constexpr uint32_t groups = 256; // threads for each word
        for (uint32_t i = part.thread; i < words * groups; i += part.threads) {
            const uint32_t *of = v.partial + size_t(i / groups) * lanes(v);
            unsigned long long sum = 0;
            for (uint32_t lane = i % groups; lane < lanes(v); lane += groups) {
                sum += of[lane];
            }
            app_add(&v.sums[step.index * words + i / groups], sum);
        }
    }
    static APP_DO uint32_t settles(const app_step &)
    {
        return 3;
    }

    // Compares |c|^2 - 2 p.c in place of distances, pixel by pixel from the seed.
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        int64_t centre[k * bands];
        for (uint32_t i = 0; i < k * bands; i++) {
            centre[i] = first_centre(seed, i);
        }
        for (uint32_t pass = 0; pass < v0.passes; pass++) {
            int64_t sums[words] = {}, square[k] = {};
            for (uint32_t i = 0; i < k * bands; i++) {
                square[i / bands] += centre[i] * centre[i];
                if (v1.centres[pass * k * bands + i] != centre[i]) {
                    return app_wrong(why, "centre", pass * k * bands + i);
                }
            }
            for (size_t i = 0; i < count(v0); i++) {
                uint32_t nearest = 0;
                int64_t least = INT64_MAX, pixel[bands];
                for (uint32_t band = 0; band < bands; band++) {
                    pixel[band] = pixel_of(seed, i, band);
                }
                for (uint32_t c = 0; c < k; c++) {
                    const int64_t *of = centre + c * bands;
                    const int64_t distance =
                        square[c] - 2 * (pixel[0] * of[0] + pixel[1] * of[1] + pixel[2] * of[2]);
                    if (distance < least) {
                        least = distance;
                        nearest = c;
                    }
                }
                for (uint32_t band = 0; band < bands; band++) {
                    sums[nearest * (bands + 1) + band] += pixel[band];
                }
                sums[nearest * (bands + 1) + bands]++;
                if (pass == v0.passes - 1 && v1.classes[i] != nearest) {
                    return app_wrong(why, "class of pixel", i);
                }
            }
            for (uint32_t i = 0; i < words; i++) {
                if (v0.sums[pass * words + i] != static_cast<uint64_t>(sums[i])) {
                    return app_wrong(why, "sum", pass * words + i);
                }
            }
            for (uint32_t i = 0; i < k * bands; i++) {
                const int64_t *of = sums + i / bands * (bands + 1);
                centre[i] = of[bands] == 0 ? centre[i] : of[i % bands] / of[bands];
            }
        }
        return true;
    }
};
#endif
