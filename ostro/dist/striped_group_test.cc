// Long messages over several connections.
#include "ostro/dist/striped_group.h"

#include <doctest/doctest.h>

#include <mutex>
#include <thread>

#include "ostro/dist/gloo_play_for_test.h"

namespace ostro::dist {
namespace {

constexpr size_t kConnections = 3;

// As run_gloo_workers, each worker with several connections to those for whom `striped` holds.
Status run_striped(const ir::Mesh& mesh, const Work& work, size_t least,
                   std::vector<std::vector<int64_t>>* sent) {
  MemoryKeyValue store;
  std::mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    threads.emplace_back([&, rank] {
      GlooOptions options;
      options.connect_timeout = std::chrono::minutes(2);
      std::vector<std::unique_ptr<Group>> groups;
      std::vector<Group*> each;
      Status status;
      for (size_t i = 0; i < kConnections && status.ok(); ++i) {
        auto group = connect_gloo(mesh, rank, store, fmt::format("test/{}/", i), options);
        if (!group.ok()) status = group.error();
        if (group.ok()) each.push_back(group->get()), groups.push_back(std::move(*group));
      }
      if (status.ok()) {
        const auto striped = make_striped_group(
            std::move(groups), std::vector<bool>(static_cast<size_t>(mesh.size()), true), least);
        status = work(*striped);
        if (sent != nullptr)
          for (const Group* group : each) (*sent)[static_cast<size_t>(rank)].push_back(group->bytes_sent());
        if (!status.ok()) {
          {
            const std::lock_guard lock(mutex);
            if (first.ok()) first = status;
          }
          striped->abort(status.error().message());
        }
        return;
      }
      const std::lock_guard lock(mutex);
      if (first.ok()) first = status;
    });
  for (std::thread& t : threads) t.join();
  return first;
}

TEST_CASE("striped: several connections are a group like one") {
  for (const auto check : {check_large, check_tickets, check_failure, check_sizes_disagree, check_arguments})
    check([](const ir::Mesh& mesh, const Work& work) { return run_striped(mesh, work, 200'000, nullptr); });
}

TEST_CASE("striped: a long message is shared out evenly, a short one takes one connection") {
  std::vector<std::vector<int64_t>> sent(2);
  const Status status = run_striped(
      line(2),
      [](runtime::Collectives& c) -> Status {
        RETURN_IF_ERROR(swap_checked(c, "x", [](int64_t, int64_t) { return size_t{3'000'001}; }, 1));
        return swap_checked(c, "x", [](int64_t, int64_t) { return size_t{999}; }, 2);
      },
      1000, &sent);
  CHECK_MESSAGE(status.ok(), text_of(status));
  // Along an axis a worker is its own peer; what it sends to itself is not counted.
  for (const auto& bytes : sent) {
    REQUIRE(bytes.size() == kConnections);
    CHECK(bytes[0] == 1'000'001 + 999);
    CHECK(bytes[1] == 1'000'000);
    CHECK(bytes[2] == 1'000'000);
  }
}

}  // namespace
}  // namespace ostro::dist
