// LedgerFile: the ledger file of an existing store, with its list of source files parsed on demand.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// Opening checks the whole file. The list of source files, which is nearly all of the text, is parsed only
// when files() is called: build_store does, to compare it with the sources; reading batches never does.
// Thread-safe.
class LedgerFile {
 public:
  struct Files {
    std::vector<FileLedger> list;
    // by Split: for each file, the number of the row after its last one
    std::array<std::vector<int64_t>, 2> row_ends;
  };

  // kNotFound when there is none, kCorrupt (names the file) when it is damaged.
  static Result<std::shared_ptr<LedgerFile>> open(io::FileSystem& fs, const std::string& cache_dir);

  // Everything except the files; has_files is false.
  const StoreLedger& head() const { return head_; }
  // StoreLedger::hash of the whole ledger.
  const std::string& hash() const { return hash_; }
  // kCorrupt when the files do not agree with the ledger's hash.
  Result<const Files*> files() const;

 private:
  LedgerFile() = default;
  Status parse(const std::string& text);

  std::string path_, hash_;
  StoreLedger head_;
  std::string files_text_, sources_text_;  // JSON lists; empty: a Levanter cache
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Files> files_;  // null until files() is called
};

}  // namespace ostro::data
