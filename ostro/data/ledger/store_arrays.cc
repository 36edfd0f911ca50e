#include "ostro/data/ledger/store_arrays.h"

namespace ostro::data {

const char* weight_kind_name(WeightKind kind) {
  constexpr const char* kNames[] = {"", "assistant_masks", "sources_len", "loss_weights", "pair_parts"};
  return kNames[static_cast<size_t>(kind)];
}

StoreFields store_fields(WeightKind weights) {
  return {.ids = "input_ids", .weights = weights, .weights_name = weight_kind_name(weights)};
}

int64_t array_elements(ArrayId id, int64_t rows, int64_t tokens, WeightKind weights) {
  switch (id) {
    case ArrayId::kData: return tokens;
    case ArrayId::kOffsets:
    case ArrayId::kWeightOffsets: return rows + 1;
    case ArrayId::kRowHash: return 32 * rows;
    case ArrayId::kWeights: return weights == WeightKind::kSourcesLen ? rows : tokens;
    case ArrayId::kDocument:
    case ArrayId::kBytes:
    case ArrayId::kBegin:
    case ArrayId::kEnd: break;
  }
  return rows;
}

std::vector<ArrayPlace> array_places(const StoreFields& fields, RowArrays rows, ElementType ids) {
  std::vector<ArrayPlace> places = {{ArrayId::kData, fields.ids + "/data", ids},
                                    {ArrayId::kOffsets, fields.ids + "/offsets", ElementType::kInt64}};
  if (rows != RowArrays::kNone) {
    places.push_back({ArrayId::kDocument, "rows/document", ElementType::kInt64});
    places.push_back({ArrayId::kBytes, "rows/bytes", ElementType::kInt64});
  }
  if (rows == RowArrays::kAll) {
    places.push_back({ArrayId::kBegin, "rows/begin", ElementType::kInt64});
    places.push_back({ArrayId::kEnd, "rows/end", ElementType::kInt64});
    places.push_back({ArrayId::kRowHash, "rows/sha256", ElementType::kUint8});
  }
  if (fields.weights != WeightKind::kNone) {
    const bool floats = fields.weights == WeightKind::kLossWeights;
    places.push_back({ArrayId::kWeights, fields.weights_name + "/data",
                      floats ? ElementType::kFloat32 : ElementType::kInt32});
    places.push_back({ArrayId::kWeightOffsets, fields.weights_name + "/offsets", ElementType::kInt64});
  }
  return places;
}

}  // namespace ostro::data
