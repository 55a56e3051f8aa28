// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_SRS_CUH
#define WIC_APP_SRS_CUH
// C_SRS, satellite remote sensing: the host cuts tiles from a scene of two bands, the device makes
// the vegetation index (NDVI * 10000) and a class of each pixel, and the host distributes them into
// the product. A unit is four pixels. Size: n = side of a tile, m = side of the scene, in pixels.
#include "wic/apps/app.cuh"

struct srs_view {
    uint32_t tile, scene; // pixels of a side
    uint16_t *red, *nir;  // party 0: the scene
    uint32_t *product;    // party 0: class << 16 | index, by row
    uint32_t *results;    // party 1: the same, by tile
};

struct srs : app_base<srs_view> {
    using view = srs_view;
    struct alignas(16) unit {
        uint32_t at[4]; // down: infrared << 16 | red; up: class << 16 | index
    };
    static constexpr app_facts facts = {"srs",     "C_SRS",      "unidirectional", "streaming",
                                        APP_PIPED, sizeof(unit), sizeof(unit),     false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 8, 32}, {"small", 32, 8192}, {"middle", 128, 8192}, {"large", 512, 8192}};

    static view lay_out(const app_size &size, int party, app_arena &arena)
    {
        view v = {size.n, size.m, nullptr, nullptr, nullptr, nullptr};
        const size_t pixels = size_t(size.m) * size.m;
        if (party == 0) {
            v.red = arena.take<uint16_t>(pixels);
            v.nir = arena.take<uint16_t>(pixels);
            v.product = arena.take<uint32_t>(pixels);
        } else {
            v.results = arena.take<uint32_t>(pixels);
        }
        return v;
    }
    static app_step most(const app_size &size)
    {
        const uint32_t tiles = (size.m / size.n) * (size.m / size.n), units = size.n * size.n / 4;
        return {0, 0, tiles, tiles, units, units};
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        step->down = step->up = (v.scene / v.tile) * (v.scene / v.tile);
        step->down_units = step->up_units = v.tile * v.tile / 4;
        return step->index == 0;
    }

    // Both bands of a pixel, infrared << 16 | red; some pixels have no data (0).
    static uint32_t pixel_of(uint64_t seed, uint64_t pixel)
    {
        const uint64_t bits = app_random(seed, pixel);
        return bits >> 58 == 0 ? 0 : static_cast<uint32_t>(bits) & 0x3fff3fff;
    }
    static void begin(const view &v0, const view &, uint64_t seed)
    {
        for (size_t i = 0; i < size_t(v0.scene) * v0.scene; i++) {
            const uint32_t pixel = pixel_of(seed, i);
            v0.red[i] = static_cast<uint16_t>(pixel);
            v0.nir[i] = static_cast<uint16_t>(pixel >> 16);
        }
    }

    // The scene's first pixel of a unit.
    static APP_DO size_t place_of(const view &v, const app_piece &piece, uint32_t u)
    {
        const uint32_t across = v.scene / v.tile, at = (piece.first + u) * 4;
        const uint32_t row = piece.chunk / across * v.tile + at / v.tile;
        return size_t(row) * v.scene + piece.chunk % across * v.tile + at % v.tile;
    }
    static APP_DO uint32_t classify(uint32_t pixel)
    {
        const int32_t red = pixel & 0xffff, nir = pixel >> 16;
        if (red + nir == 0) {
            return 0x8000; // no data, class 0
        }
        const int32_t index = (nir - red) * 10000 / (nir + red);
        const uint32_t kind = 1 + (index >= 0) + (index >= 2000) + (index >= 4500);
        return kind << 16 | static_cast<uint16_t>(index);
    }

    template <int party>
    static APP_DO void make(const view &v, const app_step &, const app_piece &piece, void *to,
                            app_part part)
    {
        unit *out = static_cast<unit *>(to);
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            if constexpr (party == 0) {
                const size_t at = place_of(v, piece, u);
                for (uint32_t k = 0; k < 4; k++) {
                    out[u].at[k] = static_cast<uint32_t>(v.nir[at + k]) << 16 | v.red[at + k];
                }
            } else {
                out[u] = reinterpret_cast<const unit *>(v.results)[unit_of(v, piece, u)];
            }
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &, const app_piece &piece,
                                 const void *from, app_part part)
    {
        const unit *in = static_cast<const unit *>(from);
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            const unit got = in[u];
            if constexpr (party == 0) {
                memcpy(v.product + place_of(v, piece, u), &got, sizeof got);
            } else {
                reinterpret_cast<unit *>(v.results)[unit_of(v, piece, u)] = {
                    {classify(got.at[0]), classify(got.at[1]), classify(got.at[2]),
                     classify(got.at[3])}};
            }
        }
    }
    static APP_DO size_t unit_of(const view &v, const app_piece &piece, uint32_t u)
    {
        return size_t(piece.chunk) * (v.tile * v.tile / 4) + piece.first + u;
    }

    // Applies the definition of a quotient, without a division.
    static bool is_right(uint32_t pixel, uint32_t result)
    {
        const int64_t red = pixel & 0xffff, nir = pixel >> 16, sum = nir + red;
        const int64_t index = static_cast<int16_t>(result), kind = result >> 16;
        if (sum == 0) {
            return result == 0x8000;
        }
        const int64_t wanted = std::abs(nir - red) * 10000, size = std::abs(index);
        const int64_t above[4] = {-10000, 0, 2000, 4500}, below[4] = {-1, 1999, 4499, 10000};
        return size * sum <= wanted && wanted < (size + 1) * sum && index * (nir - red) >= 0 &&
               kind >= 1 && kind <= 4 && above[kind - 1] <= index && index <= below[kind - 1];
    }
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        const size_t side = v0.scene, tile = v0.tile;
        for (size_t y = 0; y < side; y++) {
            for (size_t x = 0; x < side; x++) {
                const size_t chunk = y / tile * (side / tile) + x / tile;
                const uint32_t pixel = pixel_of(seed, y * side + x);
                if (!is_right(pixel, v0.product[y * side + x])) {
                    return app_wrong(why, "pixel of the product", y * side + x);
                }
                if (v1.results[chunk * tile * tile + y % tile * tile + x % tile] !=
                    v0.product[y * side + x]) {
                    return app_wrong(why, "pixel of the device", y * side + x);
                }
            }
        }
        return true;
    }
};
#endif
