// Peers, Cut, join_slices: what collectives have in common.
//
// They find the parts of a value that workers own, and make the sums of what several workers sent. Bits
// depend on neither threads nor the times at which parts arrive.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {

// The workers of a collective, in their order, and this one's place among them.
struct Peers {
  std::vector<int64_t> ranks;
  size_t me = 0;
};
// `mesh_axes` is the name of the op's attribute, `workers` how many the op was made for. Errors: the run has
// no Collectives; other workers.
Result<Peers> peers_of(const OpCall& call, const char* mesh_axes, size_t workers);

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

// Puts x, whose elements have this size, part by part, so that each lies together.
void pack_parts(const char* x, const Cut& cut, int64_t size, char* packed, machine::ThreadPool& pool);
// Puts one part, which lies together, to its place in x.
void place_part(const char* from, const Cut& cut, size_t part, int64_t size, char* x,
                machine::ThreadPool& pool);

// out = the values of `n` elements at slices[0], slices[1], ..., joined as the op says: by the tree of N8, by
// their maximum, as integers or as bits. `out` may be none of the slices. An error for a dtype that the op
// does not take, before anything is written.
Status join_slices(ir::OpKind kind, ir::DType dtype, std::span<const char* const> slices, int64_t n,
                   char* out, machine::ThreadPool& pool);
// The error of join_slices alone.
Status check_join(ir::OpKind kind, const ir::Shape& x);

}  // namespace ostro::cpu
