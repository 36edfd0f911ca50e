// Mesh, Sharding: a mesh of workers, and the two maps from named array axes to the mesh axes that split them.
// Values; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/ir/program/shape.h"

namespace ostro::ir {

// Workers form a grid with named axes, row-major: worker w has coordinate (w / stride) % size on each axis.
struct Mesh {
  std::vector<Axis> axes;
  // The number of workers.
  int64_t size() const {
    int64_t n = 1;
    for (const Axis& a : axes) n *= a.size;
    return n;
  }
  // Size of a mesh axis; 1 for an axis the mesh does not have.
  int64_t size_of(std::string_view name) const {
    for (const Axis& a : axes)
      if (a.name == name) return a.size;
    return 1;
  }
  // The workers that differ from `rank` only in their coordinates on these mesh axes, in ascending rank.
  // `axes` is one name, or several joined by '*', for instance "replica*data". An axis that the mesh does not
  // have has size 1.
  std::vector<int64_t> peers(int64_t rank, std::string_view axes) const;
};

// A map from array axes to mesh axes. It is ordered: when two axes of a value map to one mesh axis, the
// earlier in the map is the one that is split.
using AxisMap = std::vector<std::pair<std::string, std::string>>;  // array axis -> mesh axis

// The mesh with the maps of the two kinds of values.
struct Sharding {
  Mesh mesh;
  AxisMap compute;    // of activations and of the results of `use`
  AxisMap parameter;  // of parameters, gradients and optimizer state; FSDP is {embed -> data}
};

}  // namespace ostro::ir
