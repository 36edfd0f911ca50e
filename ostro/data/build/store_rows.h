// Rows of finished stores, to be written into another one.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ostro/data/build/encoded_unit.h"
#include "ostro/data/store/token_store.h"

namespace ostro::data {

// A file's rows in the store of a part.
struct PartFile {
  std::shared_ptr<const TokenStore> store;
  FileLedger ledger;
  std::array<int64_t, 2> first_row{};  // by Split
};

// The rows of files of finished stores, as units: of a file the training rows, then the held-out ones. Their
// order between splits is of no consequence.
class StoreRows final : public UnitSource {
 public:
  // Begins at file `file`, behind its first `rows` rows. Refers to the files.
  StoreRows(const std::vector<PartFile>& files, int64_t file, int64_t rows)
      : files_(files), file_(file), row_(rows) {}

  Result<bool> next(EncodedUnit& unit) override;

 private:
  Status copy(const TokenStore& store, Split split, int64_t row, EncodedUnit& unit);

  const std::vector<PartFile>& files_;
  int64_t file_, row_;
  std::vector<int32_t> ids_;
};

}  // namespace ostro::data
