// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_ROWS_HPP
#define WIC_ROWS_HPP
// Images through the current GPU by work that reads neighbours: a stream (wic/stream.hpp) of frames
// of rows, in the layout that the caller's frames have. Bands are planar, or interleaved by line or
// pixel; rows may have a pitch. Results are planar without gaps.
//
//   wic::rows<uint16_t, uint16_t> s({width, height, bands}, bands, {}, [] __device__(auto piece) {
//       for (auto p : piece)
//           for (uint32_t band = 0; band < piece.bands; band++)
//               piece.out(band, p.x, p.y) = median(piece, band, p.x, p.y);
//   });
//
// piece.in(band, x, y) is any pixel of the frame; beyond its border it is the nearest one in it, so
// that a halo can be as wide as the work needs. The pixels of `for (auto p : piece)` are this
// thread's part of some whole rows, piece.first_row to piece.end_row; each is in one piece.
//
// Copy engines bring frames to the GPU's memory and results back, several at a time. A frame has
// all its rows. The rest is as in wic/stream.hpp.
#include "wic/stream.hpp"

#include <algorithm>

namespace wic
{
// The place of each pixel in a frame. push copies from the first pixel to the last; a slot that
// acquire returns also has room for the gap after it.
struct image {
    uint32_t width, height, bands = 1;
    size_t pitch = 0; // bytes from a row to the next; 0: the pixels of one
    size_t plane = 0; // bytes from a band to the next; 0: rows * pitch
    size_t step = 0;  // bytes from a pixel to the next; 0: size of one

    // Replaces the zeros for pixels of this size.
    image of(size_t pixel_bytes) const
    {
        image full = *this;
        full.step = step ? step : pixel_bytes;
        full.pitch = pitch ? pitch : width * full.step;
        full.plane = plane ? plane : height * full.pitch;
        return full;
    }
    size_t bytes(size_t pixel_bytes) const // to the end of the last pixel
    {
        return (bands - 1) * plane + (height - 1) * pitch + (width - 1) * step + pixel_bytes;
    }
    size_t whole_bytes() const // with the gap after it
    {
        return std::max({bands * plane, height * pitch, width * step});
    }
    bool is_valid(size_t pixel_bytes) const
    {
        return width - 1 < INT32_MAX && height - 1 < INT32_MAX && bands - 1 < UINT16_MAX &&
               step % pixel_bytes == 0 && pitch % pixel_bytes == 0 && plane % pixel_bytes == 0 &&
               plane <= INT32_MAX && pitch <= INT32_MAX && step <= INT32_MAX &&
               uint64_t{width} * step <= INT32_MAX && uint64_t{bands} * plane <= INT32_MAX &&
               uint64_t{height} * pitch <= INT32_MAX;
    }
    WIC_BOTH size_t at(uint32_t band, int32_t x, int32_t y) const // a pixel, or the nearest one
    {
        const int32_t right = static_cast<int32_t>(width - 1);
        const int32_t bottom = static_cast<int32_t>(height - 1);
        x = x < 0 ? 0 : x > right ? right : x;
        y = y < 0 ? 0 : y > bottom ? bottom : y;
        return band * plane + static_cast<uint32_t>(y) * pitch + static_cast<uint32_t>(x) * step;
    }
};

// A frame, its result, and the rows of a piece.
struct row_shape {
    image in, out;
    uint32_t rows;
};

struct pixel {
    int32_t x, y;
};

// Iterates over a thread's pixels of some rows.
struct pixel_walk {
    pixel at;
    int32_t threads, width;

    WIC_BOTH pixel_walk(uint32_t thread, uint32_t threads, uint32_t row, uint32_t width)
        : at{static_cast<int32_t>(thread), static_cast<int32_t>(row)},
          threads(static_cast<int32_t>(threads)), width(static_cast<int32_t>(width))
    {
        wrap();
    }
    WIC_BOTH const pixel &operator*() const
    {
        return at;
    }
    WIC_BOTH void operator++()
    {
        at.x += threads;
        wrap();
    }
    WIC_BOTH bool operator!=(const pixel_walk &end) const
    {
        return at.y < end.at.y;
    }

  private:
    WIC_BOTH void wrap()
    {
        if (at.x >= width) {
            at.y += at.x / width;
            at.x %= width;
        }
    }
};

// The parts of wic::rows without CUDA.
template <class In, class Out> class row_flow : public typed<In, Out>
{
  protected:
    ~row_flow()
    {
        this->stop(); // before the members that describe reads are gone
    }

    // Rows of a piece: enough pieces for two rounds of all multiprocessors, if there are as many
    // rows.
    const row_shape &prepare(int gpu_index, const image &in, uint32_t out_bands)
    {
        shape_.in = in.of(sizeof(In));
        shape_.out = image{in.width, in.height, out_bands}.of(sizeof(Out));
        const int rc = wic_gpu_read(gpu_index, &gpu_);
        if (rc != 0) {
            this->fail("open", rc);
        } else if (!shape_.in.is_valid(sizeof(In)) || !shape_.out.is_valid(sizeof(Out))) {
            this->fail("open: the image is empty or over 2 GiB, or its step, pitch or plane is not "
                       "a multiple of its pixels' " +
                       std::to_string(sizeof(In)) + " bytes");
        } else {
            is_ready_ = true;
            shape_.rows = in.height / (2 * gpu_.multiprocessors);
            shape_.rows += shape_.rows == 0;
        }
        return shape_;
    }

    void start(const options &o, uint32_t warps, const void *kernel,
               std::shared_ptr<const void> argument)
    {
        if (!is_ready_) {
            return; // error() has the reason
        }
        wic_work work = {};
        wic_device_options device = {};
        pieces_ = (shape_.in.height + shape_.rows - 1) / shape_.rows;
        result_ = shape_.out.bytes(sizeof(Out));
        work.warps = warps;
        work.user_bytes = o.user_bytes;
        device.kernel = kernel;
        device.describe = describe;
        device.context = this;
        const int rc = wic_transfer_plan_whole(&gpu_, WIC_COPY, pieces_, &work, &device.plan);
        if (rc != 0) {
            this->fail("open", rc);
            return;
        }
        this->units_ = shape_.in.bytes(sizeof(In)) / sizeof(In);
        this->is_whole_ = true;
        this->open(o, std::max(shape_.in.whole_bytes(), this->units_ * sizeof(In)), result_, device,
                   std::move(argument));
    }

  private:
    static int describe(void *context, const wic_slot *in, const wic_slot *, wic_device_tile *out)
    {
        const row_flow *const self = static_cast<const row_flow *>(context);
        const bool empty = in->bytes == 0; // acquired and dropped
        *out = {empty ? 0 : self->pieces_, empty ? 0 : self->result_, 0};
        return 0;
    }

    wic_gpu gpu_ = {};
    row_shape shape_ = {};
    bool is_ready_ = false;
    uint32_t pieces_ = 0;
    size_t result_ = 0;
};

#ifdef __CUDACC__
// The argument of the work: user, tile, thread, threads, work and sync() of wic_piece.
template <class In, class Out> struct row_piece : wic_piece {
    const row_shape &shape;
    uint32_t width, height, bands; // as in the frame
    uint32_t first_row, end_row;

    __device__ row_piece(const wic_piece &p, const row_shape &shape)
        : wic_piece(p), shape(shape), width(shape.in.width), height(shape.in.height),
          bands(shape.in.bands), first_row(p.piece * shape.rows),
          end_row(p.units == 0 ? first_row : min(first_row + shape.rows, height))
    {
    }
    __device__ const In &in(uint32_t band, int32_t x, int32_t y) const
    {
        return *reinterpret_cast<const In *>(static_cast<const unsigned char *>(wic_piece::in) +
                                             shape.in.at(band, x, y));
    }
    // A pixel of this piece.
    __device__ Out &out(uint32_t band, int32_t x, int32_t y) const
    {
        return static_cast<Out *>(
            tile_out)[(static_cast<size_t>(band) * height + static_cast<uint32_t>(y)) * width +
                      static_cast<uint32_t>(x)];
    }
    __device__ pixel_walk begin() const
    {
        return {thread, threads, first_row, width};
    }
    __device__ pixel_walk end() const
    {
        return {0, threads, end_row, width};
    }
};

template <class Work> struct row_work {
    row_shape shape;
    Work work;
};

template <class In, class Out, uint32_t Warps, class Work>
__global__ void __launch_bounds__(32 * (Warps + WIC_SERVICE_WARPS))
    row_kernel(const __grid_constant__ wic_view view, const __grid_constant__ row_work<Work> w)
{
    wic_resident(view, [&](const wic_piece &p) { w.work(row_piece<In, Out>(p, w.shape)); });
}

template <class In, class Out, uint32_t Warps = 16> class rows : public row_flow<In, Out>
{
    static_assert(Warps > 0 && Warps <= 32 - WIC_SERVICE_WARPS, "a block has 32 warps, 3 serve");

  public:
    // On the current GPU. A result has out_bands bands of the frame's width and height.
    template <class Work> rows(const image &in, uint32_t out_bands, const options &o, Work work)
    {
        const row_shape &shape = this->prepare(current_gpu(), in, out_bands);
        this->start(o, Warps, reinterpret_cast<const void *>(row_kernel<In, Out, Warps, Work>),
                    std::make_shared<const row_work<Work>>(row_work<Work>{shape, work}));
    }
};
#endif
} // namespace wic
#endif
