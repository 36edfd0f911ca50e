// Slices: which workers are in one slice, a group with fast links among them. Links between slices are slow
// (docs/spec/spmd.md, "Slices"). WithinSlice, BetweenSlices: a worker's group as seen from its slice.
//
// Slices are values; any thread may use them. The groups are for the thread of their worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/ir/program/mesh.h"
#include "ostro/runtime/forwarded_collectives.h"

namespace ostro::fleet {

inline constexpr const char* kReplicaAxis = "replica";

// Workers whose ranks are neighbours and whose slices have one name are in one slice.
class Slices {
 public:
  Slices() = default;
  // `names`: of the slice of each worker, by rank; empty: all are in one.
  Slices(const std::vector<std::string>& names, int64_t workers);

  bool several() const { return count_ > 1; }
  int64_t count() const { return count_; }
  // The slice of a worker: slices are numbered from 0 in the order of ranks.
  int64_t of(int64_t rank) const { return of_.empty() ? 0 : of_[static_cast<size_t>(rank)]; }
  bool apart(int64_t a, int64_t b) const { return of(a) != of(b); }
  // Of the bytes of an exchange, those that `rank` sends to other slices.
  int64_t between(int64_t rank, std::span<const int64_t> peers,
                  std::span<const std::span<const std::byte>> send) const;

 private:
  std::vector<int64_t> of_;
  int64_t count_ = 1;
};

// The mesh of one slice, and the rank in it of the worker `rank` of the whole mesh. Each slice has the
// coordinates [slice * size, (slice + 1) * size) of the mesh axis replica, and all of the other axes.
struct SliceMesh {
  ir::Mesh mesh;
  std::vector<int64_t> ranks;  // in the mesh of its slice, by rank in the whole mesh
};
// Nothing (no axes) when the slices of the mesh are others.
SliceMesh replica_slices(const ir::Mesh& mesh, const Slices& slices);

// The group as a program sees it that is partitioned over one slice: the workers of other slices are no
// peers. `group` and `slices` must outlive it.
class WithinSlice final : public runtime::ForwardedCollectives {
 public:
  WithinSlice(runtime::Collectives& group, const Slices& slices)
      : ForwardedCollectives(group), slices_(slices) {}
  std::vector<int64_t> peers(std::string_view mesh_axes) const override;

 private:
  const Slices& slices_;
};

// Counts the bytes that a worker sends to other slices. `group` and `slices` must outlive it.
class BetweenSlices final : public runtime::ForwardedCollectives {
 public:
  BetweenSlices(runtime::Collectives& group, const Slices& slices)
      : ForwardedCollectives(group), slices_(slices) {}
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    bytes_ += slices_.between(rank(), peers, send);
    return ForwardedCollectives::exchange(peers, send, receive);
  }
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    bytes_ += slices_.between(rank(), peers, send);
    return ForwardedCollectives::start(peers, send, receive);
  }
  int64_t bytes() const { return bytes_; }

 private:
  const Slices& slices_;
  int64_t bytes_ = 0;
};

}  // namespace ostro::fleet
