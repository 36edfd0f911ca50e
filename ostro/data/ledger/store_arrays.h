// ArrayId, StoreFields, WeightKind: the arrays of a split of a token store, and their folders
// (docs/reference/formats/token_store.md). Values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ostro/data/ledger/element_type.h"

namespace ostro::data {

// The form in which a store keeps loss weights. The weight of token i is that of predicting it from the
// tokens before it. The arrays are those of Levanter.
enum class WeightKind {
  kNone,            // all weights are 1
  kAssistantMasks,  // chat: 0 or 1 for every token (int32)
  // supervised: for every row, how many tokens at its beginning have weight 0 (int32); the others have 1
  kSourcesLen,
  kLossWeights,  // prebuilt: a weight for every token (float32)
  kPairParts,    // preference: the part of its pair that every token belongs to (int32, pair_parts.h)
};

// The names of the folders that hold ids and weights, below cache_dir/train and cache_dir/validation.
struct StoreFields {
  std::string ids = "input_ids";
  WeightKind weights = WeightKind::kNone;
  std::string weights_name;  // as weight_kind_name, or a field of the rows; empty without weights
  bool operator==(const StoreFields&) const = default;
};

// "assistant_masks", "sources_len", "loss_weights" or "pair_parts"; "" for kNone.
const char* weight_kind_name(WeightKind kind);

// The fields that our own stores have for these weights.
StoreFields store_fields(WeightKind weights);

// The arrays of a split. A row is a document.
enum class ArrayId {
  kData,           // token ids of all rows, one row after another
  kOffsets,        // element 0: number of rows; element i: end of row i - 1 in the data
  kDocument,       // for every row: its number in its file, from 1
  kBytes,          // for every row: bytes of its text
  kBegin,          // for every row: the byte of the unpacked file where it begins (0 in a .parquet)
  kEnd,            // for every row: the byte where it ends
  kRowHash,        // for every row: 32 bytes, SHA-256 of its ids (u32) and, when not all are 1, weights (f32)
  kWeights,        // loss weights, in the form of WeightKind
  kWeightOffsets,  // offsets of kWeights, as Levanter has them
};
inline constexpr size_t kArrayCount = 9;
template <typename T>
using PerArray = std::array<std::array<T, kArrayCount>, 2>;  // [Split][ArrayId]

// An array of a split: its folder (e.g. "input_ids/data") and its type.
struct ArrayPlace {
  ArrayId id = ArrayId::kData;
  std::string path;
  ElementType type = ElementType::kInt64;  // for a new array; data has the type `ids`
};

// Whether the array holds row ends, with the number of rows as element 0.
inline bool is_offsets(ArrayId id) { return id == ArrayId::kOffsets || id == ArrayId::kWeightOffsets; }

// The number of elements of an array, for this many rows and tokens.
int64_t array_elements(ArrayId id, int64_t rows, int64_t tokens, WeightKind weights);

// Which arrays about rows a store has, besides ids and weights.
enum class RowArrays {
  kNone,  // a Levanter cache
  kSome,  // kDocument and kBytes: a configuration without components
  kAll,
};

// The arrays of a split, in the order of ArrayId.
std::vector<ArrayPlace> array_places(const StoreFields& fields, RowArrays rows,
                                     ElementType ids = ElementType::kInt64);

}  // namespace ostro::data
