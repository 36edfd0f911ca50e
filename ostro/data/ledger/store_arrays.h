// Which arrays a split of a token store has, and where (docs/formats/token_store.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ostro/data/ledger/element_type.h"

namespace ostro::data {

// Which loss weights the rows of a store have: the weight of token i is that of predicting it from the tokens
// before it. The arrays are Levanter's.
enum class WeightKind {
  kNone,            // all 1
  kAssistantMasks,  // chat: 0 or 1 for every token (int32)
  kSourcesLen,   // supervised: of every row, how many tokens at its beginning weigh 0 (int32); the others 1
  kLossWeights,  // prebuilt: a number for every token (float32)
};

// The folders of a store that hold ids and weights, below cache_dir/train and cache_dir/validation.
struct StoreFields {
  std::string ids = "input_ids";
  WeightKind weights = WeightKind::kNone;
  std::string weights_name;  // "assistant_masks", "sources_len", "loss_weights"; empty without
  bool operator==(const StoreFields&) const = default;
};

// "assistant_masks", "sources_len", "loss_weights"; "" for kNone.
const char* weight_kind_name(WeightKind kind);

// The fields of a store of our own for those weights.
StoreFields store_fields(WeightKind weights);

// The arrays of a split. Row = document.
enum class ArrayId {
  kData,           // ids of all rows, one after another
  kOffsets,        // element 0: how many rows; element i: end of row i - 1 in data
  kDocument,       // of every row, its number in its file, from 1
  kBytes,          // ... the bytes of its text
  kBegin,          // ... where it begins in the unpacked file, in bytes (0 in a .parquet) ...
  kEnd,            // ... and ends
  kRowHash,        // ... 32 bytes: SHA-256 of its ids (u32) and, when not all are 1, weights (f32)
  kWeights,        // the field of the weights ...
  kWeightOffsets,  // ... with its own offsets, as Levanter has them
};
inline constexpr size_t kArrayCount = 9;
template <typename T>
using PerArray = std::array<std::array<T, kArrayCount>, 2>;  // [Split][ArrayId]

// An array of a split: its folder ("input_ids/data") and type.
struct ArrayPlace {
  ArrayId id = ArrayId::kData;
  std::string path;
  ElementType type = ElementType::kInt64;  // when it is made; `ids` for data
};

// The ends of rows, behind an element 0 that is their number.
inline bool is_offsets(ArrayId id) { return id == ArrayId::kOffsets || id == ArrayId::kWeightOffsets; }

// How many elements an array has for so many rows and tokens.
int64_t array_elements(ArrayId id, int64_t rows, int64_t tokens, WeightKind weights);

// What is kept about rows besides their ids.
enum class RowArrays {
  kNone,  // a Levanter cache
  kSome,  // kDocument and kBytes: the one-source form
  kAll,
};

// The arrays of a split, in the order of ArrayId.
std::vector<ArrayPlace> array_places(const StoreFields& fields, RowArrays rows,
                                     ElementType ids = ElementType::kInt64);

}  // namespace ostro::data
