// Sizes: how many members an epoch may have. equal_slices: which members make slices of one size, where the
// mesh gives each slice whole coordinates of its axis replica (docs/spec/spmd.md, "Slices").
//
// Values and pure functions; any thread may use them, and there are no errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ostro::cluster {

struct Sizes {
  int64_t least = 1, most = 1;
  int64_t multiple = 1;  // the size is a multiple of this
  // The size of the mesh axis replica, where it is the outermost one: then workers work in two levels when
  // slices have one size and hold as many of its coordinates each, or work better. -1: as many as there are
  // members for. 0: slices may have any sizes.
  int64_t replicas = 0;
  // Equal slices are worth members: half of those that unequal ones would have are enough.
  bool equal_slices = false;
};

// A member that an epoch may take.
struct Candidate {
  int64_t slice = 0;   // a number: 0, 1, ... in the order of first members
  int64_t cells = -1;  // members with the same number hold the same cells of the state; -1: it holds none
};

// Members of one number hold the same cells when an epoch has so many members; -1: nothing is known.
int64_t cells_of(const Sizes& sizes, int64_t rank, int64_t size);

// The members of the largest epoch whose slices have one size, as ascending places in `candidates`; empty:
// the sizes want no such epoch, or it would leave out too many. Some slices may be left out as a whole: of
// those that are as large the later ones. Of a slice those are left out who hold no cells, then those whose
// cells most others hold, the last ones first. Where it can be, one that is taken holds each cell that a
// candidate of a taken slice holds.
std::vector<size_t> equal_slices(const std::vector<Candidate>& candidates, const Sizes& sizes);

}  // namespace ostro::cluster
