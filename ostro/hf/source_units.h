// Unit, read_unit: the weights of a Hugging Face directory in the pieces in which they are read: of a
// parameter that is stacked one layer, or one expert of a layer; else the whole parameter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/hf/source.h"

namespace ostro::hf {

struct Unit {
  size_t parameter = 0;
  int64_t cell = 0;  // counted as the cells of an import are stored, experts fastest
  std::vector<SourcePart> parts;
};

// The number of leading axes along which tensors of the file are stacked. A router's axis "experts" is not
// among them, since it is the rows of one tensor; the last axis always belongs to a tensor (a router's bias).
size_t stacking_axes(const ir::Shape& shape);
// The shape of a unit: that of the parameter, with one layer and one expert.
ir::Shape unit_shape(ir::Shape shape);
// Returns all units, in the order of the parameters, and of their cells.
std::vector<Unit> units_of(const Source& source);
// Fills `values`, the elements of a unit, row-major. Errors: a tensor that cannot be read, or has an element
// that is infinite or NaN.
Status read_unit(const Source& source, const Unit& unit, std::span<float> values, int threads);

}  // namespace ostro::hf
