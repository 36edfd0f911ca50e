// Drawn workloads: each request gets among others the bytes and the bits of log-probabilities that it gets
// alone, on another instruction set or in the interpreter, whatever the settings.
#include <deque>
#include <map>
#include <tuple>

#include "ostro/base/test_size.h"
#include "together.h"

namespace ostro::workloads {
namespace {

using serve::Alone;
using serve::Kept;

// The weights of a kind with each adapter, which are made once.
const Weights& weights_of(size_t kind, Numbers numbers, int adapter) {
  static std::map<std::tuple<size_t, Numbers, int>, Weights> made;
  const std::tuple key{kind, numbers, adapter};
  if (!made.contains(key)) made.try_emplace(key, kinds()[kind], numbers, adapter);
  return made.at(key);
}

struct Seen {
  int64_t answers = 0, tokens = 0, reused = 0, preempted = 0, shared = 0;
};

// One runner of a workload, and what requests to each of its models get alone.
class Side {
 public:
  // `adapters`: the models that it has, in order.
  Side(const Workload& w, const std::vector<int>& adapters)
      : together_(models_of(w, adapters), w.step_seconds) {
    for (const int adapter : adapters)
      alone_.try_emplace(adapter, weights_of(w.kind, w.numbers, adapter).served(w.alone));
    for (const Arrival& one : w.arrivals)
      if (alone_.contains(one.adapter)) arrivals_.push_back(one);
  }

  void begin(Seen& seen) {
    together_.begin(arrivals_);
    if (alone_.size() > 1) seen.shared += std::ssize(arrivals_);
  }
  int wrong(Seen& seen) {
    int out = 0;
    const std::vector<Json> made = together_.finish();
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].is_null()) continue;
      out += made[i] != alone_.at(arrivals_[i].adapter).choices(arrivals_[i].ask.dump());
      seen.answers += static_cast<int64_t>(made[i].size());
    }
    return out;
  }
  void check_counts(Memory memory, Seen& seen) const {
    const serve::Counts counts = together_.counts();
    CHECK((memory != Memory::kNothingKept || counts.reused_tokens == 0));
    CHECK((memory == Memory::kTooSmall || counts.preempted == 0));
    seen.tokens += counts.made_tokens;
    seen.reused += counts.reused_tokens;
    seen.preempted += counts.preempted;
  }

 private:
  static std::vector<serve::ServedModel> models_of(const Workload& w, const std::vector<int>& adapters) {
    std::vector<serve::ServedModel> made, out;
    if (adapters.size() > 1) {
      std::vector<const Weights*> adapted;
      for (size_t i = 1; i < adapters.size(); ++i)
        adapted.push_back(&weights_of(w.kind, w.numbers, adapters[i]));
      made = Weights::served_together(adapted, w.together);
    } else {
      made.push_back(weights_of(w.kind, w.numbers, adapters[0]).served(w.together));
    }
    for (serve::ServedModel& model : made)
      out.push_back(
          serve::with_kept(std::move(model), w.memory == Memory::kNothingKept ? Kept::kNone : Kept::kOwn));
    return out;
  }

  std::map<int, Alone> alone_;  // by adapter
  Together together_;
  std::vector<Arrival> arrivals_;
};

void run(const Workload& w, Seen& seen) {
  std::vector<int> all;
  for (int adapter = 0; adapter <= w.adapters; ++adapter) all.push_back(adapter);
  std::deque<Side> sides;
  if (w.shares_steps)
    sides.emplace_back(w, all);
  else
    for (const int adapter : all) sides.emplace_back(w, std::vector{adapter});
  for (int turn = 0; turn < (w.memory == Memory::kWarm ? 2 : 1); ++turn) {
    for (Side& side : sides) side.begin(seen);
    for (Side& side : sides) CHECK(side.wrong(seen) == 0);
  }
  for (const Side& side : sides) side.check_counts(w.memory, seen);
}

TEST_CASE("requests of drawn workloads get together what each gets alone, bit for bit") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()));
  const Size size = sized(Size{6, 300, 3, 300, 3}, Size{48, 3000, 24, 4000}, Size{48, 3000, 80, 60'000});
  const int workloads = sized(30, 300, 3000);
  // A sample is of kinds that the seed draws: all workloads of one share its weights.
  const int first = test_size() == TestSize::kSample ? static_cast<int>(draw() % 18) * 4 : 0;
  Seen seen;
  // A few samples draw no prompt whose beginning is kept; they go on to more workloads.
  int i = 0;
  for (; i < workloads || (seen.reused == 0 && i < 3 * workloads); ++i) {
    const Workload w = draw_workload(draw, first + i, size);
    INFO("workload ", i, ": ", w.text());
    run(w, seen);
  }
  MESSAGE(i, " workloads, ", seen.answers, " answers, ", seen.tokens, " tokens made; ", seen.shared,
          " requests to runners with several adapters, ", seen.reused, " tokens of prompts reused, ",
          seen.preempted, " answers put back");
  CHECK(seen.reused > 0);
  CHECK(seen.shared > 0);
  if (test_size() != TestSize::kSample) CHECK(seen.preempted > 0);  // few and short ones may not need it
}

// Three texts that need two pages each, of which the third begins like the first.
Json crowded_ask(const serve::ServedModel& model) {
  Json ask = {{"max_tokens", 40}, {"seed", 1}, {"logprobs", 1}, {"return_token_ids", true}};
  ask["logit_bias"][std::to_string(model.stops[0])] = -100;
  for (int text = 0; text < 3; ++text) {
    Json ids = Json::array();
    for (int i = 0; i < 120 + 10 * (text % 2); ++i) ids.push_back((i * i + 3 * (text % 2)) % 256);
    if (text == 2) ids.push_back(7);
    ask["prompt"].push_back(std::move(ids));
  }
  return ask;
}

TEST_CASE(
    "texts that need more pages than there are, by both ways to reach pages, and again with kept ones") {
  for (const size_t kind : {size_t{1}, kinds().size() - 1}) {
    CAPTURE(kinds()[kind].name);
    const Weights& weights = weights_of(kind, Numbers::kBf16, 0);
    Alone alone(weights.served({}));
    Together together(weights.served({.threads = 2, .limits = {384, 4, 64, 4}}), 0.05);
    const Arrival ask{crowded_ask(together.model())};
    CHECK(together.answers({ask})[0] == alone.choices(ask.ask.dump()));
    CHECK(together.counts().preempted > 0);
    const int64_t reused = together.counts().reused_tokens;
    CHECK(together.answers({ask})[0] == alone.choices(ask.ask.dump()));
    CHECK(together.counts().reused_tokens > reused);
  }
}

}  // namespace
}  // namespace ostro::workloads
