// model_mesh, check_differs, ...: programs, meshes and negative controls of the hand-written tests of
// partitioning.
#pragma once

#include <algorithm>
#include <functional>

#include "ostro/dist/loop_collectives.h"
#include "ostro/spmd/parts_for_test.h"
#include "ostro/trace/control.h"
#include "ostro/trace/frame.h"
#include "ostro/trace/ops.h"

namespace ostro::spmd {

// Feature axes and positions over one mesh axis.
inline PartitionOptions model_mesh(const ir::Program& p, int64_t workers) {
  PartitionOptions o;
  o.sharding.mesh.axes = {{"model", workers}};
  for (const char* axis : {"kv_heads", "mlp", "vocab", "pos"}) o.sharding.compute.emplace_back(axis, "model");
  o.params.assign(p.body.params.size(), Role::kActivation);
  o.results.assign(p.body.results.size(), Role::kActivation);
  return o;
}

inline ir::Program traced(const char* name, const std::vector<Shape>& shapes, numerics::LeafTable leaves,
                          const std::function<Arrays(const Arrays&)>& f) {
  ir::Program p = trace_program(name, shapes, f);
  p.leaves = std::move(leaves);
  return p;
}

inline const Axis kBatch{"batch", 2}, kPos{"pos", 300}, kMlp{"mlp", 100}, kEmbed{"embed", 12},
    kVocab{"vocab", 44};

// Returns whether some split gives every worker whole subtrees of the leaves.
inline bool fits(int64_t leaves, int64_t workers) {
  for (int64_t s = 1; s <= leaves; s *= 2)
    if ((leaves + s - 1) / s == workers) return true;
  return false;
}

// A copy of the parts with every op of the programs changed.
inline Partition with_ops(const Partition& parts, const std::function<void(ir::Op&)>& change) {
  Partition changed = parts;
  for (auto& program : changed.programs) {
    auto copy = std::make_shared<ir::Program>(*program);
    for (ir::Op& op : copy->body.ops) change(op);
    program = copy;
  }
  return changed;
}

// Checks that the changed parts give another result than `p`.
inline void check_differs(const ir::Program& p, const Partition& changed,
                          const std::vector<runtime::Buffer>& in) {
  const auto engine = test_engine();
  const auto whole = run_whole(*engine, p, in);
  auto joined = run_parts(*engine, changed, in, loop_workers(changed.mesh));
  REQUIRE_MESSAGE(joined.ok(), (joined.ok() ? "" : joined.error().message()));
  bool differs = false;
  for (size_t i = 0; i < whole.size(); ++i) differs |= !same_bits((*joined)[i], whole[i]);
  CHECK(differs);
}

// A group with the workers of `base` in another order. Does not own `base`.
class Rotated final : public runtime::Collectives {
 public:
  explicit Rotated(runtime::Collectives& base) : base_(base) {}
  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  int64_t bytes_sent() const override { return base_.bytes_sent(); }
  std::vector<int64_t> peers(std::string_view axis) const override {
    std::vector<int64_t> p = base_.peers(axis);
    std::rotate(p.begin(), p.begin() + 1, p.end());
    return p;
  }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    return base_.exchange(peers, send, receive);
  }

 private:
  runtime::Collectives& base_;
};

// Runs the parts with the workers in another order and returns whether some result differs. Only for parts
// whose collectives are sums, maxima and selections; the order changes only sums.
inline bool another_order_shows(const ir::Program& p, const Partition& parts,
                                const std::vector<runtime::Buffer>& in) {
  CHECK(count_ops(parts.programs[0]->body, ir::OpKind::all_gather) == 0);
  CHECK(count_ops(parts.programs[0]->body, ir::OpKind::reduce_scatter_tree) == 0);
  const auto engine = test_engine();
  const auto whole = run_whole(*engine, p, in);
  auto ring = run_parts(*engine, parts, in, [&](const std::function<Status(runtime::Collectives&)>& work) {
    return dist::run_workers(parts.mesh, [&](runtime::Collectives& c) {
      Rotated rotated(c);
      return work(rotated);
    });
  });
  REQUIRE(ring.ok());
  bool differs = false;
  for (size_t i = 0; i < whole.size(); ++i) differs |= !same_bits((*ring)[i], whole[i]);
  return differs;
}

}  // namespace ostro::spmd
