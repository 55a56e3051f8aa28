// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_STN_CUH
#define WIC_APP_STN_CUH
// G_STN: passes of a stencil of 7 points over a cube, of which each party has half of the planes.
// Size: n = cells of a side, m = passes.
#include "wic/apps/grid.cuh"

struct stn_stencil {
    static constexpr uint32_t chunks = 4;
    static APP_DO size_t slice(uint32_t n)
    {
        return size_t(n) * n;
    }
    static APP_DO bool is_edge(uint32_t n, size_t u)
    {
        return u % n == 0 || u % n == n - 1 || u < n || u >= size_t(n) * (n - 1);
    }
    static APP_DO float point(uint32_t n, const float *cell)
    {
        return grid_seven(cell, n, size_t(n) * n);
    }
};

struct stn : grid_app<stn_stencil> {
    static constexpr app_facts facts = {"stn",         "G_STN",       "multiple",    "adjacent",
                                        APP_EXCHANGES, sizeof(float), sizeof(float), false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 8, 6}, {"small", 64, 200}, {"middle", 128, 200}, {"large", 256, 200}};
};
#endif
