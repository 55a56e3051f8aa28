// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_C2D_CUH
#define WIC_APP_C2D_CUH
// G_C2D: passes of a convolution of 3 x 3 over an image, of which each party has half of the rows.
// Size: n = pixels of a side, m = passes.
#include "wic/apps/grid.cuh"

struct c2d_stencil {
    static constexpr uint32_t chunks = 1;
    static APP_DO size_t slice(uint32_t n)
    {
        return n;
    }
    static APP_DO bool is_edge(uint32_t n, size_t u)
    {
        return u == 0 || u == n - 1;
    }
    static APP_DO float point(uint32_t n, const float *cell)
    {
        const float *above = cell - n, *below = cell + n;
        return 0.05f * above[-1] + 0.10f * above[0] + 0.06f * above[1] + 0.11f * cell[-1] +
               0.35f * cell[0] + 0.12f * cell[1] + 0.07f * below[-1] + 0.10f * below[0] +
               0.04f * below[1];
    }
};

struct c2d : grid_app<c2d_stencil> {
    static constexpr app_facts facts = {"c2d",         "G_C2D",       "alternating", "adjacent",
                                        APP_EXCHANGES, sizeof(float), sizeof(float), false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 16, 5}, {"small", 1024, 16}, {"middle", 4096, 16}, {"large", 8192, 16}};
};
#endif
