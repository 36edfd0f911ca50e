#include "ostro/data/levanter/levanter_cache.h"

#include <fmt/core.h>
#include <unistd.h>

#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/ledger/store_check.h"
#include "ostro/data/ledger/store_damage.h"
#include "ostro/data/levanter/levanter_ledger.h"
#include "ostro/data/levanter/levanter_scan.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

// kInvalidArgument when the cache's own ledger shows that `checked` was made from another cache.
Status check_unchanged(const std::string& place, const std::string& cache_dir, const LevanterLedger& told,
                       const StoreLedger& checked) {
  const std::string fix = fmt::format("delete {} to check it again", cache_dir);
  for (const Split split : kSplits) {
    const auto& now = told[static_cast<size_t>(split)];
    const int64_t rows = now ? now->rows : 0;
    if (rows != checked.split(split).rows)
      return invalid_argument(fmt::format(
          "{}: has {} rows now, and had {} when it was checked; {}, which makes it another data set",
          io::join_path(place, split_name(split)), rows, checked.split(split).rows, fix));
  }
  const std::vector<StorePart> parts = parts_of(told);
  if (parts.size() != checked.parts.size())
    return invalid_argument(fmt::format("{}: has {} shards now, and had {} when it was checked; {}", place,
                                        parts.size(), checked.parts.size(), fix));
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].folder != checked.parts[i].folder || parts[i].rows != checked.parts[i].rows)
      return invalid_argument(
          fmt::format("{}: shard {} is {} now, and was {} when it was checked, or has other rows; {}", place,
                      i, parts[i].folder, checked.parts[i].folder, fix));
  return {};
}

// The tokenizer that the first split with a name for it gives.
std::string tokenizer_of(const LevanterLedger& told) {
  for (const auto& split : told)
    if (split && !split->metadata.tokenizer.empty()) return split->metadata.tokenizer;
  return {};
}

}  // namespace

Result<bool> is_levanter_cache(io::FileSystem& fs, const std::string& folder) {
  ASSIGN_OR_RETURN(const bool ours, fs.exists(ledger_path(folder)));
  if (ours) return false;
  return fs.exists(levanter_ledger_path(folder, Split::kTrain));
}

Result<StoreLedger> check_levanter_cache(io::FileSystem& fs, const std::string& place,
                                         const std::string& cache_dir, const Preprocessing& wanted,
                                         const tokenizer::Tokenizer& tokenizer,
                                         const std::string& tokenizer_path, const BuildSettings& settings) {
  ASSIGN_OR_RETURN(const LevanterLedger told, read_levanter_ledger(fs, place));
  for (const auto& split : told)
    if (split)
      RETURN_IF_ERROR(check_levanter_metadata(fs, split->metadata, wanted, tokenizer, tokenizer_path));
  const auto known = [&]() -> Result<std::optional<StoreLedger>> {
    auto ledger = read_ledger(fs, cache_dir);
    if (!ledger.ok() && ledger.error().code() == ErrorCode::kNotFound) return std::optional<StoreLedger>();
    if (!ledger.ok())
      return record_error({.folder = cache_dir, .levanter_cache = place}, "ledger.json", ledger.error());
    if (ledger->levanter_cache != place)
      return invalid_argument(fmt::format(
          "{}: holds {}, not check data of {}; name another data.cache_dir, or delete it", cache_dir,
          ledger->levanter_cache.empty() ? "a token store" : "check data of " + ledger->levanter_cache,
          place));
    RETURN_IF_ERROR(check_finished_preprocessing(cache_dir, ledger->preprocessing, wanted, true));
    RETURN_IF_ERROR(check_unchanged(place, cache_dir, told, *ledger));
    ledger->levanter_tokenizer = tokenizer_of(told);
    return std::optional<StoreLedger>(std::move(*ledger));
  };
  ASSIGN_OR_RETURN(std::optional<StoreLedger> found, known());
  if (found) return std::move(*found);
  RETURN_IF_ERROR(io::only_local(fs, cache_dir, "token stores"));
  RETURN_IF_ERROR(fs.make_dirs(cache_dir));
  auto lock = fs.lock(io::join_path(cache_dir, "build.lock"),
                      fmt::format("a check of the Levanter cache {}, process {}", place, getpid()));
  if (!lock.ok()) return lock.error();
  ASSIGN_OR_RETURN(found, known());
  if (found) return std::move(*found);
  StoreLedger ledger;
  ledger.preprocessing = wanted;
  ledger.levanter_cache = place;
  ledger.levanter_tokenizer = tokenizer_of(told);
  RETURN_IF_ERROR(scan_levanter_cache(fs, told, tokenizer, settings, ledger));
  RETURN_IF_ERROR(finish_store(fs, cache_dir, ledger, settings.threads_or_all()));
  return ledger;
}

}  // namespace ostro::data
