#include "ostro/fleet/slices/slices.h"

#include <doctest/doctest.h>

#include "ostro/fleet/slices/slice_routes.h"

namespace ostro::fleet {
namespace {

TEST_CASE("slices: names of neighbours make them; a slice of the replica axis has a mesh of its own") {
  CHECK_FALSE(Slices().several());
  CHECK_FALSE(Slices({}, 3).several());
  CHECK_FALSE(Slices({"a", "a"}, 2).several());
  const Slices slices({"b", "b", "a", "a", "b"}, 5);
  CHECK(slices.count() == 3);
  CHECK(slices.of(1) == 0);
  CHECK(slices.of(4) == 2);
  CHECK(slices.apart(0, 4));
  const std::vector<int64_t> peers{1, 2, 4};
  const std::vector<std::byte> bytes(7);
  const std::vector<std::span<const std::byte>> send{bytes, bytes, std::span(bytes).first(2)};
  CHECK(slices.between(0, peers, send) == 9);
  CHECK(slices.between(2, peers, send) == 9);

  const ir::Mesh mesh{{{"replica", 4}, {"data", 2}, {"model", 1}}};
  const Slices halves({"a", "a", "a", "a", "b", "b", "b", "b"}, 8);
  const SliceMesh half = replica_slices(mesh, halves);
  CHECK(half.mesh.size() == 4);
  CHECK(half.mesh.size_of("replica") == 2);
  CHECK(half.ranks == std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(replica_slices({{{"replica", 1}, {"data", 8}}}, halves).ranks.empty());
  CHECK(replica_slices(mesh, Slices({"a", "a", "a", "b", "b", "b", "b", "b"}, 8)).ranks.empty());
  CHECK(replica_slices({{{"data", 2}, {"replica", 4}}}, halves).ranks.empty());
}

TEST_CASE("slices: every part has one joiner in each slice, an owner if there is one; the work is shared") {
  const SliceRoutes routes({0, 0, 1, 1, 1},
                           {{0, 1, 2, 3, 4}, {0, 0, 0, 0, 0}, {0, 1, 0, 1, 0}, {0, 0, 0, 0, 0}});
  CHECK(routes.slices() == 2);
  CHECK(routes.members(1) == std::vector<int64_t>{2, 3, 4});
  for (int64_t q = 0; q < 5; ++q) {
    CHECK(routes.first_owner(0, q) == q);
    CHECK(routes.joiner(0, q, routes.slice_of(q)) == q);
    CHECK(routes.owned_in(0, q, 0) == (q < 2));
  }
  CHECK(routes.joiner(0, 2, 0) == 0);
  CHECK(routes.joiner(0, 3, 0) == 1);
  CHECK(routes.joiner(0, 1, 1) == 3);
  CHECK(routes.main_slice(0, 4) == 1);
  CHECK(routes.owning_slices(0, 4) == std::vector<int64_t>{1});
  CHECK(routes.owning_slices(2, 1) == std::vector<int64_t>{0, 1});
  CHECK(routes.main_slice(2, 0) == 0);
  CHECK(routes.main_slice(2, 1) == 1);
  CHECK(routes.main_slice(1, 0) == 1);
  // Those that all own are joined in turn.
  CHECK(routes.parts(1) == 1);
  CHECK(routes.joiner(1, 0, 0) == 1);
  CHECK(routes.joiner(3, 0, 1) == 2);
  CHECK(routes.joiner(2, 0, 1) == 2);
  CHECK(routes.joiner(2, 1, 1) == 3);
  CHECK(routes.receiver(4, 0) == 0);
  CHECK(routes.receiver(1, 1) == 3);
}

}  // namespace
}  // namespace ostro::fleet
