#include <algorithm>

#include "ostro/base/lru_cache.h"
#include "ostro/base/spare_bytes.h"
#include "ostro/io/arrays/zarr_1d.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

struct Shard {
  std::unique_ptr<RandomAccessFile> file;  // null: the file does not exist
  ShardIndex index;
};

// The open shards of all arrays together, since a store may have more shards than a process may open files.
const std::shared_ptr<LruCache<Shard>>& open_shards() {
  static const auto cache = std::make_shared<LruCache<Shard>>(256);
  return cache;
}

}  // namespace

struct CompressedChunks {
  explicit CompressedChunks(size_t count) : cache(std::make_shared<LruCache<Bytes>>(count)) {}
  std::shared_ptr<LruCache<Bytes>> cache;
  // Spare memory for chunks. Shared, since chunks may outlive the readers.
  std::shared_ptr<SpareBytes> spares = std::make_shared<SpareBytes>();
};

std::shared_ptr<CompressedChunks> make_compressed_chunks(int64_t count) {
  OSTRO_CHECK(count >= 1, "a cache of {} chunks", count);
  return std::make_shared<CompressedChunks>(static_cast<size_t>(count));
}

struct Zarr1dReader::State {
  FileSystem& fs;
  std::string path;
  ZarrSpec spec;
  LruCache<Bytes>::Part chunks;  // compressed
  std::shared_ptr<SpareBytes> spares;
  LruCache<Shard>::Part shards{open_shards()};

  int64_t chunks_per_file() const { return spec.file_chunk()[0] / spec.chunk[0]; }

  Result<std::shared_ptr<const Shard>> load_shard(int64_t number) {
    auto shard = std::make_shared<Shard>();
    auto file = fs.open(join_path(path, spec.chunk_name({number})));
    if (!file.ok()) {
      if (file.error().code() != ErrorCode::kNotFound) return file.error();
      return std::shared_ptr<const Shard>(shard);
    }
    shard->file = std::move(*file);
    if (spec.sharded()) {
      ASSIGN_OR_RETURN(shard->index, read_shard_index(*shard->file, spec));
    } else {
      if (shard->file->size() > max_encoded_bytes(spec)) {
        return corrupt(fmt::format("{}: too large for a chunk", shard->file->path()));
      }
      shard->index = {{0, static_cast<uint64_t>(shard->file->size())}};
    }
    return std::shared_ptr<const Shard>(shard);
  }

  Result<std::shared_ptr<const Shard>> find_shard(int64_t number) {
    if (auto found = shards.find(number)) return found;
    ASSIGN_OR_RETURN(auto shard, load_shard(number));
    // A missing file is not cached, because it may exist later.
    if (shard->file == nullptr) return shard;
    return shards.add(number, std::move(shard));
  }

  // Null when the chunk was never written.
  Result<std::shared_ptr<const Bytes>> find_chunk(int64_t number) {
    if (auto found = chunks.find(number)) return found;
    ASSIGN_OR_RETURN(const auto shard, find_shard(number / chunks_per_file()));
    const auto position = static_cast<size_t>(number % chunks_per_file());
    if (shard->file == nullptr || shard->index[position].missing()) return std::shared_ptr<const Bytes>();
    const ShardEntry entry = shard->index[position];
    const std::shared_ptr<Bytes> encoded(new Bytes(spares->take()), [spares = spares](Bytes* dead) {
      const std::unique_ptr<Bytes> owner(dead);
      spares->give(std::move(*owner));
    });
    encoded->resize(entry.size);
    RETURN_IF_ERROR(shard->file->read(static_cast<int64_t>(entry.offset), *encoded));
    return chunks.add(number, encoded);
  }
};

Zarr1dReader::Zarr1dReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Zarr1dReader::Zarr1dReader(Zarr1dReader&&) noexcept = default;
Zarr1dReader& Zarr1dReader::operator=(Zarr1dReader&&) noexcept = default;
Zarr1dReader::~Zarr1dReader() = default;

const ZarrSpec& Zarr1dReader::spec() const { return state_->spec; }

Result<Zarr1dReader> Zarr1dReader::open(FileSystem& fs, const std::string& path, int64_t cached_chunks) {
  return open(fs, path, make_compressed_chunks(cached_chunks));
}

Result<Zarr1dReader> Zarr1dReader::open(FileSystem& fs, const std::string& path,
                                        std::shared_ptr<CompressedChunks> chunks) {
  const std::string metadata = join_path(path, "zarr.json");
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(metadata, kMaxMetadataBytes));
  ASSIGN_OR_RETURN(ZarrSpec spec, parse_zarr_json(text, metadata));
  if (spec.shape.size() != 1) {
    return corrupt(
        fmt::format("{}: \"shape\" has {} axes where one is expected", metadata, spec.shape.size()));
  }
  return Zarr1dReader(std::unique_ptr<State>(new State{.fs = fs,
                                                       .path = path,
                                                       .spec = std::move(spec),
                                                       .chunks = LruCache<Bytes>::Part(chunks->cache),
                                                       .spares = chunks->spares}));
}

// Chunk by chunk: the compressed bytes come from the cache or the shard, and only the wanted range is decoded
// into `bytes`, unless the chunk has a checksum.
Status Zarr1dReader::read(int64_t start, std::span<std::byte> bytes, bool must_exist) const {
  const ZarrSpec& spec = state_->spec;
  const int64_t item = spec.item_size(), per_chunk = spec.chunk[0];
  OSTRO_CHECK(bytes.size() % static_cast<size_t>(item) == 0, "{}: {} bytes are not whole elements",
              state_->path, bytes.size());
  int64_t count = static_cast<int64_t>(bytes.size()) / item;
  if (start < 0 || start > spec.shape[0] || count > spec.shape[0] - start) {
    return invalid_argument(fmt::format("{}: elements [{}, {}) of an array of {}", state_->path, start,
                                        start + count, spec.shape[0]));
  }
  while (count > 0) {
    const int64_t number = start / per_chunk, begin = start % per_chunk;
    const int64_t taken = std::min(count, per_chunk - begin);
    const std::span<std::byte> out = bytes.first(static_cast<size_t>(taken * item));
    ASSIGN_OR_RETURN(const auto chunk, state_->find_chunk(number));
    if (chunk == nullptr) {
      if (must_exist) {
        return corrupt(
            fmt::format("{}: elements [{}, {}) were never written", state_->path, start, start + taken));
      }
      std::fill(out.begin(), out.end(), std::byte{0});
    } else {
      Status status;
      if (spec.chunk_crc32c) {  // the checksum needs the whole chunk
        Bytes all(static_cast<size_t>(spec.chunk_bytes()));
        status = decode_chunk(spec, *chunk, all);
        if (status.ok()) std::copy_n(all.begin() + begin * item, out.size(), out.begin());
      } else {
        status = decompress_range(spec.compressor.kind, *chunk, spec.chunk_bytes(), begin * item, out);
      }
      if (!status.ok()) return status.error().with_context(fmt::format("{}: chunk {}", state_->path, number));
    }
    bytes = bytes.subspan(out.size());
    start += taken;
    count -= taken;
  }
  return {};
}

}  // namespace ostro::io
