// ScoreProgram: the program of an entry that scores texts, compiled with the parameters of its last state.
//
// It is a program as data. Its parameters are parameters of the model, by name and shape, and of a batch:
// tokens and targets (i32 [batch, pos]), loss_mask (f32 [batch, pos], all ones) and segments (i32
// [batch, pos], all zeros). Its first result is per_token, f32 [batch, pos]. One thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/programs/state_arrays.h"

namespace ostro::board {

// The most positions of a row, and of all rows that a program takes at once.
inline constexpr int64_t kMostPositions = int64_t{1} << 20, kMostBatchPositions = int64_t{1} << 24;

class ScoreProgram {
 public:
  // Checks the program against the model's parameters. Error: kInvalidArgument, with the parameter or result
  // that is not as above.
  static Result<ScoreProgram> create(ir::Program program, const audit::RecordedRun& run);

  const ir::Program& program() const { return program_; }
  int64_t batch() const { return batch_; }
  int64_t length() const { return length_; }
  // The operations of scoring so many rows.
  double flops(int64_t rows) const;

  // Compiles it, with the parameters of the checkpoint in a directory. `engine` must outlive this. Errors:
  // those of compiling and reading.
  Status load(io::FileSystem& fs, runtime::Engine& engine, const std::string& checkpoint);

  // The losses of any number of rows (Scorer). load() has been called.
  Result<std::vector<float>> score(std::span<const int32_t> tokens, std::span<const int32_t> targets) const;

 private:
  enum class Input { kParameter, kTokens, kTargets, kLossMask, kSegments };
  ScoreProgram() = default;
  Status take_inputs(const audit::RecordedRun& run);

  ir::Program program_;
  int64_t batch_ = 0, length_ = 0;
  std::vector<Input> inputs_;
  std::vector<std::string> arrays_;  // by input: the array of a checkpoint; empty: of the batch
  std::vector<runtime::Buffer> values_;
  std::unique_ptr<runtime::Executable> executable_;
};

}  // namespace ostro::board
