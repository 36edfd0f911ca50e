#include "ostro/io/arrays/zarr.h"

#include <algorithm>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

// The part of chunk number `index` that lies inside the box [start, start + shape). `chunk` is the chunks'
// shape.
struct Overlap {
  Extents in_chunk, in_box, shape;
};

Overlap overlap(const Extents& index, const Extents& chunk, const Extents& start, const Extents& shape) {
  Overlap o{index, index, index};
  for (size_t d = 0; d < index.size(); ++d) {
    const int64_t chunk_begin = index[d] * chunk[d];
    const int64_t begin = std::max(chunk_begin, start[d]);
    const int64_t end = std::min(chunk_begin + chunk[d], start[d] + shape[d]);
    o.in_chunk[d] = begin - chunk_begin;
    o.in_box[d] = begin - start[d];
    o.shape[d] = end - begin;
  }
  return o;
}

// Calls f with the index of every chunk that touches the box.
Status for_each_chunk(const Extents& chunk, const Extents& start, const Extents& shape,
                      const std::function<Status(const Extents&)>& f) {
  const size_t rank = chunk.size();
  Extents first(rank), count(rank);
  for (size_t d = 0; d < rank; ++d) {
    first[d] = start[d] / chunk[d];
    count[d] = shape[d] == 0 ? 0 : (start[d] + shape[d] - 1) / chunk[d] - first[d] + 1;
  }
  return for_each_index(count, [&](const Extents& relative) -> Status {
    Extents index(rank);
    for (size_t d = 0; d < rank; ++d) index[d] = first[d] + relative[d];
    return f(index);
  });
}

Status check_box(const ZarrSpec& spec, const Extents& start, const Extents& shape, size_t bytes,
                 const std::string& path) {
  if (start.size() != spec.shape.size() || shape.size() != spec.shape.size()) {
    return invalid_argument(
        fmt::format("{}: a box of rank {} for an array of rank {}", path, start.size(), spec.shape.size()));
  }
  for (size_t d = 0; d < start.size(); ++d) {
    if (start[d] < 0 || shape[d] < 0 || start[d] > spec.shape[d] || shape[d] > spec.shape[d] - start[d]) {
      return invalid_argument(fmt::format("{}: box [{}, {}) of axis {} leaves the array's {}", path, start[d],
                                          start[d] + shape[d], d, spec.shape[d]));
    }
  }
  const int64_t wanted = product(shape) * spec.item_size();
  if (static_cast<int64_t>(bytes) != wanted) {
    return invalid_argument(fmt::format("{}: {} bytes given for a box of {}", path, bytes, wanted));
  }
  return {};
}

// Returns whether a box's elements are contiguous in a dense array of this shape.
bool lies_together(const Extents& box, const Extents& shape) {
  size_t d = 0;
  while (d < box.size() && box[d] == 1) ++d;
  return d >= box.size() || std::equal(box.begin() + static_cast<int64_t>(d) + 1, box.end(),
                                       shape.begin() + static_cast<int64_t>(d) + 1);
}

int64_t flat_index(const Extents& index, const Extents& shape) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return at;
}

}  // namespace

ZarrArray::ZarrArray(FileSystem& fs, std::string path, ZarrSpec spec, ZarrWrite mode)
    : fs_(&fs), path_(std::move(path)), spec_(std::move(spec)), mode_(mode) {}

Result<ZarrArray> ZarrArray::create(FileSystem& fs, const std::string& path, ZarrSpec spec, ZarrWrite mode) {
  RETURN_IF_ERROR(validate(spec, path));
  RETURN_IF_ERROR(fs.make_dirs(path));
  const std::string metadata = join_path(path, "zarr.json");
  if (mode == ZarrWrite::kAtomic) {
    RETURN_IF_ERROR(write_file_atomically(fs, metadata, zarr_json(spec)));
  } else {
    ASSIGN_OR_RETURN(const auto file, fs.create_once(metadata));
    RETURN_IF_ERROR(file->append(zarr_json(spec)));
    RETURN_IF_ERROR(file->close());
  }
  return ZarrArray(fs, path, std::move(spec), mode);
}

Result<ZarrArray> ZarrArray::open(FileSystem& fs, const std::string& path) {
  const std::string metadata = join_path(path, "zarr.json");
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(metadata, kMaxMetadataBytes));
  ASSIGN_OR_RETURN(ZarrSpec spec, parse_zarr_json(text, metadata));
  return ZarrArray(fs, path, std::move(spec), ZarrWrite::kAtomic);
}

Result<ZarrArray> ZarrArray::created(FileSystem& fs, const std::string& path, ZarrSpec spec, ZarrWrite mode) {
  RETURN_IF_ERROR(validate(spec, path));
  return ZarrArray(fs, path, std::move(spec), mode);
}

std::string ZarrArray::file_path(const Extents& index) const {
  return join_path(path_, spec_.chunk_name(index));
}

// A shard is its chunks in lexicographic order, none missing, with the index behind or before them. The
// offsets of the index count from the start of the file, so an index at the start shifts all of them.
Result<Bytes> ZarrArray::encode_file(std::span<const std::byte> elements) const {
  if (!spec_.sharded()) return encode_chunk(spec_, elements);
  Bytes file, chunk(static_cast<size_t>(spec_.chunk_bytes()));
  ShardIndex index;
  const Extents zero(spec_.shape.size(), 0);
  RETURN_IF_ERROR(for_each_index(grid_of(spec_.shard, spec_.chunk), [&](const Extents& at) -> Status {
    Extents start = at;
    for (size_t d = 0; d < start.size(); ++d) start[d] *= spec_.chunk[d];
    copy_box(elements, spec_.shard, start, chunk, spec_.chunk, zero, spec_.chunk, spec_.item_size());
    ASSIGN_OR_RETURN(const Bytes encoded, encode_chunk(spec_, chunk));
    index.push_back({file.size(), encoded.size()});
    file.insert(file.end(), encoded.begin(), encoded.end());
    return {};
  }));
  if (spec_.index_at_end) {
    const Bytes tail = encode_shard_index(index);
    file.insert(file.end(), tail.begin(), tail.end());
  } else {
    for (ShardEntry& entry : index) entry.offset += static_cast<uint64_t>(shard_index_bytes(spec_));
    const Bytes head = encode_shard_index(index);
    file.insert(file.begin(), head.begin(), head.end());
  }
  return file;
}

// Writes file by file. A file's elements are taken from `bytes` without a copy if the box holds the whole
// file and they are contiguous in it; otherwise they are copied into a chunk of full size that is zero beyond
// the array's end. The cached index of a shard is dropped before its file is replaced.
Status ZarrArray::write_box(const Extents& start, const Extents& shape,
                            std::span<const std::byte> bytes) const {
  RETURN_IF_ERROR(check_box(spec_, start, shape, bytes.size(), path_));
  const Extents& unit = spec_.file_chunk();
  for (size_t d = 0; d < start.size(); ++d) {
    const int64_t end = start[d] + shape[d];
    if (start[d] % unit[d] != 0 || (end % unit[d] != 0 && end != spec_.shape[d])) {
      return invalid_argument(
          fmt::format("{}: box [{}, {}) of axis {} cuts a chunk of {}", path_, start[d], end, d, unit[d]));
    }
  }
  const bool as_they_are =
      !spec_.sharded() && spec_.compressor.kind == Compression::kNone && !spec_.chunk_crc32c;
  Bytes dense, encoded;
  return for_each_chunk(unit, start, shape, [&](const Extents& index) -> Status {
    const Overlap o = overlap(index, unit, start, shape);
    std::span<const std::byte> content;
    if (o.shape == unit && lies_together(unit, shape)) {
      const auto at = static_cast<size_t>(flat_index(o.in_box, shape) * spec_.item_size());
      content = bytes.subspan(at, static_cast<size_t>(product(unit) * spec_.item_size()));
    } else {
      dense.assign(static_cast<size_t>(product(unit) * spec_.item_size()), std::byte{0});
      copy_box(bytes, shape, o.in_box, dense, unit, o.in_chunk, o.shape, spec_.item_size());
      content = dense;
    }
    if (!as_they_are) {
      ASSIGN_OR_RETURN(encoded, encode_file(content));
      content = encoded;
    }
    const std::string path = file_path(index);
    if (spec_.separator == '/') RETURN_IF_ERROR(fs_->make_dirs(parent_path(path)));
    {
      const std::lock_guard lock(cache_->mutex);
      cache_->shards.erase(index);
    }
    if (mode_ == ZarrWrite::kAtomic) {
      return write_file_atomically(*fs_, path, [&](WritableFile& file) { return file.append(content); });
    }
    ASSIGN_OR_RETURN(const auto file, fs_->create_once(path));
    RETURN_IF_ERROR(file->append(content));
    return file->close();
  });
}

// The open shard, from the cache. A missing file gives null, which is cached too.
Result<std::shared_ptr<const ZarrArray::Shard>> ZarrArray::shard(const Extents& index) const {
  const std::lock_guard lock(cache_->mutex);
  if (const auto found = cache_->shards.find(index); found != cache_->shards.end()) return found->second;
  auto file = fs_->open(file_path(index));
  std::shared_ptr<const Shard> shard;
  if (file.ok()) {
    ASSIGN_OR_RETURN(ShardIndex entries, read_shard_index(**file, spec_));
    shard = std::make_shared<Shard>(Shard{std::move(*file), std::move(entries)});
  } else if (file.error().code() != ErrorCode::kNotFound) {
    return file.error();
  }
  cache_->shards[index] = shard;
  return shard;
}

Status ZarrArray::read_chunk(const Extents& chunk_index, std::span<std::byte> elements, bool& missing) const {
  missing = false;
  Bytes encoded;
  std::string path;
  if (spec_.sharded()) {
    Extents file_index = chunk_index;
    int64_t position = 0;
    for (size_t d = 0; d < chunk_index.size(); ++d) {
      const int64_t per_shard = spec_.shard[d] / spec_.chunk[d];
      file_index[d] = chunk_index[d] / per_shard;
      position = position * per_shard + chunk_index[d] % per_shard;
    }
    ASSIGN_OR_RETURN(const auto holder, shard(file_index));
    missing = holder == nullptr || holder->index[static_cast<size_t>(position)].missing();
    if (missing) return {};
    const ShardEntry entry = holder->index[static_cast<size_t>(position)];
    path = holder->file->path();
    encoded.resize(entry.size);
    RETURN_IF_ERROR(holder->file->read(static_cast<int64_t>(entry.offset), encoded));
  } else {
    path = file_path(chunk_index);
    auto file = fs_->open(path);
    missing = !file.ok() && file.error().code() == ErrorCode::kNotFound;
    if (missing) return {};
    if (!file.ok()) return file.error();
    if ((*file)->size() > max_encoded_bytes(spec_))
      return corrupt(fmt::format("{}: too large for a chunk", path));
    encoded.resize(static_cast<size_t>((*file)->size()));
    RETURN_IF_ERROR((*file)->read(0, encoded));
  }
  const Status status = decode_chunk(spec_, encoded, elements);
  return status.ok() ? status : Status(status.error().with_context(path));
}

Status ZarrArray::read_box(const Extents& start, const Extents& shape, std::span<std::byte> bytes) const {
  RETURN_IF_ERROR(check_box(spec_, start, shape, bytes.size(), path_));
  Bytes chunk(static_cast<size_t>(spec_.chunk_bytes()));
  return for_each_chunk(spec_.chunk, start, shape, [&](const Extents& index) -> Status {
    const Overlap o = overlap(index, spec_.chunk, start, shape);
    bool missing = false;
    if (o.shape == spec_.chunk && shape == spec_.chunk) {  // the box is this chunk: no copy
      RETURN_IF_ERROR(read_chunk(index, bytes, missing));
      if (missing) std::fill(bytes.begin(), bytes.end(), std::byte{0});
      return {};
    }
    RETURN_IF_ERROR(read_chunk(index, chunk, missing));
    if (missing) std::fill(chunk.begin(), chunk.end(), std::byte{0});
    copy_box(chunk, spec_.chunk, o.in_chunk, bytes, shape, o.in_box, o.shape, spec_.item_size());
    return {};
  });
}

Status write_zarr_group(FileSystem& fs, const std::string& path, const std::string& attributes) {
  RETURN_IF_ERROR(fs.make_dirs(path));
  return write_file_atomically(
      fs, join_path(path, "zarr.json"),
      fmt::format("{{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\",\n  \"attributes\": {}\n}}\n",
                  attributes));
}

}  // namespace ostro::io
