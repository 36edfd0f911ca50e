// StateLayout: where the cells of a training state are, on the workers of a mesh.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/runtime/buffer.h"
#include "ostro/spmd/layout.h"
#include "ostro/train/programs/state_arrays.h"

namespace ostro::fleet {

// Indices [first, second) of each axis.
using Region = std::vector<std::pair<int64_t, int64_t>>;

// The elements of every array of a state that each worker holds. It does not change after it is made.
struct StateLayout {
  ir::Mesh mesh;
  std::vector<ir::Shape> shapes;      // of whole arrays
  std::vector<spmd::Layout> layouts;  // of each
  // The parameters of which only one worker owns each element, and their arrays of the optimizer. (Another
  // array of the optimizer is owned by as many as its parameter, or by more: it has no axis that the other
  // lacks.)
  std::vector<bool> owned_once;

  Region box(size_t k, int64_t rank) const;
  ir::Shape local_shape(size_t k, int64_t rank) const;
};

StateLayout make_state_layout(const train::StateArrays& arrays, const spmd::Placement& placement);

// Empty when they have no element in common.
Region common(const Region& a, const Region& b);
bool is_empty(const Region& box);
int64_t element_count(const Region& box);
// Copies the elements of `region` between arrays that hold the elements of their boxes. All boxes are of one
// whole array; `size` is the bytes of an element.
void copy_region(const Region& region, const Region& from_box, const std::byte* from, const Region& to_box,
                 std::byte* to, int64_t size);

}  // namespace ostro::fleet
