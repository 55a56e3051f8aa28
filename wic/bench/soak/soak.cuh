// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_SOAK_CUH
#define WIC_BENCH_SOAK_CUH
// What both soaks have in common: tiles of random sizes from random places of a table, each with a
// letter that says what it is, and the work on them.
#include "wic/bench/base/channel.cuh"
#include "wic/bench/base/ndvi.cuh"
#include "wic/device/stage.cuh"

#include <vector>

constexpr uint32_t soak_slots = 64, whole_piece = 4096; // pixels
constexpr size_t table_units = 1 << 20, tile_units = 16384;
constexpr uint32_t line_max = 256; // pixels of a line, where units are lines
constexpr uint64_t first_rest = 1000, rest_every = 1000000; // tiles

struct letter { // user bytes
    uint64_t number, place, units;
    uint64_t line; // pixels; 0: units are not lines
};
constexpr uint32_t letter_bytes = (sizeof(letter) + 15) / 16 * 16;

struct soak_table {
    std::vector<uint16_t> red, nir;
    std::vector<int16_t> ndvi;
};

struct soak_way {
    const char *name;
    wic_transport transport;
    bench_memory memory;
    size_t engine_backlog;
    bool lines; // units are lines, shorter ones in most tiles
};

soak_table soak_make_table();
// piece_units: pixels whose bands lie side by side; 0: those of a line, of another length in each
// tile. first: number of the first tile.
void soak_produce(const soak_table &t, wic_channel *in, uint64_t tiles, size_t piece_units,
                  uint64_t first);
// Wrong elements; a tile that is not the next one counts as wholly wrong.
uint64_t soak_consume(const soak_table &t, wic_channel *out, uint64_t *tiles, uint64_t *elements,
                      uint64_t first);
// Plan, kernel and description of the tiles.
int soak_plan(const soak_way &way, wic_device_options *options);
// Pixels whose bands lie side by side; 0: a line.
size_t soak_pixels_together(const soak_way &way, const wic_transfer_plan &plan);

// A unit of the plan is up to whole_piece pixels; how many, the letter says.
__device__ inline void soak_work_whole(const wic_piece &piece, const letter &l)
{
    const uint32_t first = piece.first * whole_piece;
    if (l.units > first) {
        const uint64_t left = l.units - first;
        const uint32_t n = left < whole_piece ? static_cast<uint32_t>(left) : whole_piece;
        ndvi_piece(static_cast<const unsigned char *>(piece.in) + first * in_unit,
                   static_cast<unsigned char *>(piece.tile_out) + first * out_unit, n, piece.thread,
                   piece.threads);
    }
}

// A unit of the plan is a line of up to line_max pixels; of how many in this tile, the letter says.
__device__ inline void soak_work_lines(const wic_piece &piece, const letter &l)
{
    const uint32_t line = static_cast<uint32_t>(l.line);
    for (uint32_t i = 0; i < piece.units; i++) {
        ndvi_piece(static_cast<const unsigned char *>(piece.in) + i * line * in_unit,
                   static_cast<unsigned char *>(piece.tile_out) +
                       (piece.first + i) * line * out_unit,
                   line, piece.thread, piece.threads);
    }
}
#endif
