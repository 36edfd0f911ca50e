// WeightStore: the weights of a model that may be larger than memory. They are read from its checkpoint when
// they are asked for, and kept as long as there is room.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "ostro/checkpoint/part_reader.h"
#include "ostro/models/layer_functions.h"
#include "ostro/runtime/buffer.h"

namespace ostro::infer {

// Thread-safe.
class WeightStore {
 public:
  // `reader` has the parameters in the order of the model's paths; `held` has the shape and dtype in which
  // the model holds each. At most `keep_bytes` of weights are kept once they were read: the weights that
  // every token reads (`layers` names them), and experts in the room that these leave. Nothing is evicted:
  // access is cyclic over the layers, where keeping the newest would never hit.
  WeightStore(checkpoint::PartReader reader, std::vector<ir::Shape> held,
              const models::LayerFunctions& layers, int64_t keep_bytes);

  // The weights of `reads`, in this order; those that are by_expert stay empty.
  Result<std::vector<runtime::Buffer>> whole(std::span<const models::WeightRead> reads);
  // For each of `reads` that is by_expert, an array of `places` experts: place i has expert ids[i]. `places`
  // is at least the number of ids; places beyond are not initialised. The others of `reads` stay empty.
  Result<std::vector<runtime::Buffer>> experts(std::span<const models::WeightRead> reads,
                                               std::span<const int64_t> ids, int64_t places);
  // Rows of a matrix [rows, columns]: place i has row ids[i], places beyond are not initialised.
  Result<runtime::Buffer> rows(size_t parameter, std::span<const int32_t> ids, int64_t places);

  int64_t bytes_read() const { return reader_.bytes_read(); }
  int64_t bytes_kept() const;
  // The bytes of all weights that every token reads, as they are held.
  int64_t bytes_of_every_token() const { return every_token_bytes_; }

 private:
  using Key = std::pair<models::WeightRead, int64_t>;  // and the expert, or -1

  ir::Shape shape_of(const models::WeightRead& read) const;
  // Reads boxes of tensors as they are held, all at once.
  Status read_parts(std::vector<checkpoint::PartReader::Part> parts) const;
  runtime::Buffer find(const Key& key) const;
  // Keeps what `value` makes, of this shape, if there is room.
  void keep(const Key& key, const ir::Shape& shape, const std::function<runtime::Buffer()>& value);

  checkpoint::PartReader reader_;
  std::vector<ir::Shape> held_;
  int64_t keep_bytes_, every_token_bytes_ = 0;
  mutable std::mutex mutex_;
  std::map<Key, runtime::Buffer> kept_;
  int64_t kept_every_token_ = 0, kept_experts_ = 0;
};

}  // namespace ostro::infer
