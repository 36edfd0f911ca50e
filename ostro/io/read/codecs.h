// compress, decompress: compression of whole buffers, for chunks of arrays.
//
// Decoders get the size of the result as an argument, so damaged or hostile input cannot make them write or
// allocate more than that. Thread-safe.
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

// The settings of a compression. Versions of the libraries may write different bytes, so never hash
// compressed bytes to identify their content.
struct Compressor {
  Compression kind = Compression::kNone;
  int level = 0;                   // zstd 1..22 (0: its default, 3), gzip 0..9, blosc 0..9
  std::string blosc_name = "lz4";  // compressor inside blosc: lz4, lz4hc, blosclz, zlib, zstd
  int blosc_shuffle = 1;           // 0 none, 1 bytes, 2 bits
  int item_size = 1;               // bytes of an element, for the shuffle of blosc
  bool operator==(const Compressor&) const = default;
};

// Returns the compressed bytes. ErrorCode::kUnsupported for a blosc compressor that this build lacks;
// kInvalidArgument for levels out of range, or for more than 2 GiB - 16 bytes with blosc.
Result<Bytes> compress(const Compressor& compressor, std::span<const std::byte> bytes);

// Decompresses into all of `out`. ErrorCode::kCorrupt when the input is damaged, or does not hold exactly
// out.size() bytes. Messages name no file: add it with Error::with_context.
Status decompress(Compression kind, std::span<const std::byte> bytes, std::span<std::byte> out);

// Decompresses a range: the input decodes to `whole` bytes, and `out` gets those from `begin` on. With blosc,
// and a range of whole elements, only the blocks that hold the range are decoded.
Status decompress_range(Compression kind, std::span<const std::byte> bytes, int64_t whole, int64_t begin,
                        std::span<std::byte> out);

}  // namespace ostro::io
