#include "ostro/dist/checked_group.h"

#include <atomic>

#include "ostro/dist/group_cases_for_test.h"
#include "ostro/dist/loop_collectives.h"

namespace ostro::dist {
namespace {

// A worker of a LoopGroup as a group, in which a bit of the `flip`-th message that arrives is flipped.
class LoopWorker final : public Group {
 public:
  explicit LoopWorker(runtime::Collectives& inner, int64_t flip = -1) : inner_(inner), flip_(flip) {}
  int64_t rank() const override { return inner_.rank(); }
  int64_t size() const override { return inner_.size(); }
  int64_t bytes_sent() const override { return inner_.bytes_sent(); }
  std::vector<int64_t> peers(std::string_view axes) const override { return inner_.peers(axes); }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    ASSIGN_OR_RETURN(const int64_t ticket, start(peers, send, receive));
    return wait(ticket);
  }
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    receive_.assign(receive.begin(), receive.end());
    peers_.assign(peers.begin(), peers.end());
    return inner_.start(peers, send, receive);
  }
  Status wait(int64_t ticket) override {
    RETURN_IF_ERROR(inner_.wait(ticket));
    for (size_t i = 0; i < receive_.size(); ++i)
      if (peers_[i] != rank() && !receive_[i].empty() && flip_-- == 0) receive_[i].back() ^= std::byte{16};
    return Status();
  }
  void abort(const std::string&) override { ++aborted; }
  void wait_for_ever(bool) override {}

  static inline std::atomic<int> aborted = 0;

 private:
  runtime::Collectives& inner_;
  int64_t flip_;
  std::vector<std::span<std::byte>> receive_;
  std::vector<int64_t> peers_;
};

Status run_checked(const ir::Mesh& mesh, const Work& work) {
  return run_workers(mesh, [&](runtime::Collectives& c) {
    const auto group = make_checked_group(std::make_unique<LoopWorker>(c));
    return work(*group);
  });
}

TEST_CASE("a checked group is a group, of threads") {
  for (const GroupCase& c : kGroupCases) {
    if (c.check == check_two_axes) continue;  // it counts the bytes of a group that is not checked
    if (c.check == check_large) continue;     // it takes long, and shows no more than the other sizes
    SUBCASE(c.name) { c.check(run_checked); }
  }
}

TEST_CASE("each message to another worker takes 16 bytes more") {
  const Status status = run_checked(kGrid, [](runtime::Collectives& c) -> Status {
    for (int64_t round = 0; round < 10; ++round) RETURN_IF_ERROR(all(c, "model", round));
    CHECK(c.bytes_sent() == 10 * 2 * (8 + 16));
    return Status();
  });
  CHECK_MESSAGE(status.ok(), text_of(status));
}

TEST_CASE(
    "a bit that flips on the way is an error that names both workers; without the check it is not seen") {
  const ir::Mesh mesh{{{"data", 3}}};
  const auto exchange_with_a_flip = [&](bool checked, int64_t flip) {
    return run_workers(mesh, [&](runtime::Collectives& c) -> Status {
      std::unique_ptr<Group> group = std::make_unique<LoopWorker>(c, c.rank() == 1 ? flip : -1);
      if (checked) group = make_checked_group(std::move(group));
      const std::vector<int64_t> peers = group->peers("data");
      const std::vector<float> values(1000, static_cast<float>(c.rank()));
      std::vector<std::vector<float>> got(peers.size(), std::vector<float>(1000));
      const std::vector<std::span<const std::byte>> send(peers.size(), std::as_bytes(std::span(values)));
      std::vector<std::span<std::byte>> receive;
      for (auto& g : got) receive.push_back(std::as_writable_bytes(std::span(g)));
      return group->exchange(peers, send, receive);
    });
  };
  CHECK(exchange_with_a_flip(true, -1).ok());
  CHECK(exchange_with_a_flip(false, 1).ok());
  const int before = LoopWorker::aborted;
  const std::string why = text_of(exchange_with_a_flip(true, 1));
  CHECK_MESSAGE(
      why.find("4000 bytes from worker 2 differ where they arrive, at worker 1") != std::string::npos, why);
  CHECK(LoopWorker::aborted == before + 1);
  // A fingerprint that is hit is an error as well: what arrived cannot be known to be right.
  CHECK_FALSE(exchange_with_a_flip(true, 2).ok());
}

TEST_CASE("a message that differs is told before the group is aborted; a size that differs may pass") {
  const ir::Mesh mesh{{{"data", 2}}};
  // Worker 1 gets 8 bytes, of which one is hit, or expects 16.
  const auto outcome = [&](size_t expected, const MessageDiffers& differs) {
    return run_workers(mesh, [&](runtime::Collectives& c) -> Status {
      const bool gets = c.rank() == 1;
      const auto group = make_checked_group(std::make_unique<LoopWorker>(c, gets ? 0 : -1),
                                            gets ? differs : MessageDiffers());
      const std::vector<std::byte> out(8);
      std::vector<std::byte> in(expected);
      std::vector<std::span<const std::byte>> send(1);
      std::vector<std::span<std::byte>> receive(1);
      if (gets)
        receive[0] = in;
      else
        send[0] = out;
      return group->exchange(std::vector<int64_t>{1 - c.rank()}, send, receive);
    });
  };
  for (const bool sizes : {false, true})
    for (const bool passes : {true, false}) {
      CAPTURE(sizes);
      const int before = LoopWorker::aborted;
      int told = 0;
      const Status status = outcome(sizes ? 16 : 8, [&](const std::string& why, bool of_sizes) {
        told += LoopWorker::aborted == before && of_sizes == sizes && !why.empty() ? 1 : 0;
        return passes;
      });
      REQUIRE(!status.ok());
      CHECK(told == 1);
      CHECK(LoopWorker::aborted == before + 1);
      CHECK((status.error().code() == ErrorCode::kIo) == (!sizes || passes));
    }
}

}  // namespace
}  // namespace ostro::dist
