// The ledger of a token store as it lies on disk.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// Checked as a whole when it is opened. The list of the source files, nearly all of the text, is taken apart
// when somebody asks for it, as build_store does to compare it with the texts; reading batches never does.
// Thread-safe but for drop_sums().
class LedgerFile {
 public:
  struct Files {
    std::vector<FileLedger> list;
    std::array<std::vector<int64_t>, 2> row_ends;  // by Split: of every file, the row behind its last
  };

  // kNotFound when there is none, kCorrupt (naming the file) when it is damaged.
  static Result<std::shared_ptr<LedgerFile>> open(io::FileSystem& fs, const std::string& cache_dir);

  // All but the files: has_files is false.
  const StoreLedger& head() const { return head_; }
  // StoreLedger::hash of the whole.
  const std::string& hash() const { return hash_; }
  // kCorrupt when they are not what the ledger's hash was taken of.
  Result<const Files*> files() const;

  // Gives back the memory of what chunk tables have, too.
  void drop_sums();

 private:
  LedgerFile() = default;
  Status parse(const std::string& text);

  std::string path_, hash_;
  StoreLedger head_;
  std::string files_text_, sources_text_;  // JSON lists; empty: a Levanter cache
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Files> files_;  // null until they are asked for
};

}  // namespace ostro::data
