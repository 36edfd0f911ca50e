#include "ostro/prepare/store/store_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/failpoint.h"
#include "ostro/data/arrays/recorded_sums.h"
#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/ledger/store_damage.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/data/store/store_verify.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/crc32c.h"

namespace ostro::prepare {
namespace {

size_t index(data::Split split) { return static_cast<size_t>(split); }
size_t index(data::ArrayId id) { return static_cast<size_t>(id); }

}  // namespace

StoreWriter::StoreWriter(io::FileSystem& fs, std::string cache_dir, Journal::Header header)
    : fs_(&fs),
      cache_dir_(std::move(cache_dir)),
      header_(std::move(header)),
      places_(data::array_places(header_.preprocessing.fields, header_.preprocessing.row_arrays())) {}

std::string StoreWriter::folder(data::Split split, const data::ArrayPlace& place) const {
  return io::join_path(cache_dir_, io::join_path(data::split_name(split), place.path));
}

template <typename Visit>
Status StoreWriter::for_each_array(const Visit& visit) {
  for (const data::Split split : data::kSplits)
    for (const data::ArrayPlace& place : places_) RETURN_IF_ERROR(visit(split, place));
  return {};
}

Result<StoreWriter> StoreWriter::create(io::FileSystem& fs, const std::string& cache_dir,
                                        Journal::Header header, const data::ArrayLayout& layout,
                                        data::ElementType ids, const BuildState* base) {
  StoreWriter writer(fs, cache_dir, std::move(header));
  ASSIGN_OR_RETURN(Journal journal, Journal::create(fs, cache_dir, writer.header_, base));
  writer.journal_ = std::move(journal);
  if (base == nullptr) {
    RETURN_IF_ERROR(writer.open_arrays(&layout, ids));
    return writer;
  }
  writer.state_ = *base;
  // From here on the store is unfinished. The journal holds everything that was in the ledger.
  ASSIGN_OR_RETURN(const bool finished, fs.exists(data::ledger_path(cache_dir)));
  if (finished) {
    RETURN_IF_ERROR(fs.remove(data::ledger_path(cache_dir)));
    RETURN_IF_ERROR(fs.sync_dir(cache_dir));
  }
  RETURN_IF_ERROR(writer.open_arrays(nullptr, ids));
  return writer;
}

Result<StoreWriter> StoreWriter::resume(io::FileSystem& fs, const std::string& cache_dir,
                                        Journal::Found found) {
  ASSIGN_OR_RETURN(Journal journal, Journal::reopen(fs, cache_dir, found));
  StoreWriter writer(fs, cache_dir, std::move(found.header));
  writer.journal_ = std::move(journal);
  writer.state_ = std::move(found.state);
  if (!writer.state_.encoded) RETURN_IF_ERROR(writer.open_arrays(nullptr, data::ElementType::kInt64));
  return writer;
}

Status StoreWriter::open_arrays(const data::ArrayLayout* layout, data::ElementType ids) {
  return for_each_array([&](data::Split split, const data::ArrayPlace& place) -> Status {
    std::optional<data::ArrayWriter>& slot = writers_[index(split)][index(place.id)];
    const std::string path = folder(split, place);
    if (layout == nullptr) {
      auto writer = data::ArrayWriter::resume(*fs_, path, state_.positions[index(split)][index(place.id)],
                                              state_.sums[index(split)][index(place.id)]);
      if (!writer.ok()) return data::unfinished_error(cache_dir_, writer.error());
      slot = std::move(*writer);
      return {};
    }
    ASSIGN_OR_RETURN(slot, data::ArrayWriter::create(*fs_, path, *layout,
                                                     place.id == data::ArrayId::kData ? ids : place.type));
    // Element 0 is the number of rows. It is only known at the end.
    if (data::is_offsets(place.id)) return slot->append(std::span<const int64_t>({int64_t{0}}));
    return {};
  });
}

Status StoreWriter::append_split(data::Split split, const EncodedUnit& unit) {
  auto& writers = writers_[index(split)];
  const data::WeightKind kind = header_.preprocessing.fields.weights;
  const bool all = header_.preprocessing.row_arrays() == data::RowArrays::kAll;
  const auto writer = [&writers](data::ArrayId id) -> data::ArrayWriter& { return *writers[index(id)]; };
  std::vector<int64_t> ends, numbers, bytes, begins, row_ends, weight_ends, prompts;
  std::vector<std::byte> hashes;
  // tokens [run, token) are not yet appended
  int64_t end = writer(data::ArrayId::kData).elements(), token = 0, run = 0;
  const auto flush = [&]() -> Status {
    const auto first = static_cast<size_t>(run), count = static_cast<size_t>(token - run);
    RETURN_IF_ERROR(writer(data::ArrayId::kData).append(std::span(unit.tokens).subspan(first, count)));
    if (kind == data::WeightKind::kNone || kind == data::WeightKind::kSourcesLen) return {};
    const std::span<const float> weights = std::span(unit.weights).subspan(first, count);
    if (kind == data::WeightKind::kLossWeights)
      return writer(data::ArrayId::kWeights).append_bytes(std::as_bytes(weights));
    std::vector<int64_t> mask(weights.begin(), weights.end());
    return writer(data::ArrayId::kWeights).append(mask);
  };
  for (const EncodedUnit::Document& document : unit.documents) {
    if (document.split != split) {
      RETURN_IF_ERROR(flush());
      run = token += document.tokens;
      continue;
    }
    if (kind == data::WeightKind::kSourcesLen) {
      const auto row =
          std::span(unit.weights).subspan(static_cast<size_t>(token), static_cast<size_t>(document.tokens));
      prompts.push_back(std::find(row.begin(), row.end(), 1.0f) - row.begin());
    }
    token += document.tokens;
    end += document.tokens;
    ends.push_back(end);
    numbers.push_back(document.number);
    bytes.push_back(document.bytes);
    if (all) {
      begins.push_back(document.begin);
      row_ends.push_back(document.end);
      const auto hash = std::as_bytes(std::span(document.hash));
      hashes.insert(hashes.end(), hash.begin(), hash.end());
    }
    state_.bytes[index(split)] += document.bytes;
    state_.current.rows[index(split)] += 1;
    state_.current.tokens[index(split)] += document.tokens;
    uncommitted_ += document.bytes;
  }
  RETURN_IF_ERROR(flush());
  RETURN_IF_ERROR(writer(data::ArrayId::kOffsets).append(ends));
  RETURN_IF_ERROR(writer(data::ArrayId::kDocument).append(numbers));
  RETURN_IF_ERROR(writer(data::ArrayId::kBytes).append(bytes));
  if (all) {
    RETURN_IF_ERROR(writer(data::ArrayId::kBegin).append(begins));
    RETURN_IF_ERROR(writer(data::ArrayId::kEnd).append(row_ends));
    RETURN_IF_ERROR(writer(data::ArrayId::kRowHash).append_bytes(hashes));
  }
  if (kind == data::WeightKind::kNone) return {};
  if (kind != data::WeightKind::kSourcesLen) return writer(data::ArrayId::kWeightOffsets).append(ends);
  int64_t row = writer(data::ArrayId::kWeights).elements();
  RETURN_IF_ERROR(writer(data::ArrayId::kWeights).append(prompts));
  for (size_t i = 0; i < prompts.size(); ++i) weight_ends.push_back(++row);
  return writer(data::ArrayId::kWeightOffsets).append(weight_ends);
}

Status StoreWriter::add(const EncodedUnit& unit) {
  OSTRO_CHECK(unit.file == state_.file, "rows of source {} where those of {} come next", unit.file,
              state_.file);
  for (const data::Split split : data::kSplits) RETURN_IF_ERROR(append_split(split, unit));
  state_.current.documents += static_cast<int64_t>(unit.documents.size());
  state_.current.empty += unit.empty;
  state_.current.repaired += unit.repaired;
  state_.current.no_loss += unit.no_loss;
  state_.current.skipped += unit.skipped;
  state_.documents += unit.documents_read;
  state_.row_bytes = unit.row_bytes;
  if (unit.ends_file) {
    state_.current.source = header_.sources[static_cast<size_t>(unit.file)];
    state_.current.sha256 = unit.file_sha256;
    state_.files.push_back(std::move(state_.current));
    state_.current = {};
    state_.file = unit.file + 1;
    state_.documents = 0;
    state_.row_bytes = 0;
  }
  return {};
}

Status StoreWriter::commit(bool encoded) {
  RETURN_IF_ERROR(for_each_array([&](data::Split split, const data::ArrayPlace& place) -> Status {
    data::ArrayWriter& writer = *writers_[index(split)][index(place.id)];
    ASSIGN_OR_RETURN(state_.positions[index(split)][index(place.id)], writer.commit());
    std::vector<data::ChunkSum>& known = state_.sums[index(split)][index(place.id)];
    if (encoded) {
      known = writer.all_chunks();
    } else {
      const std::vector<data::ChunkSum>& full = writer.full_chunks();
      known.insert(known.end(), full.begin() + static_cast<ptrdiff_t>(known.size()), full.end());
    }
    return {};
  }));
  state_.encoded = encoded;
  failpoint("data_build");
  RETURN_IF_ERROR(journal_->append(state_));
  failpoint("data_build");
  uncommitted_ = 0;
  return {};
}

// Fills in an array's entry in the ledger. For offsets, also sets element 0 on disk.
Status StoreWriter::close_array(data::Split split, const data::ArrayPlace& place, data::SplitLedger& out) {
  std::vector<data::ChunkSum>& sums = state_.sums[index(split)][index(place.id)];
  const int64_t elements = state_.positions[index(split)][index(place.id)].elements();
  const std::string path = folder(split, place);
  if (data::is_offsets(place.id)) {
    RETURN_IF_ERROR(io::replace_element(*fs_, path, 0, std::as_bytes(std::span(&out.rows, 1))));
    failpoint("data_build");
  }
  ASSIGN_OR_RETURN(const io::Zarr1dReader reader, io::Zarr1dReader::open(*fs_, path, 1));
  const int64_t chunk = reader.spec().chunk[0];
  const std::optional<data::ElementType> type = data::parse_element(reader.spec().dtype);
  if (!type) return corrupt(fmt::format("{}: elements of {}", path, reader.spec().dtype));
  if (data::is_offsets(place.id)) {  // element 0 has just changed, so its first chunk has new sums
    std::vector<int64_t> first(static_cast<size_t>(std::min(chunk, elements)));
    RETURN_IF_ERROR(reader.read(0, std::span(first)));
    first[0] = state_.first_offsets[index(split)];
    // `last` is not compared: for a store that is extended it is known for input_ids/offsets only.
    const data::ChunkSum found = data::sum_chunk(*type, std::as_bytes(std::span(first)));
    if (found.sha256 != sums[0].sha256 || found.crc32c != sums[0].crc32c)
      return corrupt(fmt::format("{}: chunk 0 is damaged; delete the store to build it again", path));
    first[0] = out.rows;
    sums[0] = data::sum_chunk(*type, std::as_bytes(std::span(first)));
  }
  out.array(place.id) = data::array_ledger(place.id, *type, elements, chunk, sums);
  return {};
}

Result<data::StoreLedger> StoreWriter::finish(int threads) {
  OSTRO_CHECK(state_.encoded, "{}: finish() before all rows are committed", cache_dir_);
  data::StoreLedger ledger;
  ledger.preprocessing = header_.preprocessing;
  ledger.files = state_.files;
  for (size_t i = 0; i < left_out_.size(); ++i) ledger.files[i].left_out = left_out_[i];
  // In a store that was extended, new training files come after the held-out files.
  std::stable_sort(
      ledger.files.begin(), ledger.files.end(),
      [](const data::FileLedger& a, const data::FileLedger& b) { return a.source.list < b.source.list; });
  for (const data::Split split : data::kSplits) {
    data::SplitLedger& out = ledger.split(split);
    out.tokens = state_.positions[index(split)][index(data::ArrayId::kData)].elements();
    out.rows = state_.positions[index(split)][index(data::ArrayId::kDocument)].elements();
    out.bytes = state_.bytes[index(split)];
    for (const data::ArrayPlace& place : places_) RETURN_IF_ERROR(close_array(split, place, out));
    RETURN_IF_ERROR(data::write_levanter_ledger(*fs_, cache_dir_, split, ledger));
  }
  RETURN_IF_ERROR(data::record_sums(*fs_, cache_dir_, ledger, state_.sums));
  failpoint("data_build");
  // A store that is extended has kept the tree of its rows so far: those of first_offsets.
  const Result<data::RowTree> known = data::kept_row_tree(*fs_, cache_dir_);
  RETURN_IF_ERROR(data::finish_store(*fs_, cache_dir_, ledger, threads, known.ok() ? *known : data::RowTree(),
                                     state_.first_offsets));
  failpoint("data_build");
  journal_.reset();
  RETURN_IF_ERROR(fs_->remove(Journal::path(cache_dir_)));
  return ledger;
}

namespace {

// Size of the file of the last, unfinished shard; 0 when the last shard is full.
Result<int64_t> last_shard_bytes(io::FileSystem& fs, const std::string& path, int64_t elements) {
  ASSIGN_OR_RETURN(const io::Zarr1dReader reader, io::Zarr1dReader::open(fs, path, 1));
  const io::ZarrSpec& spec = reader.spec();
  if (!spec.sharded()) return unsupported(fmt::format("{}: is not sharded; it cannot be extended", path));
  if (elements % spec.shard[0] == 0) return int64_t{0};
  ASSIGN_OR_RETURN(const io::FileInfo info,
                   fs.stat(io::join_path(path, spec.chunk_name({elements / spec.shard[0]}))));
  return info.size;
}

}  // namespace

Result<BuildState> state_of_finished(io::FileSystem& fs, const std::string& cache_dir,
                                     const data::StoreLedger& ledger) {
  BuildState state;
  state.files = ledger.files;
  state.file = static_cast<int64_t>(ledger.files.size());
  ASSIGN_OR_RETURN(const auto tables, data::ChunkTables::open(fs, cache_dir, ledger, ledger.hash()));
  ASSIGN_OR_RETURN(auto recorded, data::recorded_sums(fs, cache_dir, ledger, *tables));
  for (const data::Split split : data::kSplits) {
    const data::SplitLedger& s = ledger.split(split);
    state.bytes[index(split)] = s.bytes;
    state.first_offsets[index(split)] = s.rows;
    for (const data::ArrayPlace& place : ledger.places()) {
      const data::ArrayLedger& array = s.array(place.id);
      const data::ArraySource source = data::array_source(cache_dir, ledger, split, place);
      std::optional<std::vector<data::ChunkSum>>& sums = recorded[index(split)][index(place.id)];
      if (!sums) {
        ASSIGN_OR_RETURN(sums,
                         data::checked_sums(fs, source, place.id, array, tables->table(split, place.id)));
      }
      // Only sums of full chunks: the rest is read again when the array is opened.
      const bool has_tail = array.elements % array.chunk != 0;
      data::ArrayWriter::Position& position = state.positions[index(split)][index(place.id)];
      position.zarr.elements = array.elements;
      position.tail_crc32c = has_tail ? sums->back().crc32c : io::crc32c({});
      if (has_tail) sums->pop_back();
      state.sums[index(split)][index(place.id)] = std::move(*sums);
      ASSIGN_OR_RETURN(position.zarr.shard_bytes, last_shard_bytes(fs, source.path, array.elements));
    }
  }
  return state;
}

}  // namespace ostro::prepare
