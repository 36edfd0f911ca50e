#include "ostro/io/arrays/zarr_shard.h"

#include <cstring>

#include "ostro/io/read/crc32c.h"

namespace ostro::io {
namespace {

constexpr int64_t kEntryBytes = 16, kCrcBytes = 4;

void append_crc(Bytes& bytes) {
  const uint32_t crc = crc32c(bytes);
  const auto at = bytes.size();
  bytes.resize(at + kCrcBytes);
  std::memcpy(bytes.data() + at, &crc, kCrcBytes);
}

bool crc_matches(std::span<const std::byte> bytes_and_crc) {
  uint32_t stored;
  const size_t size = bytes_and_crc.size() - kCrcBytes;
  std::memcpy(&stored, bytes_and_crc.data() + size, kCrcBytes);
  return crc32c(bytes_and_crc.first(size)) == stored;
}

}  // namespace

int64_t chunks_per_shard(const ZarrSpec& spec) { return product(grid_of(spec.shard, spec.chunk)); }

int64_t shard_index_bytes(const ZarrSpec& spec) { return chunks_per_shard(spec) * kEntryBytes + kCrcBytes; }

int64_t max_encoded_bytes(const ZarrSpec& spec) { return 2 * spec.chunk_bytes() + (1 << 20); }

Bytes encode_shard_index(const ShardIndex& index) {
  Bytes bytes(index.size() * kEntryBytes);
  static_assert(sizeof(ShardEntry) == kEntryBytes);
  std::memcpy(bytes.data(), index.data(), bytes.size());
  append_crc(bytes);
  return bytes;
}

Result<ShardIndex> read_shard_index(const RandomAccessFile& file, const ZarrSpec& spec) {
  const int64_t index_bytes = shard_index_bytes(spec), file_bytes = file.size();
  if (file_bytes < index_bytes) {
    return corrupt(fmt::format("{}: {} bytes, too short for its shard index of {}", file.path(), file_bytes,
                               index_bytes));
  }
  Bytes bytes(static_cast<size_t>(index_bytes));
  RETURN_IF_ERROR(file.read(spec.index_at_end ? file_bytes - index_bytes : 0, bytes));
  if (!crc_matches(bytes))
    return corrupt(fmt::format("{}: the checksum of the shard index is wrong", file.path()));

  ShardIndex index(static_cast<size_t>(chunks_per_shard(spec)));
  std::memcpy(index.data(), bytes.data(), index.size() * kEntryBytes);
  const auto begin = static_cast<uint64_t>(spec.index_at_end ? 0 : index_bytes);
  const auto end = static_cast<uint64_t>(spec.index_at_end ? file_bytes - index_bytes : file_bytes);
  for (size_t i = 0; i < index.size(); ++i) {
    const auto& [offset, size] = index[i];
    if (index[i].missing()) continue;
    if (offset < begin || offset > end || size > end - offset ||
        size > static_cast<uint64_t>(max_encoded_bytes(spec))) {
      return corrupt(fmt::format("{}: shard index entry {} ({} bytes at {}) does not fit the file",
                                 file.path(), i, size, offset));
    }
  }
  return index;
}

Result<Bytes> encode_chunk(const ZarrSpec& spec, std::span<const std::byte> elements) {
  OSTRO_CHECK(static_cast<int64_t>(elements.size()) == spec.chunk_bytes(),
              "a chunk of {} bytes instead of {}", elements.size(), spec.chunk_bytes());
  ASSIGN_OR_RETURN(Bytes encoded, compress(spec.compressor, elements));
  if (spec.chunk_crc32c) append_crc(encoded);
  return encoded;
}

Status decode_chunk(const ZarrSpec& spec, std::span<const std::byte> encoded, std::span<std::byte> elements) {
  if (spec.chunk_crc32c) {
    if (encoded.size() < kCrcBytes || !crc_matches(encoded))
      return corrupt("the checksum of a chunk is wrong");
    encoded = encoded.first(encoded.size() - kCrcBytes);
  }
  return decompress(spec.compressor.kind, encoded, elements);
}

}  // namespace ostro::io
