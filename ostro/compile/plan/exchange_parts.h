// Peers, Cut, check_join: what the routines of exchanges between workers have in common in every engine: who
// takes part, which parts of a value each of them owns, and which values can be joined. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/runtime/collectives.h"

namespace ostro::compile {

// The workers of a collective, in their order, and this one's place among them.
struct Peers {
  std::vector<int64_t> ranks;
  size_t me = 0;
};
// `mesh_axes` is the name of the op's attribute, `workers` how many the op was made for. `group` may be null.
// Errors: the run has no Collectives; other workers.
Result<Peers> peers_of(ir::OpKind kind, const ir::Attrs& attrs, const char* mesh_axes, size_t workers,
                       runtime::Collectives* group);

// x as [before, cut axis, inner], and where the parts of the cut axis begin. All counts are in elements.
struct Cut {
  int64_t before = 1, inner = 1;
  std::vector<int64_t> bounds;

  // The axis and its bounds; "": all of x is the only part.
  Cut(const ir::Shape& x, const std::string& axis, const std::vector<int64_t>& bounds);
  // Elements in a row.
  explicit Cut(std::vector<int64_t> parts) : bounds(std::move(parts)) {}

  // Where part c begins when the parts lie one behind the other, and its elements.
  int64_t start(size_t part) const { return bounds[part] * before * inner; }
  int64_t count(size_t part) const { return start(part + 1) - start(part); }
  // Whether the parts lie one behind the other in x itself.
  bool together() const { return before == 1; }
};

// Error: this op does not join values of this dtype.
Status check_join(ir::OpKind kind, const ir::Shape& x);
// Error: x, which an op of this kind takes or makes, has other elements than this part of the cut.
Status check_part(ir::OpKind kind, const Cut& cut, size_t part, const ir::Shape& x);

}  // namespace ostro::compile
