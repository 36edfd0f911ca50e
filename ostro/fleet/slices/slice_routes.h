// SliceRoutes: who joins and who passes on each part of each array when workers are in several slices
// (docs/spec/spmd.md, "Slices"). A value and pure functions; there are no errors.
//
// Workers are named by their place among those that run different leaves. Arrays are numbered, and cut into
// parts, which are numbered from 0 in the order of the first worker that owns each.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ostro/fleet/slices/slices.h"
#include "ostro/spmd/layout.h"

namespace ostro::fleet {

class SliceRoutes {
 public:
  // `slice_of`: by place, ascending. `part_of`: of each array, by place, the part that the worker owns.
  SliceRoutes(std::vector<int64_t> slice_of, const std::vector<std::vector<int64_t>>& part_of);

  int64_t slices() const { return static_cast<int64_t>(members_.size()); }
  int64_t slice_of(int64_t place) const { return slice_of_[static_cast<size_t>(place)]; }
  // The places in a slice, ascending.
  const std::vector<int64_t>& members(int64_t slice) const { return members_[static_cast<size_t>(slice)]; }

  int64_t parts(size_t k) const { return static_cast<int64_t>(cut(k).owners.size()); }
  int64_t part_of(size_t k, int64_t place) const { return cut(k).part_of[static_cast<size_t>(place)]; }
  bool owned_in(size_t k, int64_t q, int64_t slice) const { return !owners(k, q, slice).empty(); }
  // The first place that owns part q of array k.
  int64_t first_owner(size_t k, int64_t q) const;
  // The place in the slice that joins this part, receives it from other slices and sends it there. It owns
  // the part, if a worker of the slice does.
  int64_t joiner(size_t k, int64_t q, int64_t slice) const;
  // The slices with an owner of the part, ascending. Its main slice is one of them: there the sums of all
  // slices are joined, and from there new parameters go to slices without an owner.
  std::vector<int64_t> owning_slices(size_t k, int64_t q) const;
  int64_t main_slice(size_t k, int64_t q) const;
  // The place in `slice` that receives what the worker at `place`, of another slice, sends to all workers,
  // and passes it on.
  int64_t receiver(int64_t place, int64_t slice) const;

 private:
  // Arrays with the same owners share one.
  struct Cut {
    std::vector<int64_t> part_of;
    std::vector<std::vector<std::vector<int64_t>>> owners;  // by part and slice: places
  };
  const Cut& cut(size_t k) const { return cuts_[cut_of_[k]]; }
  const std::vector<int64_t>& owners(size_t k, int64_t q, int64_t slice) const {
    return cut(k).owners[static_cast<size_t>(q)][static_cast<size_t>(slice)];
  }

  std::vector<int64_t> slice_of_, index_in_slice_;
  std::vector<std::vector<int64_t>> members_;
  std::vector<Cut> cuts_;
  std::vector<size_t> cut_of_;
};

// The routes of the workers that run different leaves: their ranks, ascending. `cuts`: by array, how workers
// of the mesh own it.
SliceRoutes routes_between(const Slices& slices, const ir::Mesh& mesh, const std::vector<spmd::Layout>& cuts,
                           const std::vector<int64_t>& peers);

}  // namespace ostro::fleet
