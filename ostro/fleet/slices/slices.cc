#include "ostro/fleet/slices/slices.h"

#include <algorithm>

#include "ostro/base/check.h"
#include "ostro/spmd/layout.h"

namespace ostro::fleet {
Slices::Slices(const std::vector<std::string>& names, int64_t workers) {
  if (names.empty()) return;
  OSTRO_CHECK(static_cast<int64_t>(names.size()) == workers, "the slices of {} workers, of {}", names.size(),
              workers);
  int64_t slice = 0;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    if (rank > 0 && names[rank] != names[rank - 1]) ++slice;
    of_.push_back(slice);
  }
  count_ = slice + 1;
}

int64_t Slices::between(int64_t rank, std::span<const int64_t> peers,
                        std::span<const std::span<const std::byte>> send) const {
  int64_t bytes = 0;
  if (!several()) return bytes;
  for (size_t i = 0; i < std::min(peers.size(), send.size()); ++i)
    if (peers[i] >= 0 && peers[i] < static_cast<int64_t>(of_.size()) && apart(peers[i], rank))
      bytes += static_cast<int64_t>(send[i].size());
  return bytes;
}

SliceMesh replica_slices(const ir::Mesh& mesh, const Slices& slices) {
  SliceMesh out;
  const int64_t replicas = mesh.size_of(kReplicaAxis);
  if (!slices.several() || replicas % slices.count() != 0) return out;
  const int64_t each = replicas / slices.count();
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    if (spmd::coordinate(mesh, rank, kReplicaAxis) / each != slices.of(rank)) return out;
  out.mesh = mesh;
  for (ir::Axis& axis : out.mesh.axes)
    if (axis.name == kReplicaAxis) axis.size = each;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    int64_t inside = 0;
    for (const ir::Axis& axis : out.mesh.axes)
      inside = inside * axis.size + spmd::coordinate(mesh, rank, axis.name) % axis.size;
    out.ranks.push_back(inside);
  }
  return out;
}

std::vector<int64_t> WithinSlice::peers(std::string_view mesh_axes) const {
  std::vector<int64_t> all = ForwardedCollectives::peers(mesh_axes);
  std::erase_if(all, [this](int64_t peer) { return slices_.apart(peer, rank()); });
  return all;
}

}  // namespace ostro::fleet
