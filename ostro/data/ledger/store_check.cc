#include "ostro/data/ledger/store_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace ostro::data {
namespace {

Error mismatch(const std::string& cache_dir, const std::string& what) {
  return invalid_argument(
      fmt::format("{}: the token store there was made from something else: {}. Set data.cache_dir to another "
                  "folder, or delete this one to build it again",
                  cache_dir, what));
}

// "3 files fewer (the first: a.txt)": which paths are in `a` and not in `b`.
std::string missing_paths(const std::vector<std::string>& a, const std::vector<std::string>& b,
                          const char* word) {
  const std::set<std::string> other(b.begin(), b.end());
  int64_t count = 0;
  std::string first;
  for (const std::string& path : a) {
    if (other.contains(path)) continue;
    if (count++ == 0) first = path;
  }
  return count == 0 ? "" : fmt::format("; {} {} (the first: {})", count, word, first);
}

std::string count_difference(const std::vector<std::string>& store, const std::vector<std::string>& now) {
  return fmt::format("it has {} source files, data.train_urls and data.validation_urls now name {}{}{}",
                     store.size(), now.size(), missing_paths(now, store, "are new"),
                     missing_paths(store, now, "are gone"));
}

}  // namespace

std::string row_type(const std::string& format) {
  const auto json = nlohmann::json::parse(format, nullptr, /*allow_exceptions=*/false);
  const auto type = json.find("type");
  return type != json.end() && type->is_string() ? type->get<std::string>() : "";
}

Status check_preprocessing(const std::string& cache_dir, const Preprocessing& store,
                           const Preprocessing& wanted) {
  const std::vector<std::string> differing = differences(store, wanted);
  if (differing.empty()) return {};
  return mismatch(cache_dir, fmt::format("{}", fmt::join(differing, "; ")));
}

bool lacks_beginning(const Preprocessing& store, const Preprocessing& wanted) {
  return store.before.empty() && !wanted.before.empty();
}

Status check_finished_preprocessing(const std::string& cache_dir, const Preprocessing& store,
                                    Preprocessing wanted, bool any_beginning) {
  if (any_beginning && lacks_beginning(store, wanted)) wanted.before.clear();
  return check_preprocessing(cache_dir, store, wanted);
}

Status check_preprocessing_in_place(const std::string& cache_dir, const Preprocessing& store,
                                    Preprocessing wanted, bool any_beginning) {
  wanted.validation_fraction = store.validation_fraction;
  wanted.left_out = store.left_out;
  if (row_type(store.format) == row_type(wanted.format) && store.fields == wanted.fields)
    wanted.format = store.format;
  return check_finished_preprocessing(cache_dir, store, std::move(wanted), any_beginning);
}

Result<std::vector<SourceFile>> new_files(SourceHashes& hashes, const std::string& cache_dir,
                                          const std::vector<FileLedger>& store,
                                          const std::vector<SourceFile>& sources) {
  const auto other_files = [&] {
    std::vector<std::string> before, now;
    for (const FileLedger& file : store) before.push_back(file.source.path);
    for (const SourceFile& source : sources) now.push_back(source.path);
    return mismatch(cache_dir, count_difference(before, now));
  };
  std::vector<SourceFile> fresh;
  for (const Split list : kSplits) {
    const auto in_list = [list](const SourceFile& source) { return source.list == list; };
    auto now = std::find_if(sources.begin(), sources.end(), in_list);
    for (const FileLedger& file : store) {
      const SourceFile& was = file.source;
      if (!in_list(was)) continue;
      if (now == sources.end() || !in_list(*now)) return other_files();
      const SourceFile& is = *now++;
      if (was == is) continue;
      if (was.format != is.format)
        return mismatch(cache_dir,
                        fmt::format("{} was {} and {} is {}", was.path, file_format_name(was.format), is.path,
                                    file_format_name(is.format)));
      if (was.size == is.size) {
        ASSIGN_OR_RETURN(const std::string hash, hashes.of(is));
        if (hash == file.sha256) continue;
      }
      if (was.path == is.path) return mismatch(cache_dir, fmt::format("{} has other content now", is.path));
      if (store.size() != sources.size()) return other_files();
      return mismatch(cache_dir, fmt::format("it has {}, and {} has other content", was.path, is.path));
    }
    for (; now != sources.end() && in_list(*now); ++now) fresh.push_back(*now);
  }
  return fresh;
}

Status check_files(SourceHashes& hashes, const std::string& cache_dir, const std::vector<FileLedger>& store,
                   const std::vector<SourceFile>& sources) {
  ASSIGN_OR_RETURN(const std::vector<SourceFile> fresh, new_files(hashes, cache_dir, store, sources));
  if (fresh.empty()) return {};
  return mismatch(cache_dir,
                  fmt::format("{} files are new (the first: {}); `ostro data build --append` adds files that "
                              "come last in their list, which ends every run on the store as it is",
                              fresh.size(), fresh[0].path));
}

Status check_skipped(const std::string& cache_dir, const std::vector<FileLedger>& store, bool skip_bad_rows) {
  if (skip_bad_rows) return {};
  int64_t rows = 0, files = 0;
  std::string first;
  for (const FileLedger& file : store) {
    if (file.skipped == 0) continue;
    if (files++ == 0) first = file.source.path;
    rows += file.skipped;
  }
  if (rows == 0) return {};
  return invalid_argument(
      fmt::format("{}: the token store there lacks {} malformed rows of {} files (the first: {}), built with "
                  "data.on_bad_row skip, and data.on_bad_row is error. Set it to skip, or mend the rows and "
                  "build the store in another folder",
                  cache_dir, rows, files, first));
}

std::string changed_sources(const std::vector<SourceFile>& store, const std::vector<SourceFile>& sources) {
  if (store.size() != sources.size()) {
    std::vector<std::string> before, now;
    for (const SourceFile& file : store) before.push_back(file.path);
    for (const SourceFile& source : sources) now.push_back(source.path);
    return count_difference(before, now);
  }
  for (size_t i = 0; i < store.size(); ++i)
    if (!(store[i] == sources[i]))
      return fmt::format("{} changed", store[i].path == sources[i].path
                                           ? sources[i].path
                                           : store[i].path + " -> " + sources[i].path);
  return "";
}

}  // namespace ostro::data
