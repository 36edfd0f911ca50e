#include "ostro/data/store_check.h"

#include <fmt/format.h>

#include <set>

#include "ostro/data/documents.h"

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

Status check_preprocessing(const std::string& cache_dir, const Preprocessing& store,
                           const Preprocessing& wanted) {
  const std::vector<std::string> differing = differences(store, wanted);
  if (differing.empty()) return {};
  return mismatch(cache_dir, fmt::format("{}", fmt::join(differing, "; ")));
}

Status check_files(io::FileSystem& fs, const std::string& cache_dir, const std::vector<FileLedger>& store,
                   const std::vector<SourceFile>& sources) {
  if (store.size() != sources.size()) {
    std::vector<std::string> before, now;
    for (const FileLedger& file : store) before.push_back(file.source.path);
    for (const SourceFile& source : sources) now.push_back(source.path);
    return mismatch(cache_dir, count_difference(before, now));
  }
  for (size_t i = 0; i < store.size(); ++i) {
    const SourceFile &was = store[i].source, &is = sources[i];
    if (was == is) continue;
    if (was.list != is.list || was.format != is.format)
      return mismatch(cache_dir, fmt::format("{} was {} ({}) and {} is {} ({})", was.path,
                                             file_format_name(was.format), split_name(was.list), is.path,
                                             file_format_name(is.format), split_name(is.list)));
    if (was.size == is.size) {
      ASSIGN_OR_RETURN(const std::string hash, file_sha256(fs, is.path));
      if (hash == store[i].sha256) continue;
    }
    return mismatch(cache_dir, was.path == is.path
                                   ? fmt::format("{} has other content now", is.path)
                                   : fmt::format("it has {}, and {} has other content", was.path, is.path));
  }
  return {};
}

Status check_sources(const std::string& cache_dir, const std::vector<SourceFile>& store,
                     const std::vector<SourceFile>& sources) {
  if (store.size() != sources.size()) {
    std::vector<std::string> before, now;
    for (const SourceFile& file : store) before.push_back(file.path);
    for (const SourceFile& source : sources) now.push_back(source.path);
    return mismatch(cache_dir, "unfinished, " + count_difference(before, now));
  }
  for (size_t i = 0; i < store.size(); ++i)
    if (!(store[i] == sources[i]))
      return mismatch(cache_dir, fmt::format("unfinished, and {} changed since that build began",
                                             store[i].path == sources[i].path
                                                 ? sources[i].path
                                                 : store[i].path + " -> " + sources[i].path));
  return {};
}

}  // namespace ostro::data
