// A shard is appended to in place: first chunks, then the index. A later commit appends its chunks after the
// old index, and then a new index. So a torn append never damages what an earlier Position describes:
// truncating the file to its recorded length makes the old index the end of the file again.
#include <algorithm>
#include <cstring>

#include "ostro/io/arrays/zarr_1d.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

constexpr int64_t kTokenChunk = 262'144, kTokenShard = 134'217'728;

Status check_1d(const ZarrSpec& spec, const std::string& path) {
  RETURN_IF_ERROR(validate(spec, path));
  if (spec.shape.size() != 1 || !spec.sharded() || !spec.index_at_end) {
    return unsupported(
        fmt::format("{}: appending needs one axis and shards with the index at the end", path));
  }
  return {};
}

}  // namespace

ZarrSpec token_store_spec(std::string dtype, int64_t length) {
  ZarrSpec spec;
  spec.dtype = std::move(dtype);
  spec.shape = {length};
  spec.chunk = {kTokenChunk};
  spec.shard = {kTokenShard};
  spec.compressor = {.kind = Compression::kBlosc,
                     .level = 5,
                     .blosc_name = "lz4",
                     .blosc_shuffle = 1,
                     .item_size = static_cast<int>(spec.item_size())};
  return spec;
}

Zarr1dWriter::Zarr1dWriter(FileSystem& fs, std::string path, ZarrSpec spec)
    : fs_(&fs), path_(std::move(path)), spec_(std::move(spec)) {}

std::string Zarr1dWriter::shard_path(int64_t shard) const {
  return join_path(path_, spec_.chunk_name({shard}));
}

Result<Zarr1dWriter> Zarr1dWriter::create(FileSystem& fs, const std::string& path, ZarrSpec spec) {
  RETURN_IF_ERROR(check_1d(spec, path));
  Zarr1dWriter writer(fs, path, std::move(spec));
  RETURN_IF_ERROR(fs.make_dirs(parent_path(writer.shard_path(0))));
  RETURN_IF_ERROR(writer.remove_shards_from(0));
  RETURN_IF_ERROR(write_file_atomically(fs, join_path(path, "zarr.json"), zarr_json(writer.spec_)));
  return writer;
}

Status Zarr1dWriter::remove_shards_from(int64_t first) {
  for (int64_t shard = first;; ++shard) {
    ASSIGN_OR_RETURN(const bool exists, fs_->exists(shard_path(shard)));
    if (!exists) break;
    RETURN_IF_ERROR(fs_->remove(shard_path(shard)));
  }
  return fs_->sync_dir(parent_path(shard_path(first)));
}

Result<Zarr1dWriter> Zarr1dWriter::resume(FileSystem& fs, const std::string& path, const Position& position) {
  const std::string metadata = join_path(path, "zarr.json");
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(metadata, kMaxMetadataBytes));
  ASSIGN_OR_RETURN(ZarrSpec spec, parse_zarr_json(text, metadata));
  RETURN_IF_ERROR(check_1d(spec, metadata));
  if (position.elements < 0 || position.elements > spec.shape[0] || position.shard_bytes < 0) {
    return corrupt(fmt::format("{}: a position of {} elements, {} bytes to resume from", path,
                               position.elements, position.shard_bytes));
  }
  Zarr1dWriter writer(fs, path, std::move(spec));
  RETURN_IF_ERROR(writer.restore_shard(position));
  return writer;
}

// Brings the files back to `position`: removes later shards, cuts the last one to its committed length, and
// checks that the index of every shard has exactly the chunks that the number of elements implies. A partly
// filled last chunk is decoded into pending_ and its index entry cleared, because it is written again when it
// is full.
Status Zarr1dWriter::restore_shard(const Position& position) {
  const int64_t per_shard = spec_.shard[0], per_chunk = spec_.chunk[0];
  const int64_t full_shards = position.elements / per_shard, rest = position.elements % per_shard;
  RETURN_IF_ERROR(remove_shards_from(full_shards + (rest > 0 ? 1 : 0)));
  elements_ = position.elements;
  for (int64_t shard = 0; shard < full_shards + (rest > 0 ? 1 : 0); ++shard) {
    const std::string name = shard_path(shard);
    const bool last = shard == full_shards;
    if (last) {
      ASSIGN_OR_RETURN(const FileInfo info, fs_->stat(name));
      if (info.size < position.shard_bytes) {
        return corrupt(
            fmt::format("{}: {} bytes, but {} were committed", name, info.size, position.shard_bytes));
      }
      RETURN_IF_ERROR(fs_->truncate(name, position.shard_bytes));
    }
    ASSIGN_OR_RETURN(const auto file, fs_->open(name));
    ASSIGN_OR_RETURN(ShardIndex index, read_shard_index(*file, spec_));
    const int64_t chunks = last ? (rest + per_chunk - 1) / per_chunk : per_shard / per_chunk;
    for (int64_t i = 0; i < static_cast<int64_t>(index.size()); ++i) {
      if (index[static_cast<size_t>(i)].missing() != (i >= chunks)) {
        return corrupt(fmt::format("{}: shard index entry {} does not fit {} committed elements", name, i,
                                   position.elements));
      }
    }
    if (!last) continue;
    if (rest % per_chunk != 0) {  // load the unfinished chunk into memory again
      ShardEntry& entry = index[static_cast<size_t>(chunks - 1)];
      Bytes encoded(entry.size), chunk(static_cast<size_t>(spec_.chunk_bytes()));
      RETURN_IF_ERROR(file->read(static_cast<int64_t>(entry.offset), encoded));
      if (const Status s = decode_chunk(spec_, encoded, chunk); !s.ok()) return s.error().with_context(name);
      chunk.resize(static_cast<size_t>(rest % per_chunk * spec_.item_size()));
      pending_ = std::move(chunk);
      entry = {};
    }
    index_ = std::move(index);
    file_bytes_ = position.shard_bytes;
    ASSIGN_OR_RETURN(file_, fs_->open_append(name));
  }
  return {};
}

Status Zarr1dWriter::put(std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(file_->append(bytes));
  file_bytes_ += static_cast<int64_t>(bytes.size());
  return {};
}

// Writes pending_, padded with zeros, as chunk number `chunk_in_shard` of the current shard.
Status Zarr1dWriter::write_pending_chunk(int64_t chunk_in_shard) {
  if (file_ == nullptr) {
    const int64_t shard = (elements_ - 1) / spec_.shard[0];
    ASSIGN_OR_RETURN(file_, fs_->create(shard_path(shard)));
    names_changed_ = true;
    file_bytes_ = 0;
    index_.assign(static_cast<size_t>(chunks_per_shard(spec_)), ShardEntry{});
  }
  const size_t used = pending_.size();
  pending_.resize(static_cast<size_t>(spec_.chunk_bytes()), std::byte{0});
  ASSIGN_OR_RETURN(const Bytes encoded, encode_chunk(spec_, pending_));
  pending_.resize(used);
  index_[static_cast<size_t>(chunk_in_shard)] = {static_cast<uint64_t>(file_bytes_), encoded.size()};
  return put(encoded);
}

Status Zarr1dWriter::write_index() {
  RETURN_IF_ERROR(put(encode_shard_index(index_)));
  return file_->sync();
}

Status Zarr1dWriter::append(std::span<const std::byte> bytes) {
  const int64_t item = spec_.item_size();
  const auto chunk_bytes = static_cast<size_t>(spec_.chunk_bytes());
  OSTRO_CHECK(bytes.size() % static_cast<size_t>(item) == 0, "{}: {} bytes are not whole elements", path_,
              bytes.size());
  if (static_cast<int64_t>(bytes.size()) / item > spec_.shape[0] - elements_) {
    return invalid_argument(fmt::format("{}: more than the {} elements of its shape", path_, spec_.shape[0]));
  }
  while (!bytes.empty()) {
    const size_t taken = std::min(bytes.size(), chunk_bytes - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    elements_ += static_cast<int64_t>(taken) / item;
    if (pending_.size() < chunk_bytes) continue;
    const int64_t chunk = (elements_ - 1) % spec_.shard[0] / spec_.chunk[0];
    RETURN_IF_ERROR(write_pending_chunk(chunk));
    pending_.clear();
    if (chunk + 1 == chunks_per_shard(spec_)) {
      RETURN_IF_ERROR(write_index());
      RETURN_IF_ERROR(file_->close());
      file_.reset();
      file_bytes_ = 0;
    }
  }
  return {};
}

// Appends the unfinished chunk, padded, and an index that names it, then syncs. pending_ is kept: the next
// commit writes the chunk again, further on in the file, and the old copy is dead bytes.
Result<Zarr1dWriter::Position> Zarr1dWriter::commit() {
  if (!pending_.empty()) {
    const int64_t chunk = (elements_ - 1) % spec_.shard[0] / spec_.chunk[0];
    RETURN_IF_ERROR(write_pending_chunk(chunk));
  }
  if (file_ != nullptr) RETURN_IF_ERROR(write_index());
  if (names_changed_) RETURN_IF_ERROR(fs_->sync_dir(parent_path(shard_path(0))));
  names_changed_ = false;
  return Position{elements_, file_ != nullptr ? file_bytes_ : 0};
}

Status replace_element(FileSystem& fs, const std::string& path, int64_t position,
                       std::span<const std::byte> element) {
  const std::string metadata = join_path(path, "zarr.json");
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(metadata, kMaxMetadataBytes));
  ASSIGN_OR_RETURN(const ZarrSpec spec, parse_zarr_json(text, metadata));
  RETURN_IF_ERROR(check_1d(spec, metadata));
  OSTRO_CHECK(static_cast<int64_t>(element.size()) == spec.item_size() && position >= 0,
              "{}: replacing element {} by {} bytes", path, position, element.size());
  const std::string name = join_path(path, spec.chunk_name({position / spec.shard[0]}));
  ASSIGN_OR_RETURN(const auto file, fs.open(name));
  ASSIGN_OR_RETURN(ShardIndex index, read_shard_index(*file, spec));
  const auto target = static_cast<size_t>(position % spec.shard[0] / spec.chunk[0]);
  if (index[target].missing())
    return corrupt(fmt::format("{}: element {} was never written", name, position));

  return write_file_atomically(fs, name, [&](WritableFile& out) -> Status {
    uint64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      if (index[i].missing()) continue;
      Bytes encoded(index[i].size);
      RETURN_IF_ERROR(file->read(static_cast<int64_t>(index[i].offset), encoded));
      if (i == target) {
        Bytes chunk(static_cast<size_t>(spec.chunk_bytes()));
        if (const Status s = decode_chunk(spec, encoded, chunk); !s.ok()) return s.error().with_context(name);
        std::memcpy(chunk.data() + position % spec.chunk[0] * spec.item_size(), element.data(),
                    element.size());
        ASSIGN_OR_RETURN(encoded, encode_chunk(spec, chunk));
      }
      index[i] = {offset, encoded.size()};
      offset += encoded.size();
      RETURN_IF_ERROR(out.append(encoded));
    }
    return out.append(encode_shard_index(index));
  });
}

}  // namespace ostro::io
