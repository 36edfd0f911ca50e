// SparseStore: makes token stores of any length that take little disk space, for tests and benchmarks. Every
// token can be read, since the files of all shards are hard links to the same file. Of offsets and rows, only
// the chunks that given sequences need are written.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/arrays/zarr_1d.h"
#include "ostro/io/arrays/zarr_shard.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/crc32c.h"
#include "ostro/numerics/threefry.h"

namespace ostro::data {

struct SparseStore {
  int64_t tokens = 0, row_tokens = 1000;  // all rows have the same number
  int64_t files = 1;                      // source files of the rows
  ElementType ids = ElementType::kUint32;
  ArrayLayout layout;
  Preprocessing preprocessing;

  int64_t rows() const { return tokens / row_tokens; }
  // After this many chunks the content repeats.
  int64_t kinds() const { return std::min<int64_t>(64, layout.shard / layout.chunk); }
  int32_t token(int64_t position) const {
    const int64_t chunk = position / layout.chunk % kinds(),
                  at = chunk * layout.chunk + position % layout.chunk;
    return static_cast<int32_t>(numerics::random_bits(numerics::key_from_seed(1), static_cast<uint64_t>(at)) %
                                static_cast<uint64_t>(preprocessing.vocab_size));
  }
  // An element of another array: of offsets, or of an array that depends on the row's number only.
  int64_t element(ArrayId id, int64_t i) const {
    const int64_t per_file = (rows() + files - 1) / files;
    switch (id) {
      case ArrayId::kOffsets: return i == 0 ? rows() : i * row_tokens;
      case ArrayId::kDocument: return i % per_file + 1;
      case ArrayId::kBytes: return 4 * row_tokens;
      case ArrayId::kBegin: return i % per_file * 5 * row_tokens;
      default: return i % per_file * 5 * row_tokens + 4 * row_tokens + 12;
    }
  }
};

namespace sparse_store {

inline Status write_shard(const std::string& path, const io::ShardIndex& index, io::Bytes content) {
  const io::Bytes tail = io::encode_shard_index(index);
  content.insert(content.end(), tail.begin(), tail.end());
  RETURN_IF_ERROR(io::local_file_system().make_dirs(io::parent_path(path)));
  return io::write_file_atomically(io::local_file_system(), path,
                                   {reinterpret_cast<const char*>(content.data()), content.size()});
}

// Writes the file of all shards of the ids, and its links. A file in ext4 has at most 65,000 links.
inline Status write_ids(const SparseStore& store, const std::string& folder, const io::ZarrSpec& spec,
                        ArrayLedger& ledger) {
  io::ShardIndex index(static_cast<size_t>(store.layout.shard / store.layout.chunk));
  io::Bytes content;
  std::vector<uint32_t> crcs;
  const auto elements = [&](int64_t chunk, int64_t count) {
    io::Bytes bytes(static_cast<size_t>(count) * element_bytes(store.ids));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = store.token(chunk * store.layout.chunk + i);
      std::memcpy(bytes.data() + static_cast<size_t>(i) * element_bytes(store.ids), &id,
                  element_bytes(store.ids));
    }
    return bytes;
  };
  for (int64_t kind = 0; kind < store.kinds(); ++kind) {
    const io::Bytes bytes = elements(kind, store.layout.chunk);
    crcs.push_back(io::crc32c(bytes));
    ASSIGN_OR_RETURN(const io::Bytes encoded, io::encode_chunk(spec, bytes));
    for (size_t i = static_cast<size_t>(kind); i < index.size(); i += static_cast<size_t>(store.kinds()))
      index[i] = {content.size(), encoded.size()};
    content.insert(content.end(), encoded.begin(), encoded.end());
  }
  for (int64_t chunk = 0; chunk < ledger.chunks(); ++chunk)
    ledger.crc32c.push_back(crcs[static_cast<size_t>(chunk % store.kinds())]);
  if (const int64_t rest = ledger.elements % store.layout.chunk; rest > 0)
    ledger.crc32c.back() = io::crc32c(elements(ledger.chunks() - 1, rest));
  const int64_t shards = (ledger.elements - 1) / store.layout.shard + 1;
  std::string file;
  for (int64_t shard = 0; shard < shards; ++shard) {
    const std::string path = io::join_path(folder, spec.chunk_name({shard}));
    if (shard % 30'000 == 0) {
      file = path;
      RETURN_IF_ERROR(write_shard(path, index, content));
    } else {
      std::filesystem::create_hard_link(file, path);
    }
  }
  return {};
}

// Writes only those chunks of an int64 array that hold `wanted` elements. The ledger's sums of the other
// chunks are 0.
inline Status write_chunks(const SparseStore& store, const std::string& folder, const io::ZarrSpec& spec,
                           ArrayId id, const std::set<int64_t>& wanted, ArrayLedger& ledger) {
  const int64_t chunk = store.layout.chunk, per_shard = store.layout.shard / chunk;
  ledger.crc32c.assign(static_cast<size_t>(ledger.chunks()), 0);
  if (id == ArrayId::kOffsets)
    for (int64_t c = 0; c < ledger.chunks(); ++c)
      ledger.last.push_back(store.element(id, std::min((c + 1) * chunk, ledger.elements) - 1));
  std::map<int64_t, std::pair<io::ShardIndex, io::Bytes>> shards;
  for (const int64_t element : wanted) {
    const int64_t number = element / chunk, begin = number * chunk;
    auto& [index, content] = shards[number / per_shard];
    index.resize(static_cast<size_t>(per_shard));
    io::ShardEntry& entry = index[static_cast<size_t>(number % per_shard)];
    if (!entry.missing()) continue;
    std::vector<int64_t> values;
    for (int64_t i = begin; i < std::min(begin + chunk, ledger.elements); ++i)
      values.push_back(store.element(id, i));
    ledger.crc32c[static_cast<size_t>(number)] = io::crc32c(std::as_bytes(std::span(values)));
    values.resize(static_cast<size_t>(chunk));
    ASSIGN_OR_RETURN(const io::Bytes encoded, io::encode_chunk(spec, std::as_bytes(std::span(values))));
    entry = {content.size(), encoded.size()};
    content.insert(content.end(), encoded.begin(), encoded.end());
  }
  for (auto& [shard, file] : shards)
    RETURN_IF_ERROR(
        write_shard(io::join_path(folder, spec.chunk_name({shard})), file.first, std::move(file.second)));
  return {};
}

}  // namespace sparse_store

// Makes the store in a new local folder. `positions` are tokens whose rows can be looked up. Rows have no
// hashes, and the SHA-256 of arrays in the ledger are not real, so data::verify_arrays would refuse the
// store.
inline Status make_sparse_store(const SparseStore& store, const std::string& cache_dir,
                                const std::vector<int64_t>& positions) {
  OSTRO_CHECK(store.tokens > 0 && store.tokens % store.row_tokens == 0, "{} tokens in rows of {}",
              store.tokens, store.row_tokens);
  io::FileSystem& fs = io::local_file_system();
  std::set<int64_t> rows, ends = {0};
  for (const int64_t position : positions) {
    rows.insert(position / store.row_tokens);
    ends.insert(position / store.row_tokens);
    ends.insert(position / store.row_tokens + 1);
  }
  StoreLedger ledger;
  ledger.preprocessing = store.preprocessing;
  for (int64_t i = 0, row = 0; i < store.files; ++i) {
    const int64_t per_file = (store.rows() + store.files - 1) / store.files;
    FileLedger file;
    file.source.path = fmt::format("corpus/{:05}.jsonl", i);
    file.sha256 = std::string(64, '0');
    file.documents = file.rows[0] = std::min(per_file, store.rows() - row);
    file.tokens[0] = file.rows[0] * store.row_tokens;
    row += file.rows[0];
    ledger.files.push_back(std::move(file));
  }
  for (const Split split : kSplits) {
    const bool train = split == Split::kTrain;
    SplitLedger& s = ledger.split(split);
    s.rows = train ? store.rows() : 0;
    s.tokens = train ? store.tokens : 0;
    s.bytes = 4 * s.tokens;
    for (const ArrayPlace& place : ledger.places()) {
      ArrayLedger& array = s.array(place.id);
      const bool ids = place.id == ArrayId::kData, offsets = place.id == ArrayId::kOffsets;
      array.type = ids ? store.ids : place.type;
      array.chunk = store.layout.chunk;
      array.elements = ids                             ? s.tokens
                       : offsets                       ? s.rows + 1
                       : place.id == ArrayId::kRowHash ? 32 * s.rows
                                                       : s.rows;
      array.sha256 = std::string(64, '0');
      io::ZarrSpec spec = io::token_store_spec(element_name(array.type));
      spec.chunk = {store.layout.chunk};
      spec.shard = {store.layout.shard};
      const std::string folder = array_source(cache_dir, ledger, split, place).path;
      RETURN_IF_ERROR(fs.make_dirs(folder));
      RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(folder, "zarr.json"), io::zarr_json(spec)));
      if (ids && train)
        RETURN_IF_ERROR(sparse_store::write_ids(store, folder, spec, array));
      else
        RETURN_IF_ERROR(sparse_store::write_chunks(store, folder, spec, place.id,
                                                   !train || place.id == ArrayId::kRowHash
                                                       ? std::set<int64_t>()
                                                   : offsets ? ends
                                                             : rows,
                                                   array));
    }
  }
  ledger.root = std::string(64, '0');  // nor is this real
  RETURN_IF_ERROR(write_chunk_tables(fs, cache_dir, ledger, ledger.hash()));
  return write_ledger(fs, cache_dir, ledger);
}

}  // namespace ostro::data
