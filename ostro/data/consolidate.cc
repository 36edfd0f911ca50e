#include "ostro/data/consolidate.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/data/store_check.h"
#include "ostro/data/store_plan.h"
#include "ostro/data/store_writer.h"
#include "ostro/data/token_store.h"
#include "ostro/data/write_store.h"
#include "ostro/io/path.h"

namespace ostro::data {
namespace {

// A file's rows in the store of a part.
struct PartFile {
  std::shared_ptr<const TokenStore> store;
  FileLedger ledger;
  std::array<int64_t, 2> first_row{};  // by Split
};

// The rows of files of finished stores, as units: of a file the training rows, then the held-out ones. Their
// order between splits is of no consequence.
class StoreRows final : public UnitSource {
 public:
  // Begins at file `file`, behind its first `rows` rows.
  StoreRows(const std::vector<PartFile>& files, int64_t file, int64_t rows)
      : files_(files), file_(file), row_(rows) {}

  Result<bool> next(EncodedUnit& unit) override {
    if (file_ >= static_cast<int64_t>(files_.size())) return false;
    const PartFile& file = files_[static_cast<size_t>(file_)];
    unit = EncodedUnit{.file = file_};
    const int64_t train = file.ledger.rows[0], all = train + file.ledger.rows[1];
    for (int64_t tokens = 0; row_ < all && tokens < kUnitTokens; ++row_, ++unit.documents_read) {
      const Split split = row_ < train ? Split::kTrain : Split::kValidation;
      const int64_t row =
          file.first_row[static_cast<size_t>(split)] + (split == Split::kTrain ? row_ : row_ - train);
      RETURN_IF_ERROR(copy(*file.store, split, row, unit));
      tokens = static_cast<int64_t>(unit.tokens.size());
    }
    if (row_ < all) return true;
    unit.ends_file = true;
    unit.file_sha256 = file.ledger.sha256;
    unit.empty = file.ledger.empty;
    unit.repaired = file.ledger.repaired;
    unit.no_loss = file.ledger.no_loss;
    unit.skipped = file.ledger.skipped;
    ++file_;
    row_ = 0;
    return true;
  }

 private:
  static constexpr int64_t kUnitTokens = 1 << 16;

  Status copy(const TokenStore& store, Split split, int64_t row, EncodedUnit& unit) {
    const TokenStream& stream = store.split(split);
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, 1));
    ASSIGN_OR_RETURN(const RowSource source, stream.source(row));
    EncodedUnit::Document document{.number = source.document,
                                   .split = split,
                                   .bytes = source.bytes,
                                   .tokens = ends[1] - ends[0],
                                   .begin = source.begin,
                                   .end = source.end};
    ids_.resize(static_cast<size_t>(document.tokens));
    RETURN_IF_ERROR(stream.read(ends[0], ids_));
    unit.tokens.insert(unit.tokens.end(), ids_.begin(), ids_.end());
    if (stream.weight_kind() != WeightKind::kNone) {
      const size_t before = unit.weights.size();
      unit.weights.resize(before + ids_.size());
      RETURN_IF_ERROR(stream.read_weights(ends[0], std::span(unit.weights).subspan(before)));
    }
    if (store.ledger().preprocessing.row_arrays() == RowArrays::kAll) {
      ASSIGN_OR_RETURN(document.hash, stream.row_hash(row));
    }
    unit.documents.push_back(document);
    return {};
  }

  const std::vector<PartFile>& files_;
  int64_t file_, row_;
  std::vector<int32_t> ids_;
};

Result<std::vector<PartFile>> files_of_parts(io::FileSystem& fs, const std::vector<std::string>& parts,
                                             const Preprocessing& wanted) {
  std::vector<PartFile> files;
  // Rows are read once, in order: one small cache for all parts.
  const auto cache = std::make_shared<ChunkCache>(size_t{64} << 20);
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(const auto store, TokenStore::open(fs, part, cache));
    if (!store->ledger().levanter_cache.empty())
      return unsupported(
          fmt::format("{}: a Levanter cache cannot be a part; build the part from its texts", part));
    RETURN_IF_ERROR(check_preprocessing(part, store->ledger().preprocessing, wanted));
    PartFile file{.store = store, .ledger = {}};
    ASSIGN_OR_RETURN(const std::vector<FileLedger>* ledgers, store->files());
    for (const FileLedger& ledger : *ledgers) {
      file.ledger = ledger;
      files.push_back(file);
      for (size_t s = 0; s < 2; ++s) file.first_row[s] += ledger.rows[s];
    }
  }
  std::stable_sort(files.begin(), files.end(), [](const PartFile& a, const PartFile& b) {
    return a.ledger.source.list < b.ledger.source.list;
  });
  return files;
}

// That the parts hold the files that the configuration names, no more and no fewer, in its order.
Status check_parts(io::FileSystem& fs, const std::vector<FileLedger>& files,
                   const Result<std::vector<SourceFile>>& sources) {
  if (!sources.ok()) {
    if (sources.error().code() != ErrorCode::kNotFound) return sources.error();
    log_warning(fmt::format("{}; joining the parts without comparing them with the texts",
                            sources.error().message()));
    return {};
  }
  auto lacking = new_files(fs, "the parts", files, *sources);
  if (!lacking.ok()) return lacking.error().with_context("parts in another order, or of other texts");
  if (!lacking->empty())
    return invalid_argument(fmt::format(
        "the parts lack {} files that the configuration names (the first: {}); build a part of them",
        lacking->size(), (*lacking)[0].path));
  return {};
}

}  // namespace

Result<StoreLedger> consolidate_stores(io::FileSystem& fs, const std::vector<std::string>& parts,
                                       const std::string& cache_dir, const Preprocessing& wanted,
                                       const Result<std::vector<SourceFile>>& sources, ElementType ids,
                                       const BuildSettings& settings) {
  for (const std::string& part : parts)
    if (io::clean_path(part) == io::clean_path(cache_dir))
      return invalid_argument(fmt::format("{}: is where the parts are to be joined, and one of them", part));
  ASSIGN_OR_RETURN(const std::vector<PartFile> files, files_of_parts(fs, parts, wanted));
  std::vector<FileLedger> ledgers;
  Journal::Header header{.preprocessing = wanted, .sources = {}, .from_stores = true};
  for (const PartFile& file : files) {
    ledgers.push_back(file.ledger);
    header.sources.push_back(file.ledger.source);
  }
  RETURN_IF_ERROR(check_parts(fs, ledgers, sources));
  RETURN_IF_ERROR(fs.make_dirs(cache_dir));
  auto lock = fs.lock(io::join_path(cache_dir, "build.lock"),
                      fmt::format("a consolidation of token stores, process {}", getpid()));
  if (!lock.ok()) return lock.error();

  auto finished = read_ledger(fs, cache_dir);
  if (finished.ok()) {
    RETURN_IF_ERROR(check_preprocessing(cache_dir, finished->preprocessing, wanted));
    if (finished->files != ledgers)
      return invalid_argument(fmt::format(
          "{}: holds a finished store of other files than the parts; name another folder, or delete it",
          cache_dir));
    return finished;
  }
  if (finished.error().code() != ErrorCode::kNotFound) return finished.error();
  auto found = Journal::read(fs, cache_dir);
  if (!found.ok() && found.error().code() != ErrorCode::kNotFound) return found.error();
  if (found.ok()) {
    if (!found->header.from_stores || !(found->header.preprocessing == wanted) ||
        found->header.sources != header.sources)
      return invalid_argument(fmt::format(
          "{}: holds an unfinished store of something else; name another folder, or delete it", cache_dir));
  } else {
    ASSIGN_OR_RETURN(const bool exists, fs.exists(io::join_path(cache_dir, "train")));
    if (exists)
      return invalid_argument(
          fmt::format("{}: holds a store that is not ours, or incomplete; name another "
                      "folder, or delete it",
                      cache_dir));
  }
  ASSIGN_OR_RETURN(StoreWriter writer,
                   found.ok() && found->has_commit
                       ? StoreWriter::resume(fs, cache_dir, std::move(*found))
                       : StoreWriter::create(fs, cache_dir, std::move(header), settings.layout, ids));
  if (writer.state().encoded) return writer.finish();
  StoreRows rows(files, writer.state().file, writer.state().documents);
  return write_store(writer, rows, settings);
}

Result<StoreLedger> consolidate_stores(io::FileSystem& fs, const DataOptions& options,
                                       const Component& component, const tokenizer::Tokenizer& tokenizer,
                                       const std::vector<std::string>& parts, const BuildSettings& settings) {
  ASSIGN_OR_RETURN(const StorePlan plan, plan_store(fs, options, component, tokenizer));
  if (plan.is_in_place)
    return invalid_argument(
        fmt::format("{}: names no texts; list those of all parts, which say what the whole is", plan.key));
  for (const std::string& part : parts) {
    const auto ledger = read_ledger(fs, part);  // one that cannot be read is told of when it is opened
    if (ledger.ok()) RETURN_IF_ERROR(check_skipped(part, ledger->files, plan.skip_bad_rows));
  }
  return consolidate_stores(fs, parts, plan.folder.ledger, plan.preprocessing, plan.sources, plan.ids,
                            settings);
}

}  // namespace ostro::data
