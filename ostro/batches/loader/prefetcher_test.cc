#include "ostro/batches/loader/prefetcher.h"

#include <doctest/doctest.h>

#include <atomic>

using namespace ostro;
using namespace ostro::batches;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

Batch numbered(int64_t step) {
  Batch batch;
  batch.step = step;
  return batch;
}

}  // namespace

TEST_CASE("prefetcher: batches come in the order of steps, at most depth ahead") {
  for (const size_t depth : {1, 2, 7}) {
    std::atomic<int64_t> made{0}, taken{0}, most{0};
    Prefetcher prefetcher(
        [&](int64_t step, Batch) -> Result<Batch> {
          const int64_t ahead = ++made - taken;
          if (ahead > most) most = ahead;
          return numbered(step);
        },
        40, depth);
    for (int64_t step = 40; step < 240; ++step) {
      const auto batch = prefetcher.next();
      REQUIRE(batch.ok());
      CHECK(batch->step == step);
      ++taken;
    }
    CHECK(most <= static_cast<int64_t>(depth) + 2);  // in the queue, being made, and the one just handed out
  }
}

TEST_CASE("prefetcher: an error comes at its step, after the batches before it, and stays") {
  Prefetcher prefetcher(
      [](int64_t step, Batch) -> Result<Batch> {
        if (step == 3) return corrupt("chunk 7");
        return numbered(step);
      },
      0, 5);
  for (int64_t step = 0; step < 3; ++step) CHECK(prefetcher.next()->step == step);
  for (int i = 0; i < 3; ++i) {
    const auto failed = prefetcher.next();
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().message() == "chunk 7");
  }
}

TEST_CASE("prefetcher: stops with full and with empty queues") {
  for (int i = 0; i < 50; ++i) {
    Prefetcher prefetcher([](int64_t step, Batch) -> Result<Batch> { return numbered(step); }, 0, 3);
    if (i % 2 == 0) CHECK(prefetcher.next().ok());
  }
}

TEST_CASE("prefetcher: a batch that is given back is the memory of a later one") {
  std::atomic<int64_t> used{0};
  Prefetcher prefetcher(
      [&](int64_t step, Batch memory) -> Result<Batch> {
        used += !memory.tokens.empty();
        Batch batch = make_batch(step, 1, {.seq_len = 4}, std::move(memory));
        std::fill(batch.tokens.begin(), batch.tokens.end(), static_cast<int32_t>(step));
        return batch;
      },
      0, 2);
  Batch batch;
  for (int64_t step = 0; step < 100; ++step) {
    auto next = prefetcher.next(std::move(batch));
    REQUIRE(next.ok());
    batch = std::move(*next);
    CHECK(batch.tokens == std::vector<int32_t>(4, static_cast<int32_t>(step)));
  }
  CHECK(used.load() >= 100 - 4);  // in the queue, being made, and the one just handed out
}
