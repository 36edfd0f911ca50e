#include "ostro/compile/plan/memory.h"

#include <algorithm>
#include <limits>

#include "ostro/compile/plan/step_views.h"

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

// The lowest offset in a memory of `limit` bytes that is free during the whole life; -1: there is none.
int64_t free_place(const Life& life, const std::vector<Life>& placed, const Plan& plan, int64_t limit) {
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
  return at + life.bytes <= limit ? at : -1;
}

// By buffer: the buffer whose place it takes, or -1. It takes the place of a buffer that a pointwise step
// reads for the last time, at the same positions at which it writes the new one, or of the first operand of a
// step that overwrites it. Such buffers can form a chain; the life of the first one is extended to the end of
// the chain.
std::vector<int32_t> find_in_place(const Plan& plan, std::vector<Life>& lives) {
  std::vector<int32_t> first_of(lives.size(), -1);
  const auto life = [&](int32_t buffer) -> Life& { return lives[static_cast<size_t>(buffer)]; };
  const auto buffer = [&](const View& v) -> const PlanBuffer& {
    return plan.buffers[static_cast<size_t>(v.buffer)];
  };
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const auto at = static_cast<int64_t>(s);
    if ((!step.pointwise && !step.overwrites) || !step.epilogues.empty()) continue;
    std::vector<int32_t> taken;
    for (const View& out : step.out) {
      if (buffer(out).kind != BufferKind::kTemp || life(out.buffer).first != at ||
          first_of[static_cast<size_t>(out.buffer)] >= 0)
        continue;
      for (const View& in : step.in) {
        if (step.overwrites && &in != step.in.data()) break;
        if (buffer(in).kind != BufferKind::kTemp || buffer(in).bytes != buffer(out).bytes) continue;
        const int32_t before = first_of[static_cast<size_t>(in.buffer)];
        const int32_t first = before < 0 ? in.buffer : before;
        // What an index reads there, it alone writes, and afterwards.
        const bool same = std::all_of(step.in.begin(), step.in.end(), [&](const View& v) {
          return v.buffer != in.buffer || std::any_of(step.out.begin(), step.out.end(), [&](const View& w) {
                   return w.buffer == out.buffer && w.offset == v.offset && w.strides == v.strides &&
                          w.shape == v.shape;
                 });
        });
        if (!same || life(first).last != at || life(first).first == at ||
            std::find(taken.begin(), taken.end(), first) != taken.end())
          continue;
        taken.push_back(first);
        first_of[static_cast<size_t>(out.buffer)] = first;
        life(first).last = life(out.buffer).last;
        break;
      }
    }
  }
  return first_of;
}

// What exchanges use while other steps run.
void keep_for_exchanges(const Plan& plan, std::vector<Life>& lives) {
  const auto end = static_cast<int64_t>(plan.steps.size());
  for (int64_t s = 0; s < end; ++s) {
    const Step& step = plan.steps[static_cast<size_t>(s)];
    for (const int32_t b : step.held_open)
      lives[static_cast<size_t>(b)].first = 0, lives[static_cast<size_t>(b)].last = end - 1;
    if (step.kind != StepKind::kOp || step.op != ir::OpKind::all_gather) continue;
    // Until the first step that reads what was gathered.
    int64_t used = s + 1;
    while (used < end && !reads(plan.steps[static_cast<size_t>(used)], step.out[0].buffer)) ++used;
    for_views(step, [&](const View& v) {
      Life& life = lives[static_cast<size_t>(v.buffer)];
      life.last = std::max(life.last, std::min(used, end - 1));
    });
  }
}

// plan_memory, with or without buffers that overwrite others in place.
void place_temporaries(Plan& plan, bool in_results, bool in_place) {
  std::vector<Life> lives(plan.buffers.size());
  for (size_t i = 0; i < lives.size(); ++i)
    lives[i] = {static_cast<int32_t>(i), round_up(plan.buffers[i].bytes)};
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const auto touch = [&](int32_t buffer) {
      if (buffer < 0) return;
      Life& life = lives[static_cast<size_t>(buffer)];
      life.first = std::min(life.first, static_cast<int64_t>(s));
      life.last = std::max(life.last, static_cast<int64_t>(s));
    };
    const Step& step = plan.steps[s];
    for_views(step, [&](const View& v) { touch(v.buffer); });
    touch(step.arena);
    for (int32_t b : step.slots) touch(b);
  }
  keep_for_exchanges(plan, lives);
  const std::vector<int32_t> first_of =
      in_place ? find_in_place(plan, lives) : std::vector<int32_t>(lives.size(), -1);
  // Memories, the arena last, and what lies in each.
  struct Memory {
    int32_t host;
    int64_t bytes, free_until;  // free before that step
    std::vector<Life> placed;
  };
  std::vector<Memory> memories;
  for (const Life& l : lives) {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(l.buffer)];
    if (in_results && b.kind == BufferKind::kResult && b.reuses_param < 0 && l.last >= 0)
      memories.push_back({l.buffer, b.bytes, l.first, {}});
  }
  constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
  memories.push_back({-1, kEndless, kEndless, {}});
  std::erase_if(lives, [&](const Life& l) {
    return plan.buffers[static_cast<size_t>(l.buffer)].kind != BufferKind::kTemp || l.last < 0 ||
           first_of[static_cast<size_t>(l.buffer)] >= 0;
  });
  // Largest first, each at the lowest place that is free during its whole life.
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
  });
  plan.arena_bytes = 0;
  for (const Life& life : lives) {
    PlanBuffer& buffer = plan.buffers[static_cast<size_t>(life.buffer)];
    for (Memory& memory : memories) {
      const int64_t at =
          memory.free_until > life.last ? free_place(life, memory.placed, plan, memory.bytes) : -1;
      if (at < 0) continue;
      buffer.host = memory.host;
      buffer.offset = at;
      memory.placed.push_back(life);
      if (memory.host < 0) plan.arena_bytes = std::max(plan.arena_bytes, at + life.bytes);
      break;
    }
  }
  for (size_t b = 0; b < first_of.size(); ++b) {
    if (first_of[b] < 0) continue;
    const PlanBuffer& first = plan.buffers[static_cast<size_t>(first_of[b])];
    plan.buffers[b].host = first.host;
    plan.buffers[b].offset = first.offset;
  }
}

}  // namespace

void plan_memory(Plan& plan, bool in_results) {
  place_temporaries(plan, in_results, false);
  const int64_t apart = plan.arena_bytes;
  place_temporaries(plan, in_results, true);
  // A chain of buffers in one place lives long, so it may not fit into a gap into which a single buffer
  // would.
  if (plan.arena_bytes > apart) place_temporaries(plan, in_results, false);
}

void plan_donation(Plan& plan, const std::vector<int64_t>& donate) {
  const auto buffer_of = [&](BufferKind kind, int64_t index) {
    for (size_t b = 0; b < plan.buffers.size(); ++b)
      if (plan.buffers[b].kind == kind && plan.buffers[b].index == index) return static_cast<int32_t>(b);
    return int32_t{-1};
  };
  // Every operand that reads the parameter reads it at the positions at which the result is written.
  const auto in_place = [](const Step& step, int32_t param) {
    if (step.overwrites)
      return step.in[0].buffer == param && step.in[0].dense() && step.in[0].offset == 0 &&
             std::none_of(step.in.begin() + 1, step.in.end(),
                          [&](const View& v) { return v.buffer == param; });
    return step.pointwise &&
           std::none_of(step.epilogues.begin(), step.epilogues.end(),
                        [&](const Step& epilogue) { return reads(epilogue, param); }) &&
           std::all_of(step.in.begin(), step.in.end(), [&](const View& v) {
             return v.buffer != param ||
                    (v.offset == 0 && v.dense() && v.shape.count() == step.out[0].shape.count());
           });
  };
  for (int64_t p : donate) {
    if (p < 0 || p >= static_cast<int64_t>(plan.params.size())) continue;
    const int32_t param = buffer_of(BufferKind::kParam, p);
    int64_t last = -1;
    for (size_t s = 0; s < plan.steps.size(); ++s)
      if (reads(plan.steps[s], param)) last = static_cast<int64_t>(s);
    for (size_t i = 0; i < plan.results.size(); ++i) {
      const int32_t result = buffer_of(BufferKind::kResult, static_cast<int64_t>(i));
      PlanBuffer& buffer = plan.buffers[static_cast<size_t>(result)];
      if (buffer.reuses_param >= 0 || plan.results[i] != plan.params[static_cast<size_t>(p)]) continue;
      int64_t first = -1;
      for (size_t s = plan.steps.size(); s-- > 0;)
        if (writes(plan.steps[s], result)) first = static_cast<int64_t>(s);
      if (first < 0 || first < last ||
          (first == last && !in_place(plan.steps[static_cast<size_t>(first)], param)))
        continue;
      buffer.reuses_param = p;
      break;
    }
  }
}

}  // namespace ostro::compile
