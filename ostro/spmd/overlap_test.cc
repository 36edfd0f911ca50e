// Exchanges go on while a program runs, and no bit depends on when they end: the layers of a Llama under
// FSDP, whose weights are gathered and whose gradients are exchanged in loops, over a transport that delivers
// as late as it may.
#include <optional>

#include "ostro/dist/loop_collectives.h"
#include "ostro/spmd/late_collectives_for_test.h"
#include "ostro/spmd/llama_for_test.h"
#include "ostro/spmd/parts_for_test.h"

namespace ostro::spmd {
namespace {

using runtime::Buffer;

struct Outcome {
  std::vector<std::vector<Buffer>> results;  // by worker
  size_t most = 0;                           // exchanges that were on their way at a time, at one worker
};

// One round of leaves under FSDP. Without a delivery: over the threads' own transport.
Outcome run(runtime::Engine& engine, DType compute, int64_t workers, std::optional<Delivery> delivery) {
  size_t n = 0;
  const ir::Program p = test_llama(false, compute, 9, {}, &n);
  PartitionOptions o = llama_options(p, n);
  std::fill_n(o.results.begin() + 2, n, Role::kGradient);
  o.sharding.mesh.axes = {{"data", workers}};
  o.sharding.parameter = {{"embed", "data"}};
  o.cells = {{"embed", 10}};
  o.leaf_axes = {"data"};
  o.exchange = LeafExchange{{0}, {workers}};
  const auto parts = partition(p, o);
  REQUIRE_MESSAGE(parts.ok(), (parts.ok() ? "" : parts.error().message()));
  const std::vector<Buffer> whole = llama_inputs(p, n);
  Outcome out;
  out.results.resize(static_cast<size_t>(workers));
  const Status status = dist::run_workers(parts->mesh, [&](runtime::Collectives& group) -> Status {
    const auto rank = static_cast<size_t>(group.rank());
    Late late(group, delivery.value_or(Delivery::kLate));
    ASSIGN_OR_RETURN(auto executable, engine.compile(*parts->programs[rank]));
    std::vector<Buffer> inputs;
    for (size_t i = 0; i < whole.size(); ++i)
      inputs.push_back(
          i < n ? shard(parts->mesh, group.rank(), parts->params[i], whole[i])
                : test_input(whole[i].shape(), static_cast<uint32_t>(100 * rank + i), kLlamaVocab));
    for (int run = 0; run < 2; ++run) {  // the second with the memory of the first
      ASSIGN_OR_RETURN(out.results[rank], executable->run(inputs, {delivery ? &late : &group}));
    }
    if (rank == 0) out.most = late.most;
    return Status();
  });
  REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message()));
  return out;
}

bool same(const Outcome& a, const Outcome& b) {
  for (size_t w = 0; w < a.results.size(); ++w)
    for (size_t i = 0; i < a.results[w].size(); ++i)
      if (!same_bits(a.results[w][i], b.results[w][i])) return false;
  return true;
}

TEST_CASE("exchanges overlap with each other and with the layers, and no bit depends on when they end") {
  const auto compiled = compiled_engine(), plain = test_engine();
  for (const DType compute : {DType::f32, DType::bf16})
    for (const int64_t workers : {2, 3}) {
      const Outcome late = run(*compiled, compute, workers, Delivery::kLate);
      CHECK(late.most >= 3);
      CHECK(same(late, run(*compiled, compute, workers, std::nullopt)));
      CHECK(same(late, run(*plain, compute, workers, std::nullopt)));
      // The control: what is never delivered is seen.
      CHECK(!same(late, run(*compiled, compute, workers, Delivery::kNever)));
    }
}

}  // namespace
}  // namespace ostro::spmd
