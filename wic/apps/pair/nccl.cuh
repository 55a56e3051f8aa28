// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_NCCL_CUH
#define WIC_APP_PAIR_NCCL_CUH
// The part of NCCL's interface that a rival needs. libnccl.so.2 is opened where there is one, so
// that neither its headers nor the library are needed to build. One process has both GPUs.
#include <cstdlib>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string>

class pair_nccl
{
  public:
    // The communicators of these GPUs, one for each direction, opened by the first call and kept.
    // NULL: *why.
    static const pair_nccl *open(const int devices[2], std::string *why)
    {
        static pair_nccl one(devices);
        *why = one.why_;
        return one.why_.empty() ? &one : nullptr;
    }
    // Sends bytes to party `to`, each side in a stream of its GPU. False: it failed.
    bool copy(int to, void *there, cudaStream_t receiver, const void *here, cudaStream_t sender,
              size_t bytes) const
    {
        constexpr int as_bytes = 1; // ncclUint8
        const int from = 1 - to;
        return group_start_() == 0 &&
               send_(here, bytes, as_bytes, to, of_[to][from], sender) == 0 &&
               receive_(there, bytes, as_bytes, from, of_[to][to], receiver) == 0 &&
               group_end_() == 0;
    }

  private:
    using communicator = void *;

    explicit pair_nccl(const int devices[2])
    {
        setenv("NCCL_NVLS_ENABLE", "0", 1); // no multicast: nothing here needs it
        library_ = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (library_ == nullptr) {
            why_ = "not run: no NCCL";
            return;
        }
        int (*open_all)(communicator *, int, const int *) = nullptr;
        if (!find("ncclCommInitAll", &open_all) || !find("ncclGroupStart", &group_start_) ||
            !find("ncclGroupEnd", &group_end_) || !find("ncclSend", &send_) ||
            !find("ncclRecv", &receive_)) {
            why_ = "not run: NCCL has no point-to-point calls";
            return;
        }
        for (communicator *of : {of_[0], of_[1]}) {
            if (open_all(of, 2, devices) != 0) {
                why_ = "NCCL cannot open these GPUs";
            }
        }
    }
    template <class Call> bool find(const char *name, Call *call)
    {
        *call = reinterpret_cast<Call>(dlsym(library_, name));
        return *call != nullptr;
    }

    void *library_ = nullptr; // stays open, with its communicators, until the process ends
    std::string why_;
    communicator of_[2][2] = {}; // those of each receiver, of both parties
    int (*group_start_)() = nullptr;
    int (*group_end_)() = nullptr;
    int (*send_)(const void *, size_t, int, int, communicator, cudaStream_t) = nullptr;
    int (*receive_)(void *, size_t, int, int, communicator, cudaStream_t) = nullptr;
};
#endif
