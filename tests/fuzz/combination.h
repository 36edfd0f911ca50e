// Combination, legal_combinations: the combinations of op, dtype and place that random programs must reach.
#pragma once

#include <string>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::fuzz {

enum class Place {
  anywhere,
  in_scan,
  differentiated,  // a derivative flows through it, or it computes one; f32 and bf16 only
  leaf_cut,        // contracts an axis of the leaf table in floating arithmetic
};

struct Combination {
  ir::OpKind kind;
  ir::DType dtype;  // dtype_of() the op
  Place place;
  auto operator<=>(const Combination&) const = default;
  std::string str() const;  // "dot bf16 in scan"
};

// Every legal one, collectives (put in by partitioning only) left out. In order.
const std::vector<Combination>& legal_combinations();

// The dtypes that dtype_of() an op may be.
std::vector<ir::DType> legal_dtypes(ir::OpKind kind);

// Whether the op may stand in a program that is differentiated, or its derivative brings it there.
bool has_derivative(ir::OpKind kind);

// The dtype an op is counted under: of its first operand that is data (of the result without operands).
ir::DType dtype_of(const ir::Op& op, const ir::Block& block);

// The axes over which an op adds, where leaves change its order.
std::vector<std::string> contracted_axes(const ir::Op& op, const ir::Block& block);

}  // namespace ostro::fuzz
