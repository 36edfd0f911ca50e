// diff_checkpoints: compares two checkpoints: which tensors they do not share, and by how much the others
// differ. Any thread may call.
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
  // kCast: the values of one side are those of the other, rounded as an export in the type `cast` rounds.
  enum class Kind { kEqual, kCast, kChanged, kOnlyFirst, kOnlySecond, kOtherShape };
  std::string path;
  std::string first, second;  // types with shapes: "f32[layers:2, embed:64]"; empty on the side that lacks it
  Kind kind = Kind::kEqual;
  std::string cast;                   // for kCast: "bf16", "f16"
  bool first_is_cast = false;         // for kCast: the first side is the rounded one, else the second
  int64_t elements = 0, changed = 0;  // for kEqual, kCast and kChanged: all elements, and those that differ
  // The difference second - first, in f64: the largest absolute value, the root of the mean square, and the
  // norm divided by that of the first (nothing when that is 0).
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
  // When not all tensors are equal, but all values of one side are those of the other in one narrower type:
  // one of the tensors of kind kCast. Otherwise null.
  const TensorDiff* cast() const;
};

struct DiffOptions {
  bool optimizer = false;   // compare also the optimizer's state
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
