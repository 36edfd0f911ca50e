// write_ledger_files, LedgerFiles: the data ledger of a bundle: hashes of the rows that a run was trained on,
// and the files they came from (docs/reference/formats/bundle.md, "The ledger").
//
// Each component has three files: NAME.rows (40 bytes a row: hash_row, then the number of tokens, i64),
// NAME.content.json (the content of the store's ledger, whose SHA-256 is the ledger hash) and NAME.sources (a
// line of JSON for each source file).
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/progress.h"
#include "ostro/batches/loader/data_set.h"
#include "ostro/bundle/parts/manifest.h"
#include "ostro/data/arrays/row_tree.h"
#include "ostro/io/files/file_system.h"

namespace ostro::bundle {

inline constexpr int64_t kRowBytes = 40;

// Writes the files of all components into `folder`, which exists, with `threads` threads. Returns the sums by
// ledger_name(). Error: kCorrupt when a store's rows do not have the root that its ledger has.
Result<std::map<std::string, LedgerSum>> write_ledger_files(io::FileSystem& fs,
                                                            const batches::DataSet& stores,
                                                            const std::string& folder, int threads,
                                                            Progress& progress);

// A source file of a component: a line of NAME.sources.
struct LedgerSource {
  std::string file, sha256;
  std::array<int64_t, 2> first{}, rows{};  // by data::Split; rows of one split are numbered from 0
};
std::string sources_text(const std::vector<LedgerSource>& sources);

// The same source file in NAME.content.json.
struct ContentFile {
  std::string sha256;
  std::array<int64_t, 2> rows{}, tokens{};
};

// The ledger files of one component, opened. Refers to `fs`.
class LedgerFiles {
 public:
  // Error: kCorrupt when a file does not have its form, or NAME.rows does not have as many rows as
  // NAME.content.json says.
  static Result<LedgerFiles> open(io::FileSystem& fs, const std::string& folder, const std::string& name);

  const std::string& hash() const { return hash_; }  // the hash of the store's ledger
  const std::array<int64_t, 2>& rows() const { return rows_; }
  const std::vector<LedgerSource>& sources() const { return sources_; }
  const std::vector<ContentFile>& files() const { return files_; }
  // The number of rows in NAME.rows.
  int64_t rows_there() const { return file_->size() / kRowBytes; }
  const std::string& rows_path() const { return file_->path(); }

  // The root of the tree of rows, computed by `threads` threads. The rows are those of the content.
  Result<std::string> root(int threads) const;
  // The number of tokens of rows [first, first + count) of NAME.rows, in which those of train come first,
  // then those of validation.
  Result<int64_t> tokens(int64_t first, int64_t count) const;

 private:
  LedgerFiles() = default;

  std::shared_ptr<const io::RandomAccessFile> file_;
  std::string hash_;
  std::array<int64_t, 2> rows_{};
  std::vector<LedgerSource> sources_;
  std::vector<ContentFile> files_;
};

}  // namespace ostro::bundle
