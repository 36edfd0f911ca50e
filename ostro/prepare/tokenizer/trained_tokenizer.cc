#include "ostro/prepare/tokenizer/trained_tokenizer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/data/ledger/ledger_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"
#include "ostro/io/hub/hub_names.h"
#include "ostro/prepare/store/documents.h"
#include "ostro/prepare/tokenizer/tokenizer_record.h"
#include "ostro/prepare/tokenizer/training_texts.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::prepare {
namespace {

using tokenizer::Tokenizer;
using FileHashes = std::vector<std::vector<std::string>>;  // of every file, by component

std::string what_to_do(const data::DataOptions& options) {
  return fmt::format("give data.cache_dir another folder, or delete {} and the stores made with it",
                     options.tokenizer_path());
}

TokenizerRecord record_of(const data::DataOptions& options, const std::vector<TrainingFiles>& components,
                          const FileHashes& sha256) {
  TokenizerRecord record{.tokenizer = {},
                         .vocab_size = options.vocab_size.value_or(data::kDefaultVocabSize),
                         .on_bad_row = options.on_bad_row,
                         .components = {}};
  for (size_t c = 0; c < components.size(); ++c) {
    record.components.push_back({components[c].text_key, components[c].held_out_fraction, {}});
    for (size_t i = 0; i < components[c].files.size(); ++i) {
      const data::SourceFile& file = components[c].files[i];
      record.components.back().files.push_back({file.path, file.size, file.mtime_ns, sha256[c][i]});
    }
  }
  return record;
}

// Files whose path, size and time are as recorded are not read again.
Result<FileHashes> hashes_of(io::FileSystem& fs, const std::vector<TrainingFiles>& components,
                             const TokenizerRecord& record) {
  std::map<std::string, const TokenizerRecord::File*> known;
  for (const auto& component : record.components)
    for (const auto& file : component.files) known[file.path] = &file;
  FileHashes out;
  for (const TrainingFiles& component : components) {
    out.emplace_back();
    for (const data::SourceFile& file : component.files) {
      const auto found = known.find(file.path);
      const bool same = found != known.end() && found->second->size == file.size &&
                        found->second->mtime_ns == file.mtime_ns;
      std::string hash = same ? found->second->sha256 : "";
      if (!same) {
        ASSIGN_OR_RETURN(hash, io::file_sha256(fs, file.path));
      }
      out.back().push_back(std::move(hash));
    }
  }
  return out;
}

// The files of a trained tokenizer that exist.
struct Trained {
  std::optional<Tokenizer> tokenizer;
  std::optional<TokenizerRecord> record;
  bool is_whole() const { return tokenizer && record; }
};

Result<Trained> read_trained(io::FileSystem& fs, const data::DataOptions& options) {
  Trained out;
  const std::string path = options.tokenizer_path();
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return out;
  auto loaded = tokenizer::load_tokenizer(fs, path);
  if (!loaded.ok())
    return loaded.error().with_context(fmt::format(
        "data.tokenizer is null, and the trained one cannot be read: delete it to train it again"));
  out.tokenizer = std::move(*loaded);
  out.record = read_tokenizer_record(fs, options.cache_dir);
  if (!out.record) return out;
  if (const std::string hash = out.tokenizer->hash(); hash != out.record->tokenizer)
    return invalid_argument(fmt::format(
        "{}: is not the tokenizer that was trained there (hash {:.12}, {} says {:.12}); name it in "
        "data.tokenizer, or delete it to train again",
        path, hash, kTokenizerRecordFile, out.record->tokenizer));
  const int64_t wanted = options.vocab_size.value_or(data::kDefaultVocabSize);
  if (out.record->vocab_size != wanted)
    return invalid_argument(fmt::format("{}: was trained with data.vocab_size {}, and {} is wanted; {}", path,
                                        out.record->vocab_size, wanted, what_to_do(options)));
  return out;
}

// True if every store of the configuration is finished, and made with this tokenizer. Such a store is what
// its texts and the tokenizer are compared with; it may also have been extended since.
bool stores_are_finished(io::FileSystem& fs, const data::DataOptions& options, const std::string& tokenizer) {
  const std::vector<data::Component> components = data::components_of(options);
  return std::all_of(components.begin(), components.end(), [&](const data::Component& c) {
    const auto ledger = data::LedgerFile::open(fs, c.cache_dir);
    return ledger.ok() && (*ledger)->head().preprocessing.tokenizer == tokenizer;
  });
}

// Checks that the trained tokenizer is the one that its texts and options would give now.
Status check_texts(io::FileSystem& fs, const data::DataOptions& options, const Trained& there) {
  if (stores_are_finished(fs, options, there.record->tokenizer)) return {};
  ASSIGN_OR_RETURN(const auto components, training_files(fs, options));
  ASSIGN_OR_RETURN(const FileHashes sha256, hashes_of(fs, components, *there.record));
  const std::string other = difference(*there.record, record_of(options, components, sha256));
  if (other.empty()) return {};
  return invalid_argument(
      fmt::format("{}: was trained from {}; {}", options.tokenizer_path(), other, what_to_do(options)));
}

// Trains the tokenizer and writes it with its record; the caller holds the lock. `unrecorded` is a tokenizer
// that was found without a record.
Result<Tokenizer> train_locked(io::FileSystem& fs, const data::DataOptions& options,
                               const data::BuildSettings& settings,
                               const std::optional<Tokenizer>& unrecorded) {
  const std::string path = options.tokenizer_path();
  ASSIGN_OR_RETURN(const auto components, training_files(fs, options));
  size_t files = 0;
  for (const TrainingFiles& c : components) files += c.files.size();
  tokenizer::TrainOptions how;
  how.vocab_size = static_cast<uint32_t>(options.vocab_size.value_or(data::kDefaultVocabSize));
  how.threads = settings.threads_or_all();
  log_info(
      fmt::format("no tokenizer is named: training one of {} tokens from {} files", how.vocab_size, files));
  TrainingTextsRead read;
  if (settings.tokenizer_progress)
    how.progress = [&](tokenizer::TrainProgress p) {
      if (p.stage == tokenizer::TrainProgress::Stage::kCounting) {
        p.done = static_cast<uint64_t>(read.bytes_done);
        p.total = static_cast<uint64_t>(read.bytes_total);
      }
      settings.tokenizer_progress(p);
    };
  ASSIGN_OR_RETURN(
      Tokenizer trained,
      tokenizer::train(training_texts(fs, components, options.on_bad_row == data::OnBadRow::kSkip, read),
                       how));
  if (settings.tokenizer_progress)  // it may have run out of pairs before
    settings.tokenizer_progress(
        {tokenizer::TrainProgress::Stage::kMerging, trained.vocab_size(), trained.vocab_size()});
  if (unrecorded && unrecorded->hash() != trained.hash())
    return invalid_argument(
        fmt::format("{}: exists, but is not the tokenizer that these texts and options give; name it in "
                    "data.tokenizer, or delete it",
                    path));
  failpoint("tokenizer");
  // The record of a tokenizer that was deleted is not one of the new tokenizer, should the process end
  // between the two.
  const std::string old_record = io::join_path(options.cache_dir, kTokenizerRecordFile);
  ASSIGN_OR_RETURN(const bool has_old_record, fs.exists(old_record));
  if (has_old_record) {
    RETURN_IF_ERROR(fs.remove(old_record));
    RETURN_IF_ERROR(fs.sync_dir(options.cache_dir));
  }
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, trained, path));
  failpoint("tokenizer");
  TokenizerRecord record = record_of(options, components, read.sha256);
  record.tokenizer = trained.hash();
  RETURN_IF_ERROR(write_tokenizer_record(fs, options.cache_dir, record));
  log_info(fmt::format("{}: {} tokens{}, trained from {} documents, {} bytes of text", path,
                       trained.vocab_size(),
                       trained.vocab_size() < how.vocab_size ? " (the texts have no more pairs)" : "",
                       read.documents, read.text_bytes));
  return trained;
}

// The tokenizer that data.tokenizer names.
Result<Tokenizer> load_named(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const bool is_there, fs.exists(path));
  if (!is_there) RETURN_IF_ERROR(io::local_or_hub(path, io::HubFiles::kTokenizer, "data.tokenizer"));
  return tokenizer::load_tokenizer(fs, path);
}

}  // namespace

Result<Tokenizer> open_tokenizer(io::FileSystem& fs, const data::DataOptions& options) {
  if (options.tokenizer) return load_named(fs, *options.tokenizer);
  ASSIGN_OR_RETURN(Trained there, read_trained(fs, options));
  if (there.is_whole()) return std::move(*there.tokenizer);
  return not_found(fmt::format(
      "data.tokenizer is null, and {} has not been trained yet; ostro data build does it, or ostro train",
      options.tokenizer_path()));
}

// A tokenizer counts as trained when both the file and its record exist. Training writes the tokenizer first
// and the record last, so a kill between them leads to a second training, which must give the same tokenizer.
Result<Tokenizer> make_tokenizer(io::FileSystem& fs, const data::DataOptions& options,
                                 const data::BuildSettings& settings) {
  if (options.tokenizer) return load_named(fs, *options.tokenizer);
  ASSIGN_OR_RETURN(Trained there, read_trained(fs, options));
  if (!there.is_whole()) {
    RETURN_IF_ERROR(io::only_local(fs, options.cache_dir, "token stores"));
    RETURN_IF_ERROR(fs.make_dirs(options.cache_dir));
    auto lock = fs.lock(io::join_path(options.cache_dir, "tokenizer.lock"),
                        fmt::format("a training of this tokenizer, process {}", getpid()));
    if (!lock.ok()) return lock.error();
    // Another process may have finished it before the lock was ours.
    ASSIGN_OR_RETURN(there, read_trained(fs, options));
    if (!there.is_whole()) return train_locked(fs, options, settings, there.tokenizer);
  }
  RETURN_IF_ERROR(check_texts(fs, options, there));
  return std::move(*there.tokenizer);
}

}  // namespace ostro::prepare
