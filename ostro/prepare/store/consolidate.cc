#include "ostro/prepare/store/consolidate.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/data/ledger/store_check.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/data/store/store_plan.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"
#include "ostro/prepare/store/join_in_place.h"
#include "ostro/prepare/store/store_rows.h"
#include "ostro/prepare/store/store_writer.h"
#include "ostro/prepare/store/write_store.h"

namespace ostro::prepare {
namespace {

// That a part leaves out the rows that the verdicts on its files say, which are those of the whole from
// `begin` on; moves `begin` behind them.
Status check_left_out(const std::string& folder, const std::vector<data::FileLedger>& files,
                      const data::StorePlan& plan, const data::Preprocessing& part, size_t& begin) {
  data::RowVerdicts own;
  std::vector<std::pair<std::string, std::string>> there;
  for (const data::FileLedger& file : files) {
    if (file.source.list != data::Split::kTrain) continue;
    there.emplace_back(file.source.path, file.sha256);
    if (const size_t i = begin + there.size() - 1; i < plan.verdicts->files.size())
      own.files.push_back(plan.verdicts->files[i]);
  }
  begin += there.size();
  RETURN_IF_ERROR(data::check_files_of_verdicts(
      own, fmt::format("the file of verdicts, for the part {},", folder), plan.key + ".rows", there));
  data::Preprocessing wanted = plan.preprocessing;
  wanted.left_out = own.left_out();
  return data::check_preprocessing(folder, part, wanted);
}

Result<std::vector<PartStore>> open_parts(io::FileSystem& fs, const std::vector<std::string>& folders,
                                          const data::StorePlan& plan) {
  if (plan.no_verdicts) return *plan.no_verdicts;
  std::vector<PartStore> parts;
  size_t said = 0;  // files of the verdicts that are those of parts
  // Rows are read once, in order, so one small cache is enough for all parts.
  const auto cache = std::make_shared<data::ChunkCache>(size_t{64} << 20);
  for (const std::string& folder : folders) {
    if (io::clean_path(folder) == io::clean_path(plan.folder.ledger))
      return invalid_argument(
          fmt::format("{}: is where the parts are to be joined, and one of them", folder));
    ASSIGN_OR_RETURN(auto store, data::TokenStore::open(fs, folder, cache, data::KeepChunks::kAtOnce));
    if (!store->ledger().levanter_cache.empty())
      return unsupported(
          fmt::format("{}: a Levanter cache cannot be a part; build the part from its texts", folder));
    ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* files, store->files());
    const data::Preprocessing& has = store->ledger().preprocessing;
    RETURN_IF_ERROR(plan.verdicts == nullptr ? data::check_preprocessing(folder, has, plan.preprocessing)
                                             : check_left_out(folder, *files, plan, has, said));
    RETURN_IF_ERROR(data::check_skipped(folder, *files, plan.skip_bad_rows));
    parts.push_back({folder, std::move(store)});
  }
  if (plan.verdicts != nullptr && said != plan.verdicts->files.size())
    return invalid_argument(fmt::format(
        "{}.rows: has verdicts on {} files, and the parts have {} training files; join parts of all files",
        plan.key, plan.verdicts->files.size(), said));
  return parts;
}

Result<std::vector<PartFile>> files_of_parts(const std::vector<PartStore>& parts) {
  std::vector<PartFile> files;
  for (const PartStore& part : parts) {
    PartFile file{.store = part.store, .ledger = {}};
    ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* ledgers, part.store->files());
    for (const data::FileLedger& ledger : *ledgers) {
      file.ledger = ledger;
      files.push_back(file);
      for (size_t s = 0; s < 2; ++s) file.first_row[s] += ledger.rows[s];
    }
  }
  // Training files first. In each split, rows still follow the order of the parts: no split has rows of files
  // from both lists.
  std::stable_sort(files.begin(), files.end(), [](const PartFile& a, const PartFile& b) {
    return a.ledger.source.list < b.ledger.source.list;
  });
  return files;
}

// Checks that the parts hold exactly the files that the configuration names, in its order.
Status compare_with_texts(data::SourceHashes& hashes, const std::vector<data::FileLedger>& files,
                          const Result<std::vector<data::SourceFile>>& sources) {
  if (!sources.ok()) {
    if (sources.error().code() != ErrorCode::kNotFound) return sources.error();
    log_warning(fmt::format("{}; joining the parts without comparing them with the texts",
                            sources.error().message()));
    return {};
  }
  auto lacking = data::new_files(hashes, "the parts", files, *sources);
  if (!lacking.ok()) return lacking.error().with_context("parts in another order, or of other texts");
  if (!lacking->empty())
    return invalid_argument(fmt::format(
        "the parts lack {} files that the configuration names (the first: {}); build a part of them",
        lacking->size(), (*lacking)[0].path));
  return {};
}

// Whether two lists are the same but for reasons of what was left out, which stores of earlier versions lost.
bool same_content(const std::vector<data::FileLedger>& a, const std::vector<data::FileLedger>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](data::FileLedger x, const data::FileLedger& y) {
                      x.left_out = y.left_out;
                      return x == y;
                    });
}

Result<data::StoreLedger> copy_rows(io::FileSystem& fs, const data::StorePlan& plan,
                                    const std::vector<PartFile>& files, const data::BuildSettings& settings) {
  const std::string& cache_dir = plan.folder.ledger;
  Journal::Header header{.preprocessing = plan.preprocessing, .sources = {}, .from_stores = true};
  for (const PartFile& file : files) header.sources.push_back(file.ledger.source);
  auto found = Journal::read(fs, cache_dir);
  if (!found.ok() && found.error().code() != ErrorCode::kNotFound) return found.error();
  if (found.ok() && (!found->header.from_stores || !(found->header.preprocessing == plan.preprocessing) ||
                     found->header.sources != header.sources))
    return invalid_argument(fmt::format(
        "{}: holds an unfinished store of something else; name another folder, or delete it", cache_dir));
  ASSIGN_OR_RETURN(StoreWriter writer,
                   found.ok() && found->has_commit
                       ? StoreWriter::resume(fs, cache_dir, std::move(*found))
                       : StoreWriter::create(fs, cache_dir, std::move(header), settings.layout, plan.ids));
  std::vector<std::map<std::string, int64_t>> left_out;
  for (const PartFile& file : files) left_out.push_back(file.ledger.left_out);
  writer.note_left_out(std::move(left_out));
  if (writer.state().encoded) return writer.finish(settings.threads_or_all());
  StoreRows rows(files, writer.state().file, writer.state().documents);
  return write_store(writer, rows, settings);
}

}  // namespace

Result<data::StoreLedger> consolidate_stores(io::FileSystem& fs, const data::DataOptions& options,
                                             const data::Component& component,
                                             const tokenizer::Tokenizer& tokenizer,
                                             const std::vector<std::string>& folders, JoinRows rows,
                                             const data::BuildSettings& settings) {
  ASSIGN_OR_RETURN(const data::StorePlan plan, data::plan_store(fs, options, component, tokenizer));
  if (plan.is_in_place)
    return invalid_argument(
        fmt::format("{}: names no texts; list those of all parts, which say what the whole is", plan.key));
  const std::string& cache_dir = plan.folder.ledger;
  ASSIGN_OR_RETURN(const std::vector<PartStore> parts, open_parts(fs, folders, plan));
  ASSIGN_OR_RETURN(const std::vector<PartFile> files, files_of_parts(parts));
  std::vector<data::FileLedger> ledgers;
  for (const PartFile& file : files) ledgers.push_back(file.ledger);
  data::SourceHashes hashes(fs, cache_dir);
  RETURN_IF_ERROR(compare_with_texts(hashes, ledgers, plan.sources));
  RETURN_IF_ERROR(io::only_local(fs, cache_dir, "token stores"));
  RETURN_IF_ERROR(fs.make_dirs(cache_dir));
  hashes.keep();
  auto lock = fs.lock(io::join_path(cache_dir, "build.lock"),
                      fmt::format("a consolidation of token stores, process {}", getpid()));
  if (!lock.ok()) return lock.error();

  auto finished = data::read_ledger(fs, cache_dir);
  if (finished.ok()) {
    RETURN_IF_ERROR(data::check_preprocessing(cache_dir, finished->preprocessing, plan.preprocessing));
    if (!same_content(finished->files, ledgers))
      return invalid_argument(fmt::format(
          "{}: holds a finished store of other files than the parts; name another folder, or delete it",
          cache_dir));
    const bool in_parts = !finished->parts.empty();
    if (in_parts && rows == JoinRows::kCopy)
      return invalid_argument(fmt::format(
          "{}: holds a finished store whose rows are in others (the first: {}); name another folder for the "
          "copy, or delete this one, which has no rows of its own",
          cache_dir, data::part_folder(cache_dir, *finished, finished->parts[0])));
    const bool moved = in_parts && finished->parts != parts_of_whole(parts, cache_dir);
    if (!moved) {
      RETURN_IF_ERROR(data::check_parts(fs, cache_dir, *finished));
      return finished;
    }
  } else if (finished.error().code() != ErrorCode::kNotFound) {
    return finished.error();
  }
  ASSIGN_OR_RETURN(const bool has_journal, fs.exists(Journal::path(cache_dir)));
  ASSIGN_OR_RETURN(const bool has_arrays, fs.exists(io::join_path(cache_dir, "train")));
  if (has_arrays && !has_journal)
    return invalid_argument(fmt::format(
        "{}: holds a store that is not ours, or incomplete; name another folder, or delete it", cache_dir));
  if (rows == JoinRows::kCopy) return copy_rows(fs, plan, files, settings);
  if (has_journal)
    return invalid_argument(fmt::format(
        "{}: holds an unfinished store; finish it, name another folder, or delete it", cache_dir));
  return join_in_place(fs, parts, cache_dir, std::move(ledgers), plan.preprocessing.left_out, settings);
}

}  // namespace ostro::prepare
