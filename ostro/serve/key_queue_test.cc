// Keys take turns, have their shares of a queue, and none waits for more than one turn of each other.
#include "ostro/serve/key_queue.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "ostro/base/test_size.h"

namespace ostro::serve {
namespace {

// Drawn arrivals at a queue of many keys, of which some ask far more than others. Returns the most turns that
// others had while a key waited, beyond one of each key that waited meanwhile. `pop` takes the next one.
template <typename Pop>
int turns_beyond(std::mt19937& draw, int keys, Pop&& pop) {
  KeyQueue<int> queue(1000, 1000);
  std::map<std::string, int> others;                       // turns since this key waits
  std::map<std::string, std::map<std::string, int>> seen;  // keys that had some of them
  int worst = -1;
  for (int step = 0; step < 400; ++step) {
    const uint32_t greedy = draw() % 3;
    const std::string key(1,
                          static_cast<char>('a' + (greedy > 0 ? 0 : draw() % static_cast<uint32_t>(keys))));
    if (draw() % 2 == 0 || queue.keys().empty()) {
      if (queue.size(key) == 0) {
        others[key] = 0;
        seen[key].clear();
      }
      CHECK(queue.push(key, step, [](int) { return false; }) == Pushed::kTaken);
      continue;
    }
    const std::string served = pop(queue);
    for (auto& [waiting, turns] : others)
      if (waiting != served && queue.size(waiting) > 0) {
        ++turns;
        ++seen[waiting][served];
        worst = std::max(worst, turns - static_cast<int>(seen[waiting].size()));
      }
    others[served] = 0;
    seen[served].clear();
  }
  return worst;
}

TEST_CASE(
    "a key that waits comes after at most one turn of each other key; first come, first served breaks it") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()));
  for (int i = 0; i < sized(20, 100, 1000); ++i) {
    KeyTurns turns;
    const int keys = 2 + static_cast<int>(draw() % 6);
    const uint32_t seed = static_cast<uint32_t>(draw());
    std::mt19937 fair(seed), control(seed);
    CHECK(turns_beyond(fair, keys, [&](KeyQueue<int>& queue) {
            const std::string next = turns.update(queue.keys()).front();
            turns.took(next);
            CHECK(queue.try_pop(next).has_value());
            return next;
          }) <= 0);
    CHECK(turns_beyond(control, keys, [](KeyQueue<int>& queue) {
            const std::string oldest = queue.keys().front();
            CHECK(queue.try_pop(oldest).has_value());
            return oldest;
          }) > 0);
  }
}

TEST_CASE("of a queue a key has its share; more is refused, and what left makes room") {
  KeyQueue<int> queue(4, 3);
  const auto none = [](int) { return false; };
  for (int i = 1; i <= 3; ++i) CHECK(queue.push("a", i, none) == Pushed::kTaken);
  CHECK(queue.push("a", 4, none) == Pushed::kKeyFull);
  CHECK(queue.push("b", 5, none) == Pushed::kTaken);
  CHECK(queue.push("b", 6, none) == Pushed::kFull);
  CHECK(queue.push("c", 8, none) == Pushed::kTaken);  // others cannot lock it out
  CHECK(queue.push("c", 6, none) == Pushed::kFull);
  CHECK(queue.try_pop("a", [](int i) { return i > 3; }) == std::nullopt);
  CHECK(queue.try_pop("c", [](int i) { return i > 3; }) == 8);
  CHECK(queue.push("a", 7, [](int i) { return i == 2; }) == Pushed::kTaken);
  CHECK(queue.keys() == std::vector<std::string>{"a", "a", "b", "a"});
  CHECK(queue.pop() == 1);
  CHECK(queue.pop() == 5);  // the turn of b
  CHECK(queue.take_late([](int i) { return i == 3; }) == std::vector<int>{3});
  CHECK_FALSE(queue.try_pop("b").has_value());
  CHECK(queue.try_pop("a") == 7);
  CHECK(queue.size("a") == 0);
  // Without keys there is no share.
  for (int i = 0; i < 4; ++i) CHECK(queue.push("", i, none) == Pushed::kTaken);
  CHECK(queue.push("", 4, none) == Pushed::kFull);
  CHECK(queue.close() == std::vector<int>{0, 1, 2, 3});
  CHECK_FALSE(queue.pop().has_value());
  CHECK_FALSE(queue.wait());
  CHECK(queue.push("", 5, none) == Pushed::kFull);
}

}  // namespace
}  // namespace ostro::serve
