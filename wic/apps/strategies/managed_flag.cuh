// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_MANAGED_FLAG_CUH
#define WIC_APP_MANAGED_FLAG_CUH
// managed-flag, the baseline of the WIC paper (its Algorithm 1): thread 0 of a block spins on
// atomicAdd(flag, 0), then all threads meet at a barrier and read the chunk; flags and chunks are
// in managed memory, whose pages move by faults. Words that the paper does not need (free places,
// steps that depend on the data) are pinned. The addition has system scope: one of device scope
// would lose a store of the host while the driver keeps a page that moves too often in the host's
// memory.
#include "wic/apps/strategies/resident_kernel.cuh"

struct managed_flag_see {
    __device__ uint64_t operator()(uint64_t *word, uint32_t) const
    {
        const uint64_t seen = atomicAdd_system(reinterpret_cast<unsigned long long *>(word), 0ULL);
        __threadfence_system();
        return seen;
    }
};

template <class A>
std::unique_ptr<app_strategy<A>> app_by_managed_flag(const app_place<A> &place, std::string *why)
{
    using way = resident_polling<managed_flag_see, 1>;
    using strategy = resident_strategy<A, way::argument>;
    auto made = strategy::open(place, {true, true}, why);
    if (made != nullptr) {
        made->template add<way>(2 * static_cast<uint32_t>(place.processors));
    }
    return strategy::fit(std::move(made), why);
}
#endif
