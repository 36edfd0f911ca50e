// ForwardingRunner: a RowRunner that does what another one does; one that does a part of it otherwise derives
// from it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ostro/infer/row_runner.h"

namespace ostro::serve {

// Not thread-safe, together with all that forward to the same runner.
class ForwardingRunner : public infer::RowRunner {
 public:
  explicit ForwardingRunner(std::shared_ptr<infer::RowRunner> inner) : inner_(std::move(inner)) {}

  const infer::RowLimits& limits() const override { return inner_->limits(); }
  int64_t width() const override { return inner_->width(); }
  Status prepare() override { return inner_->prepare(); }
  Result<std::string> program_hash() override { return inner_->program_hash(); }
  Result<int64_t> open() override { return inner_->open(); }
  void close(int64_t sequence) override { inner_->close(sequence); }
  int64_t length(int64_t sequence) const override { return inner_->length(sequence); }
  bool has_room(std::span<const infer::RowChunk> chunks, int64_t tokens) const override {
    return inner_->has_room(chunks, tokens);
  }
  infer::CacheFacts cache_facts() const override { return inner_->cache_facts(); }
  int64_t reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner) override {
    return inner_->reuse(sequence, tokens, owner);
  }
  Status copy(int64_t from, int64_t to, int64_t count) override { return inner_->copy(from, to, count); }
  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    return inner_->step(chunks);
  }

 private:
  std::shared_ptr<infer::RowRunner> inner_;
};

}  // namespace ostro::serve
