// The metadata of a Zarr v3 array (its zarr.json): what we write, and the part of the standard that we read.
// Not read, and refused by name: transposition, big endian, fill values other than 0, sharding inside
// sharding, storage transformers, extensions that a reader must understand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/arrays/box.h"
#include "ostro/io/read/codecs.h"

namespace ostro::io {

// No zarr.json is longer.
inline constexpr int64_t kMaxMetadataBytes = 16 << 20;

// Bytes of one element of "bool", "int8".."int64", "uint8".."uint64", "bfloat16", "float16", "float32",
// "float64"; 0 for any other name.
int64_t zarr_item_size(std::string_view dtype);

struct ZarrSpec {
  std::string dtype;
  Extents shape;
  Extents chunk;  // what is compressed together
  Extents shard;  // what is one file: a multiple of `chunk` on every axis; empty: every chunk is a file
  Compressor compressor;
  bool chunk_crc32c = false;                 // every chunk ends in its CRC-32C
  bool index_at_end = true;                  // of shards
  char separator = '/';                      // between the numbers of a chunk's name: '/' or '.'
  bool v2_names = false;                     // names "0/0" instead of "c/0/0"
  std::vector<std::string> dimension_names;  // one per axis ("" for none), or empty
  std::string attributes = "{}";             // a JSON object

  bool operator==(const ZarrSpec&) const = default;

  int64_t item_size() const { return zarr_item_size(dtype); }
  bool sharded() const { return !shard.empty(); }
  const Extents& file_chunk() const { return sharded() ? shard : chunk; }
  int64_t chunk_bytes() const { return product(chunk) * item_size(); }
  // "c/0/1" for the file of that index in the grid of files.
  std::string chunk_name(const Extents& index) const;
};

// The text of zarr.json; the same for equal specs. The spec must be valid.
std::string zarr_json(const ZarrSpec& spec);

// What a spec may be: ranks agree, positive chunks of at most 1 GiB, shards of at most 2^24 chunks, known
// dtype. `where` names the array in the error.
Status validate(const ZarrSpec& spec, const std::string& where);

// The spec in the text of a zarr.json; `path` names the file in errors. Valid when it is ok. An array of
// another node type or a part of the standard that we do not read is ErrorCode::kUnsupported, nonsense
// kCorrupt.
Result<ZarrSpec> parse_zarr_json(std::string_view text, const std::string& path);

}  // namespace ostro::io
