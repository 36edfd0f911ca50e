#include "ostro/data/build.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/data/documents.h"
#include "ostro/data/encode_pipeline.h"
#include "ostro/data/journal.h"
#include "ostro/data/store_check.h"
#include "ostro/io/path.h"
#include "ostro/io/zarr_1d.h"

namespace ostro::data {
namespace {

using Writers = PerArray<std::optional<ArrayWriter>>;

std::string array_folder(const std::string& cache_dir, Split split, ArrayId id) {
  return io::join_path(cache_dir, io::join_path(split_name(split), array_path(id)));
}

// One build, from the lock to the ledger.
class Build {
 public:
  Build(io::FileSystem& fs, const std::string& cache_dir, const tokenizer::Tokenizer& tokenizer,
        const Preprocessing& preprocessing, const std::vector<SourceFile>& sources,
        const BuildSettings& settings)
      : fs_(fs),
        cache_dir_(cache_dir),
        tokenizer_(tokenizer),
        preprocessing_(preprocessing),
        sources_(sources),
        settings_(settings) {}

  Result<StoreLedger> run() {
    RETURN_IF_ERROR(begin());
    if (!state_.encoded) {
      RETURN_IF_ERROR(open_arrays());
      RETURN_IF_ERROR(encode());
    }
    return finish();
  }

 private:
  // Finds where an earlier build stopped, or starts a journal.
  Status begin() {
    auto found = Journal::read(fs_, cache_dir_);
    if (!found.ok() && found.error().code() != ErrorCode::kNotFound)
      return found.error().with_context("an unfinished token store; delete its folder to build it again");
    if (found.ok()) {
      RETURN_IF_ERROR(check_preprocessing(cache_dir_, found->preprocessing, preprocessing_));
      RETURN_IF_ERROR(check_sources(cache_dir_, found->sources, sources_));
      ASSIGN_OR_RETURN(Journal journal, Journal::reopen(fs_, cache_dir_, *found));
      journal_ = std::move(journal);
      state_ = std::move(found->state);
      resumed_ = found->has_commit;
    } else {
      const std::string foreign = io::join_path(cache_dir_, "train");
      ASSIGN_OR_RETURN(const bool exists, fs_.exists(foreign));
      if (exists)
        return invalid_argument(
            fmt::format("{}: exists, but without {}: another program's, or incomplete. Set data.cache_dir to "
                        "another folder, or delete this one",
                        foreign, ledger_path(cache_dir_)));
      ASSIGN_OR_RETURN(Journal journal, Journal::create(fs_, cache_dir_, preprocessing_, sources_));
      journal_ = std::move(journal);
    }
    for (const SourceFile& source : sources_) progress_.bytes_total += source.size;
    progress_.files_total = static_cast<int64_t>(sources_.size());
    for (const FileLedger& file : state_.files) progress_.bytes_resumed += file.source.size;
    finished_bytes_ = progress_.bytes_resumed;
    return {};
  }

  Status open_arrays() {
    for (const Split split : kSplits)
      for (const ArrayId id : kArrays) {
        const auto s = static_cast<size_t>(split), a = static_cast<size_t>(id);
        const std::string path = array_folder(cache_dir_, split, id);
        auto writer = resumed_ ? ArrayWriter::resume(fs_, path, state_.positions[s][a], state_.sums[s][a])
                               : ArrayWriter::create(fs_, path, settings_.layout);
        if (!writer.ok() && resumed_)
          return writer.error().with_context(
              "an unfinished token store; delete its folder to build it again");
        if (!writer.ok()) return writer.error();
        writers_[s][a] = std::move(*writer);
        // Element 0 is the number of rows, known at the end.
        if (!resumed_ && id == ArrayId::kOffsets)
          RETURN_IF_ERROR(writers_[s][a]->append(std::span<const int64_t>({int64_t{0}})));
      }
    return {};
  }

  Status encode() {
    const int threads = settings_.threads > 0
                            ? settings_.threads
                            : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const EncodeContext context{fs_, sources_, preprocessing_};
    EncodePipeline pipeline(context, tokenizer_, threads);
    const RowOptions row_options{.fields = {{preprocessing_.text_key}}};
    DocumentReader reader(fs_, sources_, row_options, state_.file, {.rows = state_.documents});
    const size_t window = 4 * static_cast<size_t>(threads) + 4;
    bool more = true;
    Status reading;  // an error in file n comes after those of files before it
    while (true) {
      while (more && pipeline.in_flight() < window) {
        Unit unit;
        auto next = reader.next(unit);
        if (!next.ok()) reading = next.error();
        more = next.ok() && *next;
        if (more) pipeline.submit(std::move(unit));
      }
      if (pipeline.in_flight() == 0) break;
      ASSIGN_OR_RETURN(const EncodedUnit unit, pipeline.take());
      RETURN_IF_ERROR(add(unit));
      if (uncommitted_ >= settings_.commit_bytes) RETURN_IF_ERROR(commit());
      report();
    }
    RETURN_IF_ERROR(reading);
    state_.encoded = true;
    return commit();
  }

  Status add(const EncodedUnit& unit) {
    std::array<std::array<std::vector<int64_t>, 4>, 2> rows;  // what to append to each array
    auto token = unit.tokens.begin();
    for (const EncodedUnit::Document& document : unit.documents) {
      const auto s = static_cast<size_t>(document.split);
      auto& [data, offsets, numbers, bytes] = rows[s];
      data.insert(data.end(), token, token + document.tokens);
      token += document.tokens;
      offsets.push_back(writers_[s][0]->elements() + static_cast<int64_t>(data.size()));
      numbers.push_back(document.number);
      bytes.push_back(document.bytes);
      state_.bytes[s] += document.bytes;
      state_.current.rows[s] += 1;
      state_.current.tokens[s] += document.tokens;
      state_.current.documents += 1;
      uncommitted_ += document.bytes;
      progress_.documents += 1;
      progress_.tokens += document.tokens;
    }
    for (size_t s = 0; s < 2; ++s)
      for (size_t a = 0; a < 4; ++a) RETURN_IF_ERROR(writers_[s][a]->append(rows[s][a]));
    state_.current.empty += unit.empty;
    state_.current.repaired += unit.repaired;
    state_.documents += unit.documents_read;
    if (unit.ends_file) {
      state_.current.source = sources_[static_cast<size_t>(unit.file)];
      state_.current.sha256 = unit.file_sha256;
      finished_bytes_ += state_.current.source.size;
      state_.files.push_back(std::move(state_.current));
      state_.current = {};
      state_.file = unit.file + 1;
      state_.documents = 0;
    }
    return {};
  }

  Status commit() {
    for (size_t s = 0; s < 2; ++s)
      for (size_t a = 0; a < 4; ++a) {
        ASSIGN_OR_RETURN(state_.positions[s][a], writers_[s][a]->commit());
        state_.sums[s][a] = state_.encoded ? writers_[s][a]->all_chunks() : writers_[s][a]->full_chunks();
      }
    failpoint("data_build");
    RETURN_IF_ERROR(journal_->append(state_));
    failpoint("data_build");
    uncommitted_ = 0;
    return {};
  }

  // Everything is in the arrays and the journal; all of this may be done again after a kill.
  Result<StoreLedger> finish() {
    StoreLedger ledger;
    ledger.preprocessing = preprocessing_;
    ledger.files = state_.files;
    for (const Split split : kSplits) {
      const auto s = static_cast<size_t>(split);
      SplitLedger& out = ledger.split(split);
      const auto elements = [&](ArrayId id) {
        return state_.positions[s][static_cast<size_t>(id)].elements();
      };
      out.tokens = elements(ArrayId::kData);
      out.rows = elements(ArrayId::kDocument);
      out.bytes = state_.bytes[s];
      const std::string offsets = array_folder(cache_dir_, split, ArrayId::kOffsets);
      RETURN_IF_ERROR(io::replace_element(fs_, offsets, 0, std::as_bytes(std::span(&out.rows, 1))));
      failpoint("data_build");
      for (const ArrayId id : kArrays) {
        std::vector<ChunkSum>& sums = state_.sums[s][static_cast<size_t>(id)];
        ASSIGN_OR_RETURN(const io::Zarr1dReader reader,
                         io::Zarr1dReader::open(fs_, array_folder(cache_dir_, split, id), 1));
        const int64_t chunk = reader.spec().chunk[0];
        if (id == ArrayId::kOffsets) {  // its first chunk has just changed
          std::vector<int64_t> first(static_cast<size_t>(std::min(chunk, elements(id))));
          RETURN_IF_ERROR(reader.read(0, std::span(first)));
          first[0] = 0;
          if (sum_chunk(first) != sums[0])
            return corrupt(
                fmt::format("{}: chunk 0 is damaged; delete the store to build it again", offsets));
          first[0] = out.rows;
          sums[0] = sum_chunk(first);
        }
        out.array(id) = array_ledger(id, elements(id), chunk, sums);
      }
      RETURN_IF_ERROR(write_levanter_ledger(fs_, cache_dir_, split, ledger));
    }
    failpoint("data_build");
    RETURN_IF_ERROR(write_ledger(fs_, cache_dir_, ledger));
    failpoint("data_build");
    journal_.reset();
    RETURN_IF_ERROR(fs_.remove(Journal::path(cache_dir_)));
    report();
    return ledger;
  }

  void report() {
    if (!settings_.progress) return;
    progress_.files_done = static_cast<int64_t>(state_.files.size());
    progress_.bytes_done = finished_bytes_;
    settings_.progress(progress_);
  }

  io::FileSystem& fs_;
  const std::string& cache_dir_;
  const tokenizer::Tokenizer& tokenizer_;
  const Preprocessing& preprocessing_;
  const std::vector<SourceFile>& sources_;
  const BuildSettings& settings_;

  std::optional<Journal> journal_;
  BuildState state_;
  bool resumed_ = false;  // there was a commit
  Writers writers_;
  int64_t uncommitted_ = 0;  // bytes of text
  int64_t finished_bytes_ = 0;
  BuildProgress progress_;
};

// A finished store that fits; nothing when there is none yet.
Result<std::optional<StoreLedger>> finished_store(io::FileSystem& fs, const std::string& cache_dir,
                                                  const Preprocessing& preprocessing,
                                                  const Result<std::vector<SourceFile>>& sources) {
  auto ledger = read_ledger(fs, cache_dir);
  if (!ledger.ok()) {
    if (ledger.error().code() == ErrorCode::kNotFound) return std::optional<StoreLedger>();
    return ledger.error().with_context("token store; delete its folder to build it again");
  }
  RETURN_IF_ERROR(check_preprocessing(cache_dir, ledger->preprocessing, preprocessing));
  if (!sources.ok()) {
    // A store may be carried to a machine that does not have the texts.
    if (sources.error().code() != ErrorCode::kNotFound) return sources.error();
    log_warning(fmt::format("{}; using the finished token store in {} without comparing it with its sources",
                            sources.error().message(), cache_dir));
    return std::optional<StoreLedger>(std::move(*ledger));
  }
  RETURN_IF_ERROR(check_files(fs, cache_dir, ledger->files, *sources));
  return std::optional<StoreLedger>(std::move(*ledger));
}

}  // namespace

Result<StoreLedger> build_store(io::FileSystem& fs, const DataOptions& options,
                                const tokenizer::Tokenizer& tokenizer, const BuildSettings& settings) {
  if (!options.components.empty())
    return unsupported(
        "data.components: stores of components cannot be built yet; name texts in data.train_urls");
  if (options.on_bad_row != OnBadRow::kError)
    return unsupported("data.on_bad_row: skip is not honoured yet; leave it at error");
  const std::string& cache_dir = options.cache_dir;
  ASSIGN_OR_RETURN(const Preprocessing preprocessing, preprocessing_of(options, tokenizer));
  const Result<std::vector<SourceFile>> sources = find_sources(fs, options);
  ASSIGN_OR_RETURN(std::optional<StoreLedger> finished,
                   finished_store(fs, cache_dir, preprocessing, sources));
  if (finished) return std::move(*finished);
  if (!sources.ok()) return sources.error();
  RETURN_IF_ERROR(fs.make_dirs(cache_dir));
  auto lock = fs.lock(io::join_path(cache_dir, "build.lock"),
                      fmt::format("a build of this token store, process {}", getpid()));
  if (!lock.ok()) return lock.error();
  // Another process may have finished it before the lock was ours.
  ASSIGN_OR_RETURN(finished, finished_store(fs, cache_dir, preprocessing, sources));
  if (finished) return std::move(*finished);
  return Build(fs, cache_dir, tokenizer, preprocessing, *sources, settings).run();
}

}  // namespace ostro::data
