#include "ostro/prepare/store/build.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "ostro/base/log.h"
#include "ostro/data/ledger/source_hashes.h"
#include "ostro/data/ledger/store_check.h"
#include "ostro/data/ledger/store_damage.h"
#include "ostro/data/levanter/levanter_cache.h"
#include "ostro/data/store/store_plan.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"
#include "ostro/prepare/store/documents.h"
#include "ostro/prepare/store/encode_pipeline.h"
#include "ostro/prepare/store/store_writer.h"
#include "ostro/prepare/store/write_store.h"
#include "ostro/tokenizer/model/byte_alphabet.h"

namespace ostro::prepare {
namespace {

size_t count_training_files(const std::vector<data::FileLedger>& files) {
  return static_cast<size_t>(std::count_if(files.begin(), files.end(), [](const data::FileLedger& file) {
    return file.source.list == data::Split::kTrain;
  }));
}

// The state of a store on disk.
struct StoreOnDisk {
  std::optional<data::StoreLedger> finished;
  std::vector<data::SourceFile> lacks;  // files by which a finished store is to be extended
  bool is_done() const { return finished && lacks.empty(); }
};

// What a finished store must have been made with. Files that it lacks, which are compared apart, have no part
// in it. Where the file of verdicts is on another machine, as the texts are, the store says what it leaves
// out.
Result<data::Preprocessing> wanted_of(const data::StorePlan& plan, const data::StoreLedger& store) {
  data::Preprocessing wanted = plan.preprocessing;
  if (plan.no_verdicts) {
    if (plan.sources.ok() || plan.has_texts) return *plan.no_verdicts;
    log_warning(fmt::format("{}; the store in {} says itself which rows it lacks",
                            plan.no_verdicts->message(), plan.folder.ledger));
    wanted.left_out = store.preprocessing.left_out;
  } else if (plan.sources.ok() && plan.verdicts != nullptr) {
    wanted.left_out = plan.verdicts->left_out(0, count_training_files(store.files));
  }
  return wanted;
}

Result<StoreOnDisk> look_at_store(io::FileSystem& fs, const data::StorePlan& plan, bool append) {
  const std::string& cache_dir = plan.folder.ledger;
  StoreOnDisk out;
  auto ledger = data::read_ledger(fs, cache_dir);
  if (!ledger.ok()) {
    if (ledger.error().code() == ErrorCode::kNotFound) return out;
    return data::record_error({.folder = cache_dir}, "ledger.json", ledger.error());
  }
  ASSIGN_OR_RETURN(const data::Preprocessing wanted, wanted_of(plan, *ledger));
  RETURN_IF_ERROR(
      plan.is_in_place
          ? data::check_preprocessing_in_place(cache_dir, ledger->preprocessing, wanted, plan.any_beginning)
          : data::check_finished_preprocessing(cache_dir, ledger->preprocessing, wanted, plan.any_beginning));
  if (const Status whole = data::check_skipped(cache_dir, ledger->files, plan.skip_bad_rows); !whole.ok()) {
    if (!plan.is_in_place) return whole.error();
    log_warning(whole.error().message());
  }
  if (plan.is_in_place) {
    // The component names no texts, so there is nothing to compare the store with.
  } else if (plan.sources.ok()) {
    data::SourceHashes hashes(fs, cache_dir);
    if (append) {
      ASSIGN_OR_RETURN(out.lacks, data::new_files(hashes, cache_dir, ledger->files, *plan.sources));
    } else {
      RETURN_IF_ERROR(data::check_files(hashes, cache_dir, ledger->files, *plan.sources));
    }
    hashes.keep();
  } else {
    // A store may be copied to a machine that has none of the texts. But if some texts are here, the others
    // are probably lost, and those that are here may have changed.
    if (plan.sources.error().code() != ErrorCode::kNotFound || plan.has_texts)
      return plan.sources.error().with_context(
          fmt::format("{}: the finished token store there cannot be compared with its texts", cache_dir));
    log_warning(fmt::format("{}; using the finished token store in {} without comparing it with its sources",
                            plan.sources.error().message(), cache_dir));
  }
  out.finished = std::move(*ledger);
  return out;
}

// The files of the store, then the new ones.
std::vector<data::SourceFile> extended(const std::vector<data::FileLedger>& files,
                                       const std::vector<data::SourceFile>& lacks) {
  std::vector<data::SourceFile> sources;
  for (const data::FileLedger& file : files) sources.push_back(file.source);
  sources.insert(sources.end(), lacks.begin(), lacks.end());
  return sources;
}

Result<StoreWriter> extend(io::FileSystem& fs, const data::StorePlan& plan,
                           const std::vector<data::FileLedger>& files,
                           const std::vector<data::SourceFile>& lacks, const BuildState& base,
                           const data::BuildSettings& settings) {
  return StoreWriter::create(fs, plan.folder.ledger,
                             {.preprocessing = plan.preprocessing, .sources = extended(files, lacks)},
                             settings.layout, plan.ids, &base);
}

// Counts what an unfinished store holds, of finished files and of the file in progress.
std::vector<data::FileLedger> files_so_far(const Journal::Found& found) {
  std::vector<data::FileLedger> files = found.state.files;
  const auto next = static_cast<size_t>(found.state.file);
  if (next >= found.header.sources.size()) return files;
  files.push_back(found.state.current);
  files.back().source = found.header.sources[next];
  return files;
}

// Continues an unfinished build, begins a new one, or begins to extend a finished store.
Result<StoreWriter> open_writer(io::FileSystem& fs, const data::StorePlan& plan, const StoreOnDisk& there,
                                const data::BuildSettings& settings) {
  const std::string& cache_dir = plan.folder.ledger;
  if (there.finished) {
    // What is added must be made as the rest is.
    ASSIGN_OR_RETURN(const data::Preprocessing wanted, wanted_of(plan, *there.finished));
    RETURN_IF_ERROR(data::check_preprocessing(cache_dir, there.finished->preprocessing, wanted));
    if (!there.finished->parts.empty())
      return unsupported(fmt::format(
          "{}: its rows are in the stores that it was joined of, and cannot be added to; build the "
          "new files as a store of their own, and join both: ostro data consolidate --in_place",
          cache_dir));
    ASSIGN_OR_RETURN(const BuildState base, state_of_finished(fs, cache_dir, *there.finished));
    return extend(fs, plan, there.finished->files, there.lacks, base, settings);
  }
  auto found = Journal::read(fs, cache_dir);
  if (!found.ok() && found.error().code() != ErrorCode::kNotFound)
    return data::unfinished_error(cache_dir, found.error());
  if (!found.ok()) {
    const std::string foreign = io::join_path(cache_dir, "train");
    ASSIGN_OR_RETURN(const bool exists, fs.exists(foreign));
    if (exists)
      return invalid_argument(
          fmt::format("{}: exists, but without {}: another program's, or incomplete. Set data.cache_dir to "
                      "another folder, or delete this one",
                      foreign, data::ledger_path(cache_dir)));
    return StoreWriter::create(fs, cache_dir, {.preprocessing = plan.preprocessing, .sources = *plan.sources},
                               settings.layout, plan.ids);
  }
  RETURN_IF_ERROR(data::check_preprocessing(cache_dir, found->header.preprocessing, plan.preprocessing));
  if (found->header.from_stores)
    return invalid_argument(
        fmt::format("{}: holds a store that `ostro data consolidate` has not finished; run that again, or "
                    "delete its folder to build it again",
                    cache_dir));
  std::vector<data::SourceFile> wanted = *plan.sources;
  if (!found->base && !found->state.encoded) {
    // A row was mended, perhaps: beside other texts, what there is of the store is of no use.
    const std::string changed = data::changed_sources(found->header.sources, wanted);
    if (!changed.empty()) {
      log_warning(
          fmt::format("{}: the token store there was not finished and is built from the beginning: {}",
                      cache_dir, changed));
      return StoreWriter::create(fs, cache_dir,
                                 {.preprocessing = plan.preprocessing, .sources = std::move(wanted)},
                                 settings.layout, plan.ids);
    }
  }
  RETURN_IF_ERROR(data::check_skipped(cache_dir, files_so_far(*found), plan.skip_bad_rows));
  if (found->base) {
    data::SourceHashes hashes(fs, cache_dir);
    ASSIGN_OR_RETURN(const auto lacks, data::new_files(hashes, cache_dir, found->base->files, wanted));
    hashes.keep();
    wanted = extended(found->base->files, lacks);
    // The new files changed since the extension began. So begin the extension again, from the end of the old
    // store, with the present files.
    if (!data::changed_sources(found->header.sources, wanted).empty() && !found->state.encoded)
      return extend(fs, plan, found->base->files, lacks, *found->base, settings);
  }
  if (!found->has_commit)  // perhaps not even the arrays exist
    return StoreWriter::create(fs, cache_dir, found->header, settings.layout, plan.ids);
  return StoreWriter::resume(fs, cache_dir, std::move(*found));
}

// That the verdicts are those of the training files.
Status check_verdicts(io::FileSystem& fs, const data::StorePlan& plan, const std::string& rows_file) {
  data::SourceHashes hashes(fs, plan.folder.ledger);
  std::vector<std::pair<std::string, std::string>> files;
  for (const data::SourceFile& source : *plan.sources) {
    if (source.list != data::Split::kTrain) continue;
    ASSIGN_OR_RETURN(std::string hash, hashes.of(source));
    files.emplace_back(source.path, std::move(hash));
  }
  hashes.keep();
  return data::check_files_of_verdicts(*plan.verdicts, rows_file, plan.key + ".rows", files);
}

// Builds the store. The caller holds the lock.
Result<data::StoreLedger> build_locked(io::FileSystem& fs, const data::StorePlan& plan,
                                       const data::Component& component,
                                       const tokenizer::Tokenizer& tokenizer,
                                       const data::BuildSettings& settings) {
  while (true) {
    ASSIGN_OR_RETURN(StoreOnDisk there, look_at_store(fs, plan, settings.append));
    if (there.is_done()) return std::move(*there.finished);
    // Before anything of a finished store is touched that is to be extended.
    if (plan.verdicts != nullptr) RETURN_IF_ERROR(check_verdicts(fs, plan, *component.rows));
    ASSIGN_OR_RETURN(StoreWriter writer, open_writer(fs, plan, there, settings));
    std::vector<std::map<std::string, int64_t>> reasons;
    for (const data::FileVerdicts* file : verdicts_by_source(writer.sources(), plan.verdicts.get()))
      reasons.push_back(file == nullptr ? std::map<std::string, int64_t>() : file->reasons());
    writer.note_left_out(std::move(reasons));
    if (writer.state().encoded) {
      // The store only had to be closed. The next round checks whether it is the one that is wanted.
      const auto closed = writer.finish(settings.threads_or_all());
      if (!closed.ok()) return closed.error();
      continue;
    }
    const auto* text = std::get_if<data::TextFormat>(&component.format);
    const data::RowOptions rows{.fields = data::row_fields(component.format)};
    tokenizer::TextEnds ends;
    ends.before.assign(writer.preprocessing().before.begin(), writer.preprocessing().before.end());
    const EncodeContext context{
        .fs = fs,
        .sources = writer.sources(),
        .preprocessing = writer.preprocessing(),
        .formatter = text != nullptr ? nullptr : plan.formatter.get(),
        .text_key = text != nullptr ? text->text_key : "",
        .text_key_option = component.name.empty() ? "data.text_key" : component.key + ".format.text_key",
        .skip_bad_rows = plan.skip_bad_rows,
        .ends = std::move(ends)};
    const BuildState& state = writer.state();
    EncodePipeline units(
        context, tokenizer,
        DocumentReader(fs, writer.sources(), rows, state.file,
                       {.rows = state.documents, .bytes = state.row_bytes}, plan.verdicts.get()),
        settings.threads_or_all());
    return write_store(writer, units, settings);
  }
}

// Warns when the tokenizer cannot represent some bytes. It drops them silently, as Hugging Face tokenizers
// do.
void warn_of_missing_bytes(const std::string& path, const tokenizer::Tokenizer& tokenizer) {
  if (tokenizer.missing_bytes() == 0) return;
  constexpr int kShown = 6;
  int missing = 0;
  std::string names;
  for (int b = 0; b < 0xf5; ++b) {
    const std::string byte(1, static_cast<char>(b));
    if (b == 0xc0 || b == 0xc1) continue;  // these bytes, and those from 0xf5 on, do not occur in UTF-8
    if (tokenizer.token_to_id(tokenizer::bytes_to_characters(byte)) || ++missing > kShown) continue;
    names += (missing > 1 ? ", " : "") + (b > ' ' && b < 0x7f ? byte : fmt::format("0x{:02x}", b));
  }
  if (missing == 0) return;
  log_warning(fmt::format(
      "data.tokenizer: {} has no token for {} of the bytes that texts are made of ({}{}), nor one "
      "for unknown text: they are left out of the ids, as Hugging Face does, though bits per byte "
      "count them. Use a tokenizer that was trained with all 256 bytes (in Hugging Face by "
      "initial_alphabet) if texts have them",
      path, missing, names, missing > kShown ? ", ..." : ""));
}

}  // namespace

Result<data::StoreLedger> build_store(io::FileSystem& fs, const data::DataOptions& options,
                                      const data::Component& component, const tokenizer::Tokenizer& tokenizer,
                                      const data::BuildSettings& settings) {
  ASSIGN_OR_RETURN(const data::StorePlan plan, data::plan_store(fs, options, component, tokenizer));
  if (!plan.folder.levanter_cache.empty())
    return data::check_levanter_cache(fs, plan.folder.levanter_cache, plan.folder.ledger, plan.preprocessing,
                                      tokenizer, options.tokenizer_path(), settings);
  if (!plan.is_in_place && !std::holds_alternative<data::PrebuiltFormat>(component.format))
    warn_of_missing_bytes(options.tokenizer_path(), tokenizer);
  ASSIGN_OR_RETURN(StoreOnDisk there, look_at_store(fs, plan, settings.append));
  if (there.is_done()) return std::move(*there.finished);
  if (!plan.sources.ok()) return plan.sources.error();
  if (plan.no_verdicts) return *plan.no_verdicts;
  if (plan.is_in_place)
    return not_found(fmt::format(
        "{}: names no texts, and {} holds neither a token store nor a Levanter cache; set {}.train_urls "
        "or {}.cache_dir",
        plan.key, component.cache_dir, plan.key, plan.key));
  RETURN_IF_ERROR(io::only_local(fs, plan.folder.ledger, "token stores"));
  RETURN_IF_ERROR(fs.make_dirs(plan.folder.ledger));
  auto lock = fs.lock(io::join_path(plan.folder.ledger, "build.lock"),
                      fmt::format("a build of this token store, process {}", getpid()));
  if (!lock.ok()) return lock.error();
  // Another process may have finished the store before we got the lock.
  return build_locked(fs, plan, component, tokenizer, settings);
}

}  // namespace ostro::prepare
