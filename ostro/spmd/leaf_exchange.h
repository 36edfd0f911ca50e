// ExchangePlan: gradients that workers exchange inside the program (docs/spec/spmd.md, "Leaves in rounds").
// Each worker of the leaf axes runs the program on a leaf of its own, and the owner of a cell gets the cell's
// gradient of all leaves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"
#include "ostro/spmd/layout.h"

namespace ostro::spmd {

// The leaves that a round adds up. Worker w of the leaf axes (by its place among its peers, ascending ranks)
// has leaf w of the round. Entry i is the tree over the leaves [firsts[i], firsts[i] + counts[i]). These are
// the largest subtrees of the tree over all leaves of the batch that lie in the round, in ascending order.
// Workers in none of them have no leaf; their gradients are ignored.
struct LeafExchange {
  std::vector<int64_t> firsts, counts;
};

// The exchange of one gradient.
struct ExchangedGradient {
  // True: exchanged slice by slice in the body of the scan that stacks the slices. False: exchanged where the
  // program has made the whole gradient.
  bool in_scan = false;
  ir::Shape shape;     // of one exchange: the gradient, or one slice
  Layout sent, owned;  // of that shape: as a worker's leaf gives it, and as its owners keep it
  // Of the program's result: shape with an axis "part", of one index per subtree, in front; in front of both
  // the axis of the scan, if it is in one.
  ir::Shape result;
  Layout layout;
};

// Everything about the exchanges of a program that is the same for all workers.
struct ExchangePlan {
  LeafExchange leaves;
  std::string mesh_axes;                                  // the leaf axes as ir::Mesh::peers takes them
  std::vector<std::optional<ExchangedGradient>> results;  // by result of the program
  std::map<ir::ValueId, size_t> in_scans;                 // results of scans -> result of the program
};

// The plan for the results with Role::kGradient. An error when the owners of a gradient are not those of one
// mesh axis, or when a gradient is not f32.
Result<ExchangePlan> plan_exchange(const ir::Program& program, const Placement& placement,
                                   const std::vector<Role>& roles, const LeafExchange& leaves);

// Exchanges x, a value of the block in the layout `gradient.sent`, as soon as it is made. Returns the value
// that the owners keep. An error when the subtrees do not fit the mesh.
Result<ir::ValueId> add_exchange(ir::Block& block, ir::ValueId x, const ExchangePlan& plan,
                                 const ExchangedGradient& gradient, const ir::Mesh& mesh, int64_t rank);

}  // namespace ostro::spmd
