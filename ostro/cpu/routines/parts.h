// pack_parts, place_part, join_slices: what collectives do with memory: they put parts of a value together or
// to their places, and make the sums of what several workers sent. Bits depend on neither threads nor the
// times at which parts arrive.
#pragma once

#include <cstdint>
#include <span>

#include "ostro/compile/plan/exchange_parts.h"
#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {

using compile::check_join, compile::check_part, compile::Cut, compile::Peers;

// compile::peers_of for an op of the CPU.
inline Result<Peers> peers_of(const OpCall& call, const char* mesh_axes, size_t workers) {
  return compile::peers_of(call.kind, call.attrs, mesh_axes, workers, call.context.collectives);
}

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

}  // namespace ostro::cpu
