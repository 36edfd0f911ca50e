// StoreRows: reads rows of finished stores, to write them into another one. Errors are those of reading the
// stores. Not thread-safe.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ostro/data/store/token_store.h"
#include "ostro/prepare/store/encoded_unit.h"

namespace ostro::prepare {

// Where the rows of a source file are in the store of a part.
struct PartFile {
  std::shared_ptr<const data::TokenStore> store;
  data::FileLedger ledger;
  std::array<int64_t, 2> first_row{};  // by Split
};

// The rows of source files of finished stores, as units. Of each file first the training rows, then the
// held-out rows. (The order between the two splits has no effect.)
class StoreRows final : public UnitSource {
 public:
  // Begins at file number `file`, after its first `rows` rows. `files` must outlive the object.
  StoreRows(const std::vector<PartFile>& files, int64_t file, int64_t rows)
      : files_(files), file_(file), row_(rows) {}

  Result<bool> next(EncodedUnit& unit) override;

 private:
  Status copy(const data::TokenStore& store, data::Split split, int64_t row, EncodedUnit& unit);

  const std::vector<PartFile>& files_;
  int64_t file_, row_;
  std::vector<int32_t> ids_;
};

}  // namespace ostro::prepare
