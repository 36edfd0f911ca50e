// StepRows: a RowRunner of a model that has nothing but a cached step (models::DecodeFunctions): sequences
// run one after the other, each with a cache of its own.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ostro/infer/row_runner.h"
#include "ostro/models/model_functions.h"
#include "ostro/numerics/leaves.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

// The engine must outlive it.
class StepRows final : public RowRunner {
 public:
  // Errors: as cache_shapes (decode_program.h); a number of pages, which it does not have.
  static Result<std::unique_ptr<StepRows>> create(const models::ModelFunctions& model,
                                                  std::vector<runtime::Buffer> params,
                                                  runtime::Engine& engine, const RowLimits& limits,
                                                  numerics::LeafTable leaves = {});

  const RowLimits& limits() const override { return limits_; }
  Status prepare() override;
  Result<std::string> program_hash() override;
  Result<int64_t> open() override;
  void close(int64_t sequence) override { sequences_.erase(sequence); }
  int64_t length(int64_t sequence) const override { return sequences_.at(sequence).length; }
  Status copy(int64_t from, int64_t to, int64_t count) override;
  Result<runtime::Buffer> step(std::span<const RowChunk> chunks) override;

 private:
  struct Sequence {
    std::vector<runtime::Buffer> cache;
    int64_t length = 0;
    std::vector<int32_t> tokens;
  };

  StepRows(const models::ModelFunctions& model, std::vector<runtime::Buffer> params, runtime::Engine& engine,
           const RowLimits& limits, numerics::LeafTable leaves, std::vector<ir::Shape> cache);

  // Runs some tokens of a sequence; returns their logits [batch, pos, vocab], padding included.
  Result<runtime::Buffer> feed(Sequence& sequence, std::span<const int32_t> tokens);
  Result<runtime::Executable*> program(int64_t rows);

  models::ModelFunctions model_;
  std::vector<runtime::Buffer> params_;
  runtime::Engine& engine_;
  RowLimits limits_;
  numerics::LeafTable leaves_;
  std::vector<ir::Shape> cache_;
  std::map<int64_t, Sequence> sequences_;
  std::map<int64_t, std::unique_ptr<runtime::Executable>> programs_;  // by rows
};

}  // namespace ostro::infer
