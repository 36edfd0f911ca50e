#include "ostro/data/token_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/data/array_writer.h"
#include "ostro/data/store_check.h"
#include "ostro/io/path.h"

namespace ostro::data {
namespace {

// Decoded chunks kept per array: 2 MiB each. Data is read at random, the others near each other.
constexpr size_t kCachedDataChunks = 24, kCachedRowChunks = 4;

std::string array_folder(const std::string& cache_dir, Split split, ArrayId id) {
  return io::join_path(cache_dir, io::join_path(split_name(split), array_path(id)));
}

}  // namespace

TokenStream::TokenStream(std::shared_ptr<const StoreLedger> ledger, Split split, std::string name,
                         std::vector<VerifiedArray> arrays)
    : ledger_(std::move(ledger)), split_(split), name_(std::move(name)), arrays_(std::move(arrays)) {
  int64_t row = 0;
  for (const FileLedger& file : ledger_->files) {
    row += file.rows[static_cast<size_t>(split)];
    file_rows_.push_back(row);
  }
}

double TokenStream::tokens_per_byte() const {
  const SplitLedger& split = ledger_->split(split_);
  return split.bytes == 0 ? 0 : static_cast<double>(split.tokens) / static_cast<double>(split.bytes);
}

Status TokenStream::read(int64_t first, std::span<int32_t> out) const {
  const VerifiedArray& data = array(ArrayId::kData);
  OSTRO_CHECK(first >= 0 && first + static_cast<int64_t>(out.size()) <= tokens(), "{}: tokens [{}, {}) of {}",
              name_, first, first + static_cast<int64_t>(out.size()), tokens());
  while (!out.empty()) {
    ASSIGN_OR_RETURN(const VerifiedArray::Chunk chunk, data.chunk(first / data.chunk_elements()));
    const auto begin = static_cast<size_t>(first % data.chunk_elements());
    const size_t count = std::min(out.size(), chunk->size() - begin);
    for (size_t i = 0; i < count; ++i) {
      const int64_t id = (*chunk)[begin + i];
      if (id < 0 || id >= vocab_size())
        return corrupt(fmt::format("{}: token {} is {}, but the vocabulary has {}", name_,
                                   first + static_cast<int64_t>(i), id, vocab_size()));
      out[i] = static_cast<int32_t>(id);
    }
    out = out.subspan(count);
    first += static_cast<int64_t>(count);
  }
  return {};
}

Result<std::vector<RowSpan>> TokenStream::rows_of(int64_t first, int64_t count) const {
  OSTRO_CHECK(first >= 0 && count >= 1 && first + count <= tokens(), "{}: tokens [{}, {}) of {}", name_,
              first, first + count, tokens());
  const VerifiedArray& offsets = array(ArrayId::kOffsets);
  // Element 0 is the number of rows, element i the end of row i - 1. The ledger has the last element of every
  // chunk (a row's end, as chunks have at least two), so only the chunk that is needed is read.
  const std::vector<int64_t>& ends = offsets.ledger().last;
  int64_t number = std::upper_bound(ends.begin(), ends.end(), first) - ends.begin();
  std::vector<RowSpan> rows;
  int64_t element = -1, begin = 0;
  while (true) {
    if (number >= static_cast<int64_t>(ends.size()))
      return corrupt(fmt::format("{}: input_ids/offsets end before token {}", name_, first + count));
    ASSIGN_OR_RETURN(const VerifiedArray::Chunk chunk, offsets.chunk(number));
    const int64_t base = number * offsets.chunk_elements();
    auto at = chunk->begin() + (number == 0 ? 1 : 0);
    if (element < 0) {
      at = std::upper_bound(at, chunk->end(), first);
      element = base + (at - chunk->begin());
      if (element > 1) begin = at != chunk->begin() ? *(at - 1) : ends[static_cast<size_t>(number - 1)];
    }
    for (; at != chunk->end(); ++at, ++element) {
      if (*at > begin) rows.push_back({element - 1, begin, *at});
      begin = *at;
      if (begin >= first + count) return rows;
    }
    ++number;
  }
}

Result<RowSource> TokenStream::source(int64_t row) const {
  OSTRO_CHECK(row >= 0 && row < rows(), "{}: row {} of {}", name_, row, rows());
  const auto file = std::upper_bound(file_rows_.begin(), file_rows_.end(), row) - file_rows_.begin();
  if (file >= static_cast<int64_t>(file_rows_.size()))
    return corrupt(fmt::format("{}: row {} is of no source file in the ledger", name_, row));
  RowSource source;
  source.file = ledger_->files[static_cast<size_t>(file)].source.path;
  RETURN_IF_ERROR(array(ArrayId::kDocument).read(row, std::span(&source.document, 1)));
  RETURN_IF_ERROR(array(ArrayId::kBytes).read(row, std::span(&source.bytes, 1)));
  return source;
}

Result<std::shared_ptr<const TokenStore>> TokenStore::open(io::FileSystem& fs, const std::string& cache_dir) {
  auto read = read_ledger(fs, cache_dir);
  if (!read.ok() && read.error().code() == ErrorCode::kNotFound)
    return not_found(
        fmt::format("{}: no finished token store; run: ostro data build --config ...", cache_dir));
  if (!read.ok()) return read.error().with_context("token store; delete its folder to build it again");
  const auto store = std::shared_ptr<TokenStore>(new TokenStore());
  store->ledger_ = std::make_shared<const StoreLedger>(std::move(*read));
  for (const Split split : kSplits) {
    std::vector<VerifiedArray> arrays;
    for (const ArrayId id : kArrays) {
      ASSIGN_OR_RETURN(
          VerifiedArray array,
          VerifiedArray::open(fs, array_folder(cache_dir, split, id), store->ledger_->split(split).array(id),
                              id == ArrayId::kData ? kCachedDataChunks : kCachedRowChunks));
      arrays.push_back(std::move(array));
    }
    store->streams_.push_back(
        TokenStream(store->ledger_, split, io::join_path(cache_dir, split_name(split)), std::move(arrays)));
  }
  return std::shared_ptr<const TokenStore>(store);
}

Result<std::shared_ptr<const TokenStore>> TokenStore::open(io::FileSystem& fs, const DataOptions& options,
                                                           const tokenizer::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const Preprocessing wanted, preprocessing_of(options, tokenizer));
  ASSIGN_OR_RETURN(auto store, open(fs, options.cache_dir));
  RETURN_IF_ERROR(check_preprocessing(options.cache_dir, store->ledger().preprocessing, wanted));
  return store;
}

Status verify_store(io::FileSystem& fs, const std::string& cache_dir) {
  ASSIGN_OR_RETURN(const StoreLedger ledger, read_ledger(fs, cache_dir));
  for (const Split split : kSplits)
    for (const ArrayId id : kArrays) {
      const ArrayLedger& expected = ledger.split(split).array(id);
      const std::string path = array_folder(cache_dir, split, id);
      ASSIGN_OR_RETURN(const VerifiedArray array, VerifiedArray::open(fs, path, expected, 1));
      std::vector<ChunkSum> sums;
      for (size_t i = 0; i < expected.crc32c.size(); ++i) {
        ASSIGN_OR_RETURN(const VerifiedArray::Chunk chunk, array.chunk(static_cast<int64_t>(i)));
        sums.push_back(sum_chunk(*chunk));
      }
      const ArrayLedger actual = array_ledger(id, expected.elements, expected.chunk, sums);
      if (actual.sha256 != expected.sha256)
        return corrupt(fmt::format("damaged token store: {}: SHA-256 {}, the ledger says {}", path,
                                   actual.sha256, expected.sha256));
    }
  return {};
}

}  // namespace ostro::data
