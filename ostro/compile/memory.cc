#include "ostro/compile/memory.h"

#include <algorithm>
#include <limits>

namespace ostro::compile {
namespace {

constexpr int64_t kLine = 64;

struct Life {
  int32_t buffer;
  int64_t bytes;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
};

int64_t round_up(int64_t n) { return (n + kLine - 1) / kLine * kLine; }

}  // namespace

void plan_memory(Plan& plan) {
  std::vector<Life> lives(plan.buffers.size());
  for (size_t i = 0; i < lives.size(); ++i) lives[i] = {static_cast<int32_t>(i), round_up(plan.buffers[i].bytes)};
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const auto touch = [&](int32_t buffer) {
      if (buffer < 0) return;
      Life& life = lives[static_cast<size_t>(buffer)];
      life.first = std::min(life.first, static_cast<int64_t>(s));
      life.last = std::max(life.last, static_cast<int64_t>(s));
    };
    const Step& step = plan.steps[s];
    for (const View& v : step.in) touch(v.buffer);
    for (const View& v : step.out) touch(v.buffer);
    touch(step.arena);
    for (int32_t b : step.slots) touch(b);
  }
  std::erase_if(lives, [&](const Life& l) {
    return plan.buffers[static_cast<size_t>(l.buffer)].kind != BufferKind::kTemp || l.last < 0;
  });
  // Largest first, each at the lowest place that is free during its whole life.
  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  std::vector<Life> placed;
  plan.arena_bytes = 0;
  for (const Life& life : lives) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Life& other : placed) {
      if (other.first > life.last || other.last < life.first) continue;
      const int64_t at = plan.buffers[static_cast<size_t>(other.buffer)].offset;
      taken.emplace_back(at, at + other.bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (at + life.bytes <= begin) break;
      at = std::max(at, end);
    }
    plan.buffers[static_cast<size_t>(life.buffer)].offset = at;
    plan.arena_bytes = std::max(plan.arena_bytes, at + life.bytes);
    placed.push_back(life);
  }
}

}  // namespace ostro::compile
