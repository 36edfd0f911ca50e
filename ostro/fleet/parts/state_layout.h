// StateLayout: the places of the cells of a training state on the workers of a mesh. A value and pure
// functions.
#pragma once

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
  std::vector<ir::Shape> shapes;      // the shapes of the whole arrays
  std::vector<spmd::Layout> layouts;  // the layout of each array
  // By array: true for a parameter of which only one worker owns each element, and for its arrays of the
  // optimizer. (An array of the optimizer has no axis that its parameter lacks, so at least as many workers
  // own it.)
  std::vector<bool> owned_once;

  Region box(size_t k, int64_t rank) const;
};

StateLayout make_state_layout(const train::StateArrays& arrays, const spmd::Placement& placement);

// The region that two regions share; empty when they have no element in common.
Region common(const Region& a, const Region& b);
bool is_empty(const Region& box);
int64_t element_count(const Region& box);
// Copies the elements of `region` from an array that holds the elements of `from_box` to one that holds those
// of `to_box`. All are regions of one whole array; `size` is the bytes of an element.
void copy_region(const Region& region, const Region& from_box, const std::byte* from, const Region& to_box,
                 std::byte* to, int64_t size);

}  // namespace ostro::fleet
