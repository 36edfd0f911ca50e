#include "ostro/base/lru_cache.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace ostro;

TEST_CASE("LRU cache: what was used longest ago goes first, whoever owns it") {
  const auto cache = std::make_shared<LruCache<int>>(10);
  const LruCache<int>::Part a(cache), b(cache);
  a.add(1, std::make_shared<int>(11), 4);
  b.add(1, std::make_shared<int>(21), 4);
  CHECK(*a.find(1) == 11);  // now b's is the older one
  const auto held = b.find(1);
  a.find(1);
  a.add(2, std::make_shared<int>(12), 4);
  CHECK(b.find(1) == nullptr);
  CHECK(*held == 21);
  CHECK(*a.find(1) == 11);
  CHECK(*a.find(2) == 12);
  CHECK(cache->cost() == 8);
  CHECK(*a.add(2, std::make_shared<int>(0), 4) == 12);  // the first one added stays
  CHECK(cache->cost() == 8);
  b.add(3, std::make_shared<int>(23), 100);  // alone, as it is larger than the cache
  CHECK(*b.find(3) == 23);
  CHECK(a.find(1) == nullptr);
  CHECK(cache->cost() == 100);
}

TEST_CASE("LRU cache: an owner that ends leaves nothing behind") {
  const auto cache = std::make_shared<LruCache<int>>(10);
  const LruCache<int>::Part a(cache);
  a.add(1, std::make_shared<int>(11));
  {
    LruCache<int>::Part b(cache);
    b.add(1, std::make_shared<int>(21));
    const LruCache<int>::Part moved(std::move(b));
    CHECK(*moved.find(1) == 21);
    CHECK(cache->cost() == 2);
  }
  CHECK(cache->cost() == 1);
  CHECK(*a.find(1) == 11);
}

TEST_CASE("LRU cache: many threads stay within its capacity and find what they added") {
  const auto cache = std::make_shared<LruCache<int64_t>>(16);
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        const LruCache<int64_t>::Part part(cache);
        for (int64_t i = 0; i < 5000; ++i) {
          const auto value = part.add(i % 40, std::make_shared<int64_t>(i % 40));
          const auto found = part.find((i * 7) % 40);
          wrong[t] += *value != i % 40 || (found != nullptr && *found != (i * 7) % 40) || cache->cost() > 16;
        }
      });
  }
  CHECK(wrong == std::vector<int>(4));
  CHECK(cache->cost() == 0);
}
