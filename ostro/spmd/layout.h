// Placement, Layout: the division of a value over the workers of a mesh. It follows from the value's axis
// names and an ordered map alone (docs/spec/spmd.md); it is not propagated from op to op.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/ir/program/mesh.h"
#include "ostro/numerics/leaves.h"

namespace ostro::spmd {

// The split of one axis over one mesh axis. A default Split means that the axis is not split.
struct Split {
  std::string mesh_axis;        // "": whole
  std::vector<int64_t> bounds;  // coordinate c holds the indices [bounds[c], bounds[c + 1])
  // Coordinate c holds the feature leaves [leaves[c], leaves[c + 1]). Empty when the axis is not cut by
  // leaves, or when the coordinates do not hold whole subtrees of the tree over leaves. When it is empty, no
  // op can sum over the split axis.
  std::vector<int64_t> leaves;

  bool split() const { return !mesh_axis.empty(); }
  // Returns whether the axis is split over one of these mesh axes.
  bool over(const std::vector<std::string>& mesh_axes) const;
  // True when some coordinate holds no index. Such a split is not used: the axis stays whole.
  bool leaves_some_empty() const;
  // True when both place the same elements on the same workers.
  bool operator==(const Split& other) const { return mesh_axis == other.mesh_axis && bounds == other.bounds; }
};

// Returns the number of leaves, of `count`, that each coordinate takes so that each holds whole subtrees of
// the tree over the leaves (numerics.md N8): a power of two with which exactly `workers` coordinates get
// leaves. 0 if there is none.
int64_t subtree(int64_t count, int64_t workers);

// One Split per axis of a Shape.
using Layout = std::vector<Split>;

// The kind of a value. It decides which map its axis names are looked up in.
enum class Role {
  kActivation,  // the compute map; axes are cut at feature leaves
  kParameter,   // the parameter map; axes are cut at cells
  // A gradient of one leaf of the batch: as a parameter, but whole along the mesh axes that carry leaves,
  // where every worker has a gradient of its own.
  kGradient,
};

// axis -> number of cells (numerics.cells). The cells of an axis without an entry are its feature leaves.
using Cells = std::vector<std::pair<std::string, int64_t>>;

// Pairs of axes: an activation is split along the first axis of a pair only if it also has the second one. So
// (`experts`, `mlp`) splits the experts' weights and their gradients. The outputs of a router stay whole:
// they are small, and they are summed over the experts.
using Beside = std::vector<std::pair<std::string, std::string>>;

// Everything that decides which worker holds which part of a value. A value; read-only use is thread-safe.
struct Placement {
  ir::Sharding sharding;
  Cells cells;
  numerics::LeafTable leaves;               // of the program
  std::vector<std::string> leaf_axes = {};  // mesh axes that carry leaves of the batch
  Beside beside = {};

  const ir::AxisMap& map(Role role) const {
    return role == Role::kActivation ? sharding.compute : sharding.parameter;
  }
  // Returns whether `beside` lets a value of this role with these axes be split along `axis`.
  bool may_split(Role role, std::string_view axis, const std::vector<ir::Axis>& axes) const;
  // The split of `axis` of size n over the mesh axis: leaves by whole subtrees; cells, or indices where there
  // are no cells, as evenly as possible, so that no coordinate is empty while there are enough of them.
  Split split(Role role, std::string_view axis, int64_t n, const std::string& mesh_axis) const;
  // The layout of a value of this role. When two of its axes map to the same mesh axis, the one that comes
  // first in the map is split, provided that every coordinate gets a part of it.
  Layout layout(Role role, const ir::Shape& shape) const;
};

// Coordinate of worker `rank` along the mesh axis; 0 for an axis the mesh does not have.
int64_t coordinate(const ir::Mesh& mesh, int64_t rank, std::string_view mesh_axis);
// The first index and the number of indices that worker `rank` holds of an axis of this size with this split.
std::pair<int64_t, int64_t> held(const ir::Mesh& mesh, int64_t rank, const Split& split, int64_t size);
// The shape of worker `rank`'s part of a value.
ir::Shape local_shape(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const ir::Shape& shape);

}  // namespace ostro::spmd
