// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_CHAIN_KERNELS_CUH
#define PB_CHAIN_KERNELS_CUH
// Kernels of chains that take long to compile. Template parameters: pixels of a thread (4 or 1) and
// the kind of chain. Each kernel is a translation unit, which CMakeLists.txt writes: the unit
// includes <name>.cuh and instantiates the function that returns the kernel's address. Host code
// that launches the kernels includes this file alone.
#include "kernels/chain/chain_block.cuh"

namespace pb_device
{
// Resident kernels: of parts of a tile (PLANES, GRIDS) or lines of it (POINTWISE).
template <int PX, pb_chain_kind KIND> const void *resident_kernel();
// Resident kernels that sum their parts up: PLANES, GRIDS.
template <int PX, pb_chain_kind KIND> const void *resident_sums_kernel();
// Kernels of one tile that sum its parts up: PLANES, GRIDS. Threads of a block: up to the constant.
template <int PX, pb_chain_kind KIND> const void *sum_parts_kernel();
constexpr unsigned sum_parts_threads_max = 256;
} // namespace pb_device
#endif
