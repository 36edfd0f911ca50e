#include "ostro/fleet/slices/slice_routes.h"

#include <algorithm>
#include <map>

#include "ostro/base/check.h"

namespace ostro::fleet {

SliceRoutes::SliceRoutes(std::vector<int64_t> slice_of, const std::vector<std::vector<int64_t>>& part_of)
    : slice_of_(std::move(slice_of)) {
  for (size_t place = 0; place < slice_of_.size(); ++place) {
    const auto slice = static_cast<size_t>(slice_of_[place]);
    OSTRO_CHECK(slice + 1 >= members_.size() && slice <= members_.size(),
                "the worker in place {} is in slice {}, behind one of slice {}", place, slice,
                members_.size() - 1);
    if (slice == members_.size()) members_.emplace_back();
    index_in_slice_.push_back(static_cast<int64_t>(members_[slice].size()));
    members_[slice].push_back(static_cast<int64_t>(place));
  }
  for (const std::vector<int64_t>& parts : part_of) {
    const auto known =
        std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.part_of == parts; });
    cut_of_.push_back(static_cast<size_t>(known - cuts_.begin()));
    if (known != cuts_.end()) continue;
    Cut& cut = cuts_.emplace_back(Cut{parts, {}});
    for (size_t place = 0; place < parts.size(); ++place) {
      const auto q = static_cast<size_t>(parts[place]);
      if (q >= cut.owners.size())
        cut.owners.resize(q + 1, std::vector<std::vector<int64_t>>(members_.size()));
      cut.owners[q][static_cast<size_t>(slice_of_[place])].push_back(static_cast<int64_t>(place));
    }
  }
}

int64_t SliceRoutes::first_owner(size_t k, int64_t q) const {
  for (int64_t slice = 0; slice < slices(); ++slice)
    if (owned_in(k, q, slice)) return owners(k, q, slice).front();
  OSTRO_CHECK(false, "part {} of array {} has no owner", q, k);
}

std::vector<int64_t> SliceRoutes::owning_slices(size_t k, int64_t q) const {
  std::vector<int64_t> out;
  for (int64_t slice = 0; slice < slices(); ++slice)
    if (owned_in(k, q, slice)) out.push_back(slice);
  return out;
}

int64_t SliceRoutes::main_slice(size_t k, int64_t q) const {
  const std::vector<int64_t> all = owning_slices(k, q);
  return all[(k + static_cast<size_t>(q)) % all.size()];
}

// Several owners, and several arrays of one part, share the work: the array's number chooses.
int64_t SliceRoutes::joiner(size_t k, int64_t q, int64_t slice) const {
  const std::vector<int64_t>& own = owners(k, q, slice);
  if (!own.empty()) return own[k % own.size()];
  return members(slice)[static_cast<size_t>(q) % members(slice).size()];
}

int64_t SliceRoutes::receiver(int64_t place, int64_t slice) const {
  const auto index = static_cast<size_t>(index_in_slice_[static_cast<size_t>(place)]);
  return members(slice)[index % members(slice).size()];
}

// Slices are numbered anew without those that have none of the peers, and parts in the order of their first
// owners.
SliceRoutes routes_between(const Slices& slices, const ir::Mesh& mesh, const std::vector<spmd::Layout>& cuts,
                           const std::vector<int64_t>& peers) {
  std::vector<int64_t> slice_of;
  for (size_t i = 0; i < peers.size(); ++i)
    slice_of.push_back(i == 0 ? 0 : slice_of.back() + (slices.apart(peers[i - 1], peers[i]) ? 1 : 0));
  std::vector<std::vector<int64_t>> part_of(cuts.size());
  for (size_t k = 0; k < cuts.size(); ++k) {
    std::map<std::vector<int64_t>, int64_t> numbers;
    for (const int64_t rank : peers) {
      std::vector<int64_t> at;
      for (const spmd::Split& s : cuts[k])
        if (s.split()) at.push_back(spmd::coordinate(mesh, rank, s.mesh_axis));
      part_of[k].push_back(
          numbers.emplace(std::move(at), static_cast<int64_t>(numbers.size())).first->second);
    }
  }
  return {std::move(slice_of), part_of};
}

}  // namespace ostro::fleet
