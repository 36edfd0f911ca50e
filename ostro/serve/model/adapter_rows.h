// AdapterRows, side_by_side: the model with one adapter of a LayerRows that has several, or with none, as a
// runner of its own. The numbers of sequences are those of the LayerRows, so a step of any of its runners
// takes chunks of all, and their rows go through the layers together.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/infer/layer_rows.h"

namespace ostro::serve {

// Limits and memory are those of the LayerRows, for all its runners together. Not thread-safe, all of them
// together.
class AdapterRows final : public infer::RowRunner {
 public:
  // `program`: program_hash of the model with this adapter alone.
  AdapterRows(std::shared_ptr<infer::LayerRows> rows, int32_t adapter, std::string program)
      : rows_(std::move(rows)), adapter_(adapter), program_(std::move(program)) {}

  const infer::RowLimits& limits() const override { return rows_->limits(); }
  int64_t width() const override { return rows_->width(); }
  Status prepare() override { return rows_->prepare(); }
  Result<std::string> program_hash() override { return program_; }
  Result<int64_t> open() override { return rows_->open_with(adapter_); }
  void close(int64_t sequence) override { rows_->close(sequence); }
  int64_t length(int64_t sequence) const override { return rows_->length(sequence); }
  bool has_room(std::span<const infer::RowChunk> chunks, int64_t tokens) const override {
    return rows_->has_room(chunks, tokens);
  }
  int64_t reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner) override {
    return rows_->reuse(sequence, tokens, owner);
  }
  infer::CacheFacts cache_facts() const override { return rows_->cache_facts(); }
  Status copy(int64_t from, int64_t to, int64_t count) override { return rows_->copy(from, to, count); }
  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    return rows_->step(chunks);
  }

 private:
  std::shared_ptr<infer::LayerRows> rows_;
  const int32_t adapter_;
  const std::string program_;
};

// The same factor of several adapters as one array with nn::kAdaptersAxis, behind the axis of layers if they
// have it. In memory of the host.
Result<runtime::Buffer> side_by_side(std::vector<runtime::Buffer> factors);

}  // namespace ostro::serve
