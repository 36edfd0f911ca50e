// ZarrSpec: the metadata of a Zarr v3 array (its zarr.json).
//
// We read the part of the standard that is described here. The rest is refused with an error that names it:
// transposition, big endian, fill values other than 0, sharding inside sharding, storage transformers, and
// extensions that a reader must understand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/arrays/box.h"
#include "ostro/io/read/codecs.h"

namespace ostro::io {

// The largest zarr.json that is read.
inline constexpr int64_t kMaxMetadataBytes = 16 << 20;

// Bytes of one element of "bool", "int8".."int64", "uint8".."uint64", "bfloat16", "float16", "float32",
// "float64"; 0 for any other name.
int64_t zarr_item_size(std::string_view dtype);

// The description of an array. A value; validate() checks it.
struct ZarrSpec {
  std::string dtype;
  Extents shape;
  Extents chunk;  // extents of a chunk, which is compressed as a whole
  Extents shard;  // extents of a file: a multiple of `chunk` on every axis; empty: every chunk is a file
  Compressor compressor;
  bool chunk_crc32c = false;                 // every chunk ends with its CRC-32C
  bool index_at_end = true;                  // where the index of a shard is
  char separator = '/';                      // between the numbers in the name of a chunk file: '/' or '.'
  bool v2_names = false;                     // chunk files are named "0/0" instead of "c/0/0"
  std::vector<std::string> dimension_names;  // one name for each axis ("" for none), or empty
  std::string attributes = "{}";             // a JSON object

  bool operator==(const ZarrSpec&) const = default;

  int64_t item_size() const { return zarr_item_size(dtype); }
  bool sharded() const { return !shard.empty(); }
  const Extents& file_chunk() const { return sharded() ? shard : chunk; }
  int64_t chunk_bytes() const { return product(chunk) * item_size(); }
  // Whether a chunk's bytes are those of its elements.
  bool plain_chunks() const { return compressor.kind == Compression::kNone && !chunk_crc32c; }
  // The name of the file with this index in the grid of files, e.g. "c/0/1".
  std::string chunk_name(const Extents& index) const;
};

// The text of zarr.json. Equal specs give equal text. The spec must be valid.
std::string zarr_json(const ZarrSpec& spec);

// Checks a spec: equal ranks, positive chunks of at most 1 GiB, shards of at most 2^24 chunks, a known dtype.
// `where` names the array in the error.
Status validate(const ZarrSpec& spec, const std::string& where);

// Parses the text of a zarr.json; `path` names the file in errors. The result is a valid spec.
// ErrorCode::kUnsupported for another node type, or for a part of the standard that we do not read; kCorrupt
// for invalid content.
Result<ZarrSpec> parse_zarr_json(std::string_view text, const std::string& path);

}  // namespace ostro::io
