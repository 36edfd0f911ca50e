// Compression of whole buffers, for chunks of arrays. Decoders take the size the result must have: a damaged
// or hostile input can neither make them write more nor allocate more than that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::io {

using Bytes = std::vector<std::byte>;

enum class Compression { kNone, kZstd, kGzip, kBlosc };

// How to compress. What is written may differ between versions of the libraries: never take compressed bytes
// as the identity of their content.
struct Compressor {
  Compression kind = Compression::kNone;
  int level = 0;                   // zstd 1..22 (0: its default, 3), gzip 0..9, blosc 0..9
  std::string blosc_name = "lz4";  // compressor inside blosc: lz4, lz4hc, blosclz, zlib, zstd
  int blosc_shuffle = 1;           // 0 none, 1 bytes, 2 bits
  int item_size = 1;               // bytes of an element: what blosc shuffles by
  bool operator==(const Compressor&) const = default;
};

// ErrorCode::kUnsupported for a blosc compressor this build lacks, kInvalidArgument for levels out of range
// or more than 2 GiB - 16 bytes for blosc.
Result<Bytes> compress(const Compressor& compressor, std::span<const std::byte> bytes);

// Fills `out` exactly; ErrorCode::kCorrupt when the input is damaged or holds more or less than out.size()
// bytes. Messages do not name a file: add it with Error::with_context.
Status decompress(Compression kind, std::span<const std::byte> bytes, std::span<std::byte> out);

// The same for a range: fills `out` with bytes from `begin` on of what decodes to `whole` bytes. With blosc
// only the blocks that hold the range are decoded when it falls on whole elements.
Status decompress_range(Compression kind, std::span<const std::byte> bytes, int64_t whole, int64_t begin,
                        std::span<std::byte> out);

}  // namespace ostro::io
