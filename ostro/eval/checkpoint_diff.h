// diff_checkpoints: compares the tensors of two checkpoints: those that they do not share, and by how much
// the others differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::eval {

// The comparison of one tensor, or of all.
struct TensorDiff {
  // kCast: one side's values are the other's, rounded as an export in the type `cast` rounds them.
  enum class Kind { kEqual, kCast, kChanged, kOnlyFirst, kOnlySecond, kOtherShape };
  std::string path;
  std::string first, second;  // types with shapes: "f32[layers:2, embed:64]"; empty on the side that lacks it
  Kind kind = Kind::kEqual;
  std::string cast;                   // of kCast: "bf16", "f16"
  bool first_is_cast = false;         // else the second
  int64_t elements = 0, changed = 0;  // of kEqual, kCast and kChanged; changed: of another value
  // Of second - first, in f64: largest absolute value, root of the mean square, and the norm divided by the
  // first's (nothing where that is 0).
  double max_abs = 0, rms = 0;
  std::optional<double> relative;
};

struct CheckpointSide {
  std::string path, state;
  int64_t step = 0;
};

struct CheckpointDiff {
  CheckpointSide first, second;
  std::vector<TensorDiff> tensors;  // in the order of the first, then those that only the second has
  TensorDiff all;                   // over all tensors that can be compared; without a path
  std::vector<std::string> config;  // differences: "optimizer.learning_rate: 0.1 -> 0.2"
  bool equal() const;               // tensors and configs
  bool tensors_equal() const;       // of one model, trained or imported
  // Not all are equal, but the values of one side are those of the other in a narrower type, the same in all
  // tensors: a tensor with it. Null: this is not so.
  const TensorDiff* cast() const;
};

struct DiffOptions {
  bool optimizer = false;   // also what is not a parameter: the optimizer's state
  std::string only = "**";  // a glob of paths
};

// Compares `first` and `second`, which are checkpoints, or runs (their newest checkpoints). All bytes that
// are compared are checked against the manifests; of tensors with equal hashes only the first is read.
// Errors: no checkpoint there; damage; a glob that matches no tensor of either.
Result<CheckpointDiff> diff_checkpoints(io::FileSystem& fs, const std::string& first,
                                        const std::string& second, const models::ModelChoices& models,
                                        const DiffOptions& options);

// The comparison as JSON.
std::string diff_json(const CheckpointDiff& diff);
// The comparison as a table for the terminal: changed tensors only, unless `all`.
std::string diff_table(const CheckpointDiff& diff, bool all);

}  // namespace ostro::eval
