#include "ostro/machine/thread_pool.h"

#include <doctest/doctest.h>
#include <immintrin.h>
#include <sched.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ostro/base/machine.h"
#include "ostro/base/profile.h"
#include "ostro/machine/affinity.h"

namespace ostro::machine {
namespace {

TEST_CASE("thread pool: every tile runs once, with N0's environment, and the caller's comes back") {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    const unsigned before = _mm_getcsr();
    for (int round = 0; round < 200; ++round) {
      const int64_t count = round % 37;
      std::vector<std::atomic<int>> hits(count);
      std::atomic<int> wrong_environment{0};
      pool.run_tiles(count, [&](int64_t tile) {
        hits[tile].fetch_add(1);
        if ((_mm_getcsr() & ~0x3fu) != 0x9fc0) wrong_environment.fetch_add(1);
      });
      for (auto& hit : hits) CHECK(hit.load() == 1);
      CHECK(wrong_environment.load() == 0);
    }
    CHECK((_mm_getcsr() & ~0x3fu) == (before & ~0x3fu));
  }
}

TEST_CASE("thread pool: ranges cover the count and begin at multiples of the grain") {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 7, 64, 65, 1000}) {
    for (int64_t grain : {1, 16, 64}) {
      std::vector<std::atomic<int>> hits(count);
      std::atomic<int> ranges{0}, unaligned{0};
      pool.parallel_for(
          count,
          [&](int64_t begin, int64_t end) {
            ranges.fetch_add(1);
            if (begin % grain != 0) unaligned.fetch_add(1);
            for (int64_t i = begin; i < end; ++i) hits[i].fetch_add(1);
          },
          grain);
      for (auto& hit : hits) CHECK(hit.load() == 1);
      CHECK(ranges.load() <= 3);
      CHECK(unaligned.load() == 0);
    }
  }
}

TEST_CASE("thread pool: nested calls run inline, callers take turns, pools do not meet") {
  ThreadPool pool(2), other(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      ThreadPool& mine = c % 2 == 0 ? pool : other;
      for (int round = 0; round < 50; ++round) {
        mine.run_tiles(8, [&](int64_t i) {
          const std::thread::id outer = std::this_thread::get_id();
          pool.run_tiles(3, [&](int64_t j) {
            if (std::this_thread::get_id() == outer) sum.fetch_add(i * 3 + j);
          });
        });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  CHECK(sum.load() == 4 * 50 * (23 * 24 / 2));
}

TEST_CASE("thread pool: a profile has each thread's share of a job, and nothing of who came too late") {
  ThreadPool pool(3);
  const SpanLabelPtr label = std::make_shared<SpanLabel>(SpanLabel{"job", "op", {}, 0, 0});
  REQUIRE(start_profile());
  // Jobs that are over at once: workers wake while the caller goes on to wait for them.
  for (int job = 0; job < 300; ++job) {
    const Span span(&label);
    pool.run_tiles(2 + job % 3, [](int64_t) {});
  }
  pool.run_tiles(8, [](int64_t) {});  // of no span
  {
    const Span span(&label);
    std::barrier all(3);
    pool.run_tiles(3, [&](int64_t) { all.arrive_and_wait(); });
  }
  std::vector<SpanRecord> jobs;
  std::map<std::string, std::vector<SpanRecord>> parts;
  for (const ProfileTrack& track : stop_profile())
    for (const SpanRecord& span : track.spans)
      if (span.part)
        parts[track.thread].push_back(span);
      else if (span.label == label)
        jobs.push_back(span);
      else
        CHECK(span.label->category == std::string("wait"));
  CHECK(jobs.size() == 301);
  REQUIRE(parts.size() == 2);
  for (const auto& [thread, spans] : parts) {
    CAPTURE(thread);
    size_t job = 0;
    for (const SpanRecord& part : spans) {
      CHECK(part.label == label);
      while (job < jobs.size() && jobs[job].end < part.end) ++job;
      REQUIRE(job < jobs.size());
      CHECK(jobs[job].begin <= part.begin);
    }
    CHECK(job + 1 == jobs.size());  // all three were in the last one
  }
}

TEST_CASE("thread pool: OSTRO_AFFINITY") {
  const std::vector<int> cores = cpus_of_cores();
  const int count = static_cast<int>(cores.size());
  REQUIRE(unsetenv("OSTRO_AFFINITY") == 0);
  CHECK(affinity_from_environment(count).value().empty());
  REQUIRE(setenv("OSTRO_AFFINITY", "cores", 1) == 0);
  CHECK(affinity_from_environment(count).value() == cores);
  CHECK(!affinity_from_environment(count + 1).ok());
  REQUIRE(setenv("OSTRO_AFFINITY", "sockets", 1) == 0);
  CHECK(!affinity_from_environment(1).ok());
  REQUIRE(unsetenv("OSTRO_AFFINITY") == 0);

  // Every thread but the caller runs on the CPU that it was bound to. Each takes one tile: none ends before
  // all began.
  ThreadPool pool(3, {cores.front(), cores.back()});
  const std::thread::id caller = std::this_thread::get_id();
  std::barrier begun(3);
  std::atomic<int> bound{0};
  pool.run_tiles(3, [&](int64_t) {
    begun.arrive_and_wait();
    cpu_set_t set;
    CPU_ZERO(&set);
    if (std::this_thread::get_id() == caller || sched_getaffinity(0, sizeof set, &set) != 0) return;
    if (CPU_COUNT(&set) == 1 && (CPU_ISSET(cores.front(), &set) || CPU_ISSET(cores.back(), &set)))
      bound.fetch_add(1);
  });
  CHECK(bound.load() == 2);
}

}  // namespace
}  // namespace ostro::machine
