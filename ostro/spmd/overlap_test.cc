// Exchanges go on while a program runs, and no bit depends on when they end: the layers of a Llama under
// FSDP, whose weights are gathered and whose gradients are exchanged in loops, over a transport that delivers
// as late as it may.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "ostro/dist/loop_collectives.h"
#include "ostro/spmd/llama_for_test.h"
#include "ostro/spmd/parts_for_test.h"

namespace ostro::spmd {
namespace {

using runtime::Buffer;

enum class Delivery { kLate, kNever };

// Delivers at wait(). Until then what is received is rubbish, and what is sent must not change.
class Late final : public runtime::Collectives {
 public:
  Late(runtime::Collectives& inner, Delivery delivery) : inner_(inner), delivery_(delivery) {}

  int64_t rank() const override { return inner_.rank(); }
  int64_t size() const override { return inner_.size(); }
  std::vector<int64_t> peers(std::string_view axes) const override { return inner_.peers(axes); }
  int64_t bytes_sent() const override { return inner_.bytes_sent(); }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    return inner_.exchange(peers, send, receive);
  }
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    Open open;
    for (const auto s : send) open.sent.emplace_back(s, std::vector<std::byte>(s.begin(), s.end()));
    for (const auto r : receive) {
      std::fill(r.begin(), r.end(), std::byte{0x5a});
      open.received.emplace_back(r, std::vector<std::byte>(r.size()));
    }
    std::vector<std::span<std::byte>> into;
    for (auto& [to, bytes] : open.received) into.emplace_back(bytes);
    ASSIGN_OR_RETURN(const int64_t ticket, inner_.start(peers, send, into));
    open_.emplace(ticket, std::move(open));
    most = std::max(most, open_.size());
    return ticket;
  }
  Status wait(int64_t ticket) override {
    RETURN_IF_ERROR(inner_.wait(ticket));
    const Open open = std::move(open_.extract(ticket).mapped());
    for (const auto& [span, bytes] : open.sent)
      if (!std::equal(span.begin(), span.end(), bytes.begin()))
        return invalid_argument("what an exchange sends was overwritten");
    for (const auto& [to, bytes] : open.received)
      if (!bytes.empty() && delivery_ == Delivery::kLate) std::memcpy(to.data(), bytes.data(), bytes.size());
    return Status();
  }

  size_t most = 0;  // exchanges on their way at a time

 private:
  struct Open {
    std::vector<std::pair<std::span<const std::byte>, std::vector<std::byte>>> sent;
    std::vector<std::pair<std::span<std::byte>, std::vector<std::byte>>> received;
  };
  runtime::Collectives& inner_;
  const Delivery delivery_;
  std::map<int64_t, Open> open_;
};

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
