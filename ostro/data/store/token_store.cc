#include "ostro/data/store/token_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/data/arrays/ids.h"
#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/ledger/store_check.h"
#include "ostro/data/ledger/store_damage.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/data/store/answer_ends.h"
#include "ostro/data/store/store_plan.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

// Copies ids of a chunk, from `begin` on.
void copy_kept(const ChunkElements& chunk, size_t begin, std::span<int32_t> out) {
  const size_t item = element_bytes(chunk.type);
  copy_kept_ids(chunk.type, std::span(chunk.bytes).subspan(begin * item, out.size() * item), out);
}

// Except with a full shuffle, neighbouring sequences are read at about the same time, so their chunks are
// soon needed again.
KeepChunks keep_chunks(const Shuffle& shuffle) {
  const auto* whole = std::get_if<bool>(&shuffle.value);
  return whole != nullptr && *whole ? KeepChunks::kSecondTime : KeepChunks::kAtOnce;
}

}  // namespace

TokenStream::TokenStream(std::shared_ptr<const LedgerFile> file, Split split, std::string name,
                         std::array<std::optional<VerifiedArray>, kArrayCount> arrays)
    : file_(std::move(file)),
      ledger_(&file_->head()),
      split_(split),
      name_(std::move(name)),
      arrays_(std::move(arrays)) {}

double TokenStream::tokens_per_byte() const {
  const SplitLedger& split = ledger_->split(split_);
  return split.bytes == 0 ? 0 : static_cast<double>(split.tokens) / static_cast<double>(split.bytes);
}

Status TokenStream::read(int64_t first, std::span<int32_t> out) const {
  OSTRO_CHECK(first >= 0 && first + static_cast<int64_t>(out.size()) <= tokens(), "{}: tokens [{}, {}) of {}",
              name_, first, first + static_cast<int64_t>(out.size()), tokens());
  const VerifiedArray& data = array(ArrayId::kData);
  while (!out.empty()) {
    ASSIGN_OR_RETURN(const VerifiedArray::Chunk chunk, data.chunk(first / data.chunk_elements()));
    const auto begin = static_cast<size_t>(first % data.chunk_elements());
    const size_t count = std::min(out.size(), chunk->size() - begin);
    copy_kept(*chunk, begin, out.first(count));
    out = out.subspan(count);
    first += static_cast<int64_t>(count);
  }
  return {};
}

// Targets are read from the chunk, too. Copying them from `tokens` would be slow: loads would wait for stores
// to addresses with the same offset in a page (4K aliasing).
Status TokenStream::read_pairs(int64_t first, std::span<int32_t> tokens, std::span<int32_t> targets) const {
  OSTRO_CHECK(tokens.size() == targets.size(), "{} tokens, {} targets", tokens.size(), targets.size());
  if (tokens.empty()) return {};
  const VerifiedArray& data = array(ArrayId::kData);
  const auto begin = static_cast<size_t>(first % data.chunk_elements()), count = tokens.size();
  if (begin + count >= static_cast<size_t>(data.chunk_elements())) {  // in two chunks
    RETURN_IF_ERROR(read(first, tokens));
    return read(first + 1, targets);
  }
  OSTRO_CHECK(first >= 0 && first + static_cast<int64_t>(count) < this->tokens(), "{}: tokens [{}, {}] of {}",
              name_, first, first + static_cast<int64_t>(count), this->tokens());
  ASSIGN_OR_RETURN(const VerifiedArray::Chunk chunk, data.chunk(first / data.chunk_elements()));
  copy_kept(*chunk, begin, tokens);
  copy_kept(*chunk, begin + 1, targets);
  return {};
}

Status TokenStream::read_weights(int64_t first, std::span<float> out) const {
  const auto count = static_cast<int64_t>(out.size());
  OSTRO_CHECK(first >= 0 && first + count <= tokens(), "{}: weights [{}, {}) of {}", name_, first,
              first + count, tokens());
  switch (weight_kind()) {
    case WeightKind::kNone: std::fill(out.begin(), out.end(), 1.0f); return {};
    case WeightKind::kAssistantMasks:
    case WeightKind::kLossWeights:
    case WeightKind::kPairParts: return array(ArrayId::kWeights).read(first, out);
    case WeightKind::kSourcesLen: break;
  }
  if (count == 0) return {};
  ASSIGN_OR_RETURN(const std::vector<RowSpan> rows, rows_of(first, count));
  for (const RowSpan& span : rows) {
    int64_t prompt = 0;
    RETURN_IF_ERROR(array(ArrayId::kWeights).read(span.row, std::span(&prompt, 1)));
    const int64_t begin = std::max(span.begin, first), end = std::min(span.end, first + count);
    // A stored prompt length may exceed its row, even so far that adding it overflows int64.
    const int64_t prompt_end = span.begin + std::min(prompt, span.end - span.begin);
    const int64_t loss = std::clamp(prompt_end, begin, end);
    std::fill(out.begin() + (begin - first), out.begin() + (loss - first), 0.0f);
    std::fill(out.begin() + (loss - first), out.begin() + (end - first), 1.0f);
  }
  return {};
}

Result<std::vector<int64_t>> TokenStream::row_ends(int64_t row, int64_t count) const {
  OSTRO_CHECK(row >= 0 && count >= 0 && row + count <= rows(), "{}: rows [{}, {}) of {}", name_, row,
              row + count, rows());
  std::vector<int64_t> ends(static_cast<size_t>(count) + 1);
  if (rows() > 0) RETURN_IF_ERROR(array(ArrayId::kOffsets).read(row, std::span(ends)));
  if (row == 0) ends[0] = 0;  // where the number of rows is
  return ends;
}

Result<std::vector<RowSpan>> TokenStream::rows_of(int64_t first, int64_t count) const {
  OSTRO_CHECK(first >= 0 && count >= 1 && first + count <= tokens(), "{}: tokens [{}, {}) of {}", name_,
              first, first + count, tokens());
  const VerifiedArray& offsets = array(ArrayId::kOffsets);
  // Element 0 is the number of rows, element i the end of row i - 1. The chunk table holds the last element
  // of every chunk, which is a row end because chunks have at least two elements. So only the chunk that is
  // needed is read.
  const ChunkTable& ends = offsets.table();
  ASSIGN_OR_RETURN(int64_t number, ends.first_above(first));
  std::vector<RowSpan> rows;
  int64_t element = -1, begin = 0;
  while (true) {
    if (number >= ends.chunks())
      return corrupt(fmt::format("{}: input_ids/offsets end before token {}", name_, first + count));
    ASSIGN_OR_RETURN(const VerifiedArray::Chunk held, offsets.chunk(number));
    const std::span<const int64_t> chunk = held->int64s();
    const int64_t base = number * offsets.chunk_elements();
    auto at = chunk.begin() + (number == 0 ? 1 : 0);
    if (element < 0) {
      at = std::upper_bound(at, chunk.end(), first);
      element = base + (at - chunk.begin());
      if (element > 1 && at != chunk.begin()) {
        begin = *(at - 1);
      } else if (element > 1) {
        ASSIGN_OR_RETURN(begin, ends.last(number - 1));
      }
    }
    for (; at != chunk.end(); ++at, ++element) {
      if (*at > begin) rows.push_back({element - 1, begin, *at});
      begin = *at;
      if (begin >= first + count) return rows;
    }
    ++number;
  }
}

RowSource TokenStream::row_in_cache(int64_t row) const {
  for (const StorePart& part : ledger_->parts) {
    const int64_t rows = part.rows[static_cast<size_t>(split_)];
    if (row < rows) return {.file = part_folder("", *ledger_, part), .document = row + 1};
    row -= rows;
  }
  return {.file = name_, .document = row + 1};
}

Result<RowSource> TokenStream::source(int64_t row) const {
  OSTRO_CHECK(row >= 0 && row < rows(), "{}: row {} of {}", name_, row, rows());
  if (!has_sources()) return row_in_cache(row);
  ASSIGN_OR_RETURN(const LedgerFile::Files* files, file_->files());
  const std::vector<int64_t>& ends = files->row_ends[static_cast<size_t>(split_)];
  const auto file = std::upper_bound(ends.begin(), ends.end(), row) - ends.begin();
  if (file >= static_cast<int64_t>(ends.size()))
    return corrupt(fmt::format("{}: row {} is of no source file in the ledger", name_, row));
  RowSource source;
  source.ledger = &files->list[static_cast<size_t>(file)];
  source.file = source.ledger->source.path;
  RETURN_IF_ERROR(array(ArrayId::kDocument).read(row, std::span(&source.document, 1)));
  RETURN_IF_ERROR(array(ArrayId::kBytes).read(row, std::span(&source.bytes, 1)));
  if (has(ArrayId::kBegin)) {
    RETURN_IF_ERROR(array(ArrayId::kBegin).read(row, std::span(&source.begin, 1)));
    RETURN_IF_ERROR(array(ArrayId::kEnd).read(row, std::span(&source.end, 1)));
  } else if (source.ledger->source.format == FileFormat::kText) {
    source.end = source.ledger->source.size;
  }
  return source;
}

Result<Sha256Digest> TokenStream::row_hash(int64_t row) const {
  OSTRO_CHECK(row >= 0 && row < rows(), "{}: row {} of {}", name_, row, rows());
  Sha256Digest digest{};
  if (has(ArrayId::kRowHash)) {
    RETURN_IF_ERROR(array(ArrayId::kRowHash).read(row * 32, std::span<uint8_t>(digest)));
    return digest;
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, row_ends(row, 1));
  std::vector<int32_t> ids(static_cast<size_t>(ends[1] - ends[0]));
  std::vector<float> weights(ids.size());
  RETURN_IF_ERROR(read(ends[0], ids));
  RETURN_IF_ERROR(read_weights(ends[0], weights));
  return hash_row(std::vector<uint32_t>(ids.begin(), ids.end()), weights);
}

std::shared_ptr<ChunkCache> make_chunk_cache(const DataOptions& options) {
  return std::make_shared<ChunkCache>(static_cast<size_t>(options.chunk_cache_mib) << 20);
}

Result<std::shared_ptr<const TokenStore>> TokenStore::open(io::FileSystem& fs, const std::string& cache_dir,
                                                           std::shared_ptr<ChunkCache> cache,
                                                           KeepChunks keep) {
  if (cache == nullptr) cache = make_chunk_cache(DataOptions{});
  auto read = LedgerFile::open(fs, cache_dir);
  if (!read.ok() && read.error().code() == ErrorCode::kNotFound)
    return not_found(
        fmt::format("{}: no finished token store; run: ostro data build --config ...", cache_dir));
  if (!read.ok()) return record_error({.folder = cache_dir}, "ledger.json", read.error());
  const auto store = std::shared_ptr<TokenStore>(new TokenStore());
  const std::shared_ptr<LedgerFile> file = std::move(*read);
  store->file_ = file;
  const StoreLedger& ledger = file->head();
  RETURN_IF_ERROR(check_parts(fs, cache_dir, ledger));
  ASSIGN_OR_RETURN(const auto tables, ChunkTables::open(fs, cache_dir, ledger, file->hash()));
  store->digests_ = std::make_shared<const StoreDigests>(fs, cache_dir, ledger, tables);
  const std::string& foreign = ledger.levanter_cache;
  const std::string& folder = foreign.empty() ? cache_dir : foreign;
  for (const Split split : kSplits) {
    std::array<std::optional<VerifiedArray>, kArrayCount> arrays;
    for (const ArrayPlace& place : ledger.places()) {
      const ArrayLedger& array_ledger = ledger.split(split).array(place.id);
      if (array_ledger.elements == 0 && !foreign.empty()) continue;  // absent
      const bool ids = place.id == ArrayId::kData;
      const ChunkTable table = tables->table(split, place.id);
      ASSIGN_OR_RETURN(
          VerifiedArray array,
          VerifiedArray::open(
              fs, array_source(cache_dir, ledger, split, place), array_ledger, table, cache,
              {.sparse = !foreign.empty(),
               .vocab_size = ids ? ledger.preprocessing.vocab_size : int64_t{0},
               .keep = keep,
               .digests = std::make_shared<ChunkDigests>(store->digests_, split, place.id, table.chunks())}));
      arrays[static_cast<size_t>(place.id)].emplace(std::move(array));
    }
    store->streams_.push_back(
        TokenStream(store->file_, split, io::join_path(folder, split_name(split)), std::move(arrays)));
  }
  return std::shared_ptr<const TokenStore>(store);
}

Result<std::shared_ptr<const TokenStore>> TokenStore::open(io::FileSystem& fs, const DataOptions& options,
                                                           const Component& component,
                                                           const tokenizer::Tokenizer& tokenizer,
                                                           std::shared_ptr<ChunkCache> cache) {
  if (cache == nullptr) cache = make_chunk_cache(options);
  ASSIGN_OR_RETURN(const StoreFolder folder, store_folder(fs, options, component));
  // Where the file of verdicts is gone, the store itself says which rows it lacks; build_store has compared.
  Component known = component;
  if (known.rows) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(*known.rows));
    if (!there) known.rows.reset();
  }
  ASSIGN_OR_RETURN(Preprocessing wanted, preprocessing_of(fs, options, known, tokenizer));
  ASSIGN_OR_RETURN(auto store, open(fs, folder.ledger, std::move(cache), keep_chunks(options.shuffle)));
  const Preprocessing& has = store->ledger().preprocessing;
  if (component.rows && !known.rows) wanted.left_out = has.left_out;
  RETURN_IF_ERROR(component.is_in_place()
                      ? check_preprocessing_in_place(folder.ledger, has, wanted, !options.enforce_bos)
                      : check_finished_preprocessing(folder.ledger, has, wanted, !options.enforce_bos));
  if (store->ledger().levanter_cache.empty() && lacks_beginning(has, wanted))
    log_warning(fmt::format(
        "{}: its texts have no beginning token, which {} puts in front of each (token {}): the store was "
        "made before Ostro did so, and is used as it is. Delete it to build it with that token, or set "
        "data.enforce_bos: false to say that there is none",
        folder.ledger, options.tokenizer_path(), wanted.before[0]));
  // What cannot be read is an error where it is needed.
  const auto no_end = no_end_text(*store, tokenizer);
  if (no_end.ok() && !no_end->empty()) log_warning(fmt::format("{}: {}", component.key, *no_end));
  return store;
}

}  // namespace ostro::data
