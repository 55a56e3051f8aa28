/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DECODE_DEVICE_H
#define PB_DECODE_DEVICE_H
/* Decoding on a GPU: a batch of compressed streams in device memory, one stream a thread block.
 *
 * The bytes are not trusted: whatever they are, nothing outside [in, in + in_bytes) (rounded to
 * whole 16-byte words) is read, nothing outside [out, out + most) is written, and the work is
 * linear in input and output. PB_DECODED means that the host's decoder of the same codec
 * (pipeline/codec/decode.h) accepts the stream and makes the same bytes. Any other status means
 * that the caller gives the stream to that decoder, whose verdict and words count: of those with
 * PB_DECODE_HOST it may accept some. What lies in `out` is then undefined.
 *
 * All pointers in a batch are readable or writable by the device: device memory, or mapped pinned
 * memory. Calls queue work on a stream and return; errors are 0, -EIO (launch), -EINVAL. Thread:
 * any, with the device current. CUDA builds only. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pb_device_codec {
    PB_DEVICE_STORED,  /* as they are: a copy */
    PB_DEVICE_DEFLATE, /* a zlib stream, its Adler-32 is verified */
    PB_DEVICE_LZW,     /* TIFF's, most significant bit first */
    PB_DEVICE_CODECS
};

enum pb_decode_status {
    PB_DECODED,
    PB_DECODE_SHORT,   /* fewer than `least` bytes: pb_decode_short */
    PB_DECODE_LONG,    /* more than `most` bytes: pb_decode_long */
    PB_DECODE_BAD,     /* cut short, not valid, or a wrong checksum */
    PB_DECODE_HOST,    /* left to the host: old LZW, codes that libraries judge differently */
    PB_DECODE_ABORTED, /* *abort became nonzero */
    PB_DECODE_LATE,    /* took longer than limit_ns */
    PB_DECODE_UNDONE = 0x7fffffff /* what the caller may fill results with: not started */
};

struct pb_decode_stream {
    const uint8_t *in; /* any alignment; the 16-byte words that hold its ends are read whole */
    uint8_t *out;      /* aligned to 16 */
    uint32_t in_bytes;
    uint32_t least, most; /* bytes that must be made; that may be made, the room at `out` */
    uint32_t unused;
};

struct pb_decode_result {
    uint32_t status; /* enum pb_decode_status */
    uint32_t bytes;  /* that were made, when decoded */
};

struct pb_decode_batch {
    const struct pb_decode_stream *streams; /* those that take longest first */
    struct pb_decode_result *results;       /* of each stream */
    /* NULL, or of each stream the bytes at `out` that are final, growing while the stream is
     * decoded (stored with release at device scope). Rows done = *progress / bytes of a row. */
    uint32_t *progress;
    uint32_t n;
    const uint32_t *abort; /* nonzero: every stream ends soon. NULL = never */
    uint64_t limit_ns;     /* for one stream; 0 = 10 s */
};

/* What decodes a codec on a device. */
struct pb_decode_back {
    const char *name;
    enum pb_device_codec codec;
    /* Queues the batch on stream (a cudaStream_t). */
    int (*launch)(const struct pb_decode_batch *batch, void *stream);
};

/* The one that is used for a codec, or NULL. */
const struct pb_decode_back *pb_decode_back_of(enum pb_device_codec codec);
/* Those of a codec, by number, the preferred first; NULL after the last. */
const struct pb_decode_back *pb_decode_back_at(enum pb_device_codec codec, uint32_t number);

/* Threads that decode a stream. Kernels that decode in workers of their own call pb_inflate::run
 * and pb_lzw::run (inflate.cuh, lzw.cuh) with a group of so many threads and an arena of their
 * `standard` shape in shared memory. */
#define PB_DECODE_THREADS 256
/* Shared memory of the arena that inflates, the larger of the two. */
#define PB_DECODE_SHARED_BYTES 55888
/* Streams that a multiprocessor with so much shared memory decodes at a time: a block each, of
 * which the system takes 1 KiB; registers are for four. */
static inline uint32_t pb_decode_streams_each(uint32_t shared_bytes)
{
    uint32_t fit = shared_bytes / (PB_DECODE_SHARED_BYTES + 1024);
    return fit < 4 ? fit : 4;
}

#ifdef __cplusplus
}
#endif
#endif
