// AdapterRows, side_by_side: the model with one adapter of a LayerRows that has several, or with none, as a
// runner of its own. The numbers of sequences are those of the LayerRows, so a step of any of its runners
// takes chunks of all, and their rows go through the layers together.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/infer/layer_rows.h"
#include "ostro/serve/model/forwarding_runner.h"

namespace ostro::serve {

// Limits and memory are those of the LayerRows, for all its runners together. Not thread-safe, all of them
// together.
class AdapterRows final : public ForwardingRunner {
 public:
  // `program`: program_hash of the model with this adapter alone.
  AdapterRows(const std::shared_ptr<infer::LayerRows>& rows, int32_t adapter, std::string program)
      : ForwardingRunner(rows), rows_(*rows), adapter_(adapter), program_(std::move(program)) {}

  Result<std::string> program_hash() override { return program_; }
  Result<int64_t> open() override { return rows_.open_with(adapter_); }

 private:
  infer::LayerRows& rows_;  // which the base class holds
  const int32_t adapter_;
  const std::string program_;
};

// The same factor of several adapters as one array with nn::kAdaptersAxis, behind the axis of layers if they
// have it. In memory of the host.
Result<runtime::Buffer> side_by_side(std::vector<runtime::Buffer> factors);

}  // namespace ostro::serve
