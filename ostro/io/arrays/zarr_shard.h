// ShardIndex: one file (shard) of a sharded Zarr v3 array: compressed chunks in any order, and an index of
// their places.
#pragma once

#include <span>
#include <vector>

#include "ostro/io/arrays/zarr_spec.h"
#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Byte range of a chunk in the shard's file. Both kMissing: the chunk was never written, and its elements are
// 0.
struct ShardEntry {
  static constexpr uint64_t kMissing = ~uint64_t{0};
  uint64_t offset = kMissing, size = kMissing;
  bool missing() const { return offset == kMissing && size == kMissing; }
};
using ShardIndex = std::vector<ShardEntry>;  // of all chunks of the shard, row-major

// The number of chunks in a shard, and the bytes of the index with its checksum. The spec must be sharded.
int64_t chunks_per_shard(const ZarrSpec& spec);
int64_t shard_index_bytes(const ZarrSpec& spec);

// The bytes of the index in the file, with the checksum.
Bytes encode_shard_index(const ShardIndex& index);

// Reads the index of an open shard. Errors: kCorrupt, with the file, when its CRC-32C is wrong, or when a
// chunk does not lie inside the file or is larger than max_encoded_bytes.
Result<ShardIndex> read_shard_index(const RandomAccessFile& file, const ZarrSpec& spec);

// Encodes or decodes one chunk of full size with the codecs of the spec. decode_chunk gives kCorrupt for a
// damaged chunk; its message does not name the file.
Result<Bytes> encode_chunk(const ZarrSpec& spec, std::span<const std::byte> elements);
Status decode_chunk(const ZarrSpec& spec, std::span<const std::byte> encoded, std::span<std::byte> elements);

// The most bytes that a whole encoded chunk can have. A larger one must be damaged, since no codec makes its
// input that much longer.
int64_t max_encoded_bytes(const ZarrSpec& spec);

}  // namespace ostro::io
