#include "ostro/prepare/store/store_rows.h"

#include "ostro/data/sources/row_reader.h"

namespace ostro::prepare {
namespace {

constexpr int64_t kUnitTokensOfRows = 1 << 16;

}  // namespace

Result<bool> StoreRows::next(EncodedUnit& unit) {
  if (file_ >= static_cast<int64_t>(files_.size())) return false;
  const PartFile& file = files_[static_cast<size_t>(file_)];
  unit = EncodedUnit{.file = file_};
  const int64_t train = file.ledger.rows[0], all = train + file.ledger.rows[1];
  unit.stored_begin = data::bytes_of_rows(file.ledger.source.size, row_, all);
  for (int64_t tokens = 0; row_ < all && tokens < kUnitTokensOfRows; ++row_, ++unit.documents_read) {
    const data::Split split = row_ < train ? data::Split::kTrain : data::Split::kValidation;
    const int64_t row =
        file.first_row[static_cast<size_t>(split)] + (split == data::Split::kTrain ? row_ : row_ - train);
    RETURN_IF_ERROR(copy(*file.store, split, row, unit));
    tokens = static_cast<int64_t>(unit.tokens.size());
  }
  unit.stored_end = data::bytes_of_rows(file.ledger.source.size, row_, all);
  if (row_ < all) return true;
  unit.ends_file = true;
  unit.file_sha256 = file.ledger.sha256;
  unit.empty = file.ledger.empty;
  unit.repaired = file.ledger.repaired;
  unit.no_loss = file.ledger.no_loss;
  unit.skipped = file.ledger.skipped;
  ++file_;
  row_ = 0;
  return true;
}

Status StoreRows::copy(const data::TokenStore& store, data::Split split, int64_t row, EncodedUnit& unit) {
  const data::TokenStream& stream = store.split(split);
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, 1));
  ASSIGN_OR_RETURN(const data::RowSource source, stream.source(row));
  EncodedUnit::Document document{.number = source.document,
                                 .split = split,
                                 .bytes = source.bytes,
                                 .tokens = ends[1] - ends[0],
                                 .begin = source.begin,
                                 .end = source.end};
  ids_.resize(static_cast<size_t>(document.tokens));
  RETURN_IF_ERROR(stream.read(ends[0], ids_));
  unit.tokens.insert(unit.tokens.end(), ids_.begin(), ids_.end());
  if (stream.weight_kind() != data::WeightKind::kNone) {
    const size_t before = unit.weights.size();
    unit.weights.resize(before + ids_.size());
    RETURN_IF_ERROR(stream.read_weights(ends[0], std::span(unit.weights).subspan(before)));
  }
  if (store.ledger().preprocessing.row_arrays() == data::RowArrays::kAll) {
    ASSIGN_OR_RETURN(document.hash, stream.row_hash(row));
  }
  unit.documents.push_back(document);
  return {};
}

}  // namespace ostro::prepare
