#include "workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ostro/machine/isa.h"
#include "ostro/serve/model_for_test.h"

namespace ostro::workloads {
namespace {

int64_t between(std::mt19937& draw, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(draw() % static_cast<uint64_t>(most - least + 1));
}
bool one_in(std::mt19937& draw, uint32_t n) { return draw() % n == 0; }

// 1 to `most`, each power of two as likely as the next.
int64_t spread(std::mt19937& draw, int64_t most) {
  int bits = 0;
  while ((int64_t{2} << bits) <= most) ++bits;
  const int64_t power = int64_t{1} << between(draw, 0, bits);
  return std::min(most, between(draw, power, 2 * power - 1));
}

std::string drawn_isa(std::mt19937& draw) {
  const auto all = machine::available_isas();
  return machine::isa_name(all[draw() % all.size()]);
}

infer::RowLimits limits_of(Memory memory, std::mt19937& draw) {
  const int64_t whole = (kContext + 127) / 128, rows = int64_t{1} << between(draw, 0, 9);
  switch (memory) {
    case Memory::kNothingKept: return {kContext, spread(draw, 48), rows};
    case Memory::kWarm: {
      const int64_t sequences = spread(draw, 16);
      return {kContext, sequences, rows, sequences * whole + 200};
    }
    case Memory::kEvicting:  // a page more than those that run can need
      return {kContext, 2, rows, 2 * whole + 1};
    case Memory::kTooSmall: return {kContext, between(draw, 3, 48), rows, whole + between(draw, 0, 2)};
  }
  return {};
}

}  // namespace

std::string Workload::text() const {
  static constexpr const char* kMemory[] = {"nothing kept", "warm", "evicting", "too small"};
  const auto of = [](const Setting& s) {
    return s.interpreted ? std::string("interpreted")
                         : fmt::format("{}, {} threads{}", s.isa, s.threads, s.streamed ? ", streamed" : "");
  };
  return fmt::format(
      "{} {}{}, {} requests, {}, {} sequences, {} rows, {} pages: together {}, alone {}", kinds()[kind].name,
      word_of(numbers),
      adapters == 0 ? "" : fmt::format(" with {} adapters{}", adapters, shares_steps ? " in one runner" : ""),
      arrivals.size(), kMemory[static_cast<size_t>(memory)], together.limits.sequences, together.limits.rows,
      together.limits.pages, of(together), of(alone));
}

Json draw_ask(std::mt19937& draw, const Size& size, std::vector<std::vector<int32_t>>& earlier) {
  static const auto kTokens = static_cast<uint32_t>(serve::test_tokenizer()->vocab_size());
  const auto prompt = [&] {
    std::vector<int32_t> ids;
    const auto length = static_cast<size_t>(spread(draw, size.prompt));
    if (!earlier.empty() && one_in(draw, 2)) {
      const auto& other = earlier[draw() % earlier.size()];
      ids.assign(other.begin(), other.begin() + static_cast<int64_t>(std::min(other.size(), length)));
    }
    while (ids.size() < length) ids.push_back(static_cast<int32_t>(draw() % kTokens));
    earlier.push_back(ids);
    return ids;
  };
  Json ask = {{"prompt", Json::array({prompt()})}, {"seed", draw()}};
  if (one_in(draw, 6)) ask["prompt"].push_back(prompt());
  ask["max_tokens"] = spread(draw, size.answer + 1) - 1;
  ask["temperature"] = one_in(draw, 3) ? 0.0 : static_cast<double>(between(draw, 1, 20)) / 10;
  ask["logprobs"] = between(draw, 0, 2);
  ask["return_token_ids"] = true;
  if (one_in(draw, 3)) ask["n"] = between(draw, 2, 3);
  if (one_in(draw, 3)) ask["frequency_penalty"] = 0.5;
  if (one_in(draw, 3)) ask["presence_penalty"] = -0.7;
  if (one_in(draw, 4)) ask["logit_bias"] = {{std::to_string(draw() % kTokens), 3}};
  if (one_in(draw, 4)) ask["echo"] = true;
  if (one_in(draw, 3)) ask["top_p"] = 0.9;
  if (one_in(draw, 4)) ask["top_k"] = between(draw, 1, 50);
  if (one_in(draw, 4)) ask["min_p"] = 0.01;
  if (one_in(draw, 4)) ask["stop"] = "a";
  return ask;
}

Workload draw_workload(std::mt19937& draw, int number, const Size& size) {
  Workload out;
  out.memory = static_cast<Memory>(number % 4);
  const int group = number / 4;
  out.kind = static_cast<size_t>(group) % kinds().size();
  const auto& numbers = kinds()[out.kind].numbers;
  out.numbers = numbers[static_cast<size_t>(group) / kinds().size() % numbers.size()];
  if (number % 3 == 1) out.adapters = static_cast<int>(between(draw, 1, 2));
  out.shares_steps = out.adapters > 0 && (number / 3 + number / 12) % 2 == 1;  // with memory of every kind
  out.together.limits = limits_of(out.memory, draw);
  out.together.isa = drawn_isa(draw);
  out.together.threads = static_cast<int>(between(draw, 1, 2));
  out.together.streamed = !out.shares_steps && one_in(draw, 3);
  out.together.keep_bytes = one_in(draw, 2) ? 0 : 20'000;
  out.step_seconds = one_in(draw, 2) ? 1e-6 : 1e6;  // least and most rows of prompts
  out.alone.isa = drawn_isa(draw);
  out.alone.interpreted = number % 6 == 0;
  Size bound = size;
  if (out.alone.interpreted) bound = {std::min<int64_t>(size.requests, 6), 150, 6, 400};
  if (out.memory == Memory::kTooSmall) bound.answer = bound.long_answer;
  const int64_t count = spread(draw, bound.requests);
  // With shared steps, what is kept for one adapter must not reach another that begins alike.
  std::map<int, std::vector<std::vector<int32_t>>> earlier;
  int64_t step = 0, tokens = 0;
  for (int64_t i = 0; i < count; ++i) {
    Arrival one;
    if (out.adapters > 0 && one_in(draw, 2)) one.adapter = static_cast<int>(between(draw, 1, out.adapters));
    Size left = bound;
    left.prompt = std::clamp<int64_t>(bound.prompt_tokens - tokens, 8, bound.prompt);
    one.ask = draw_ask(draw, left, earlier[out.shares_steps ? 0 : one.adapter]);
    for (const Json& ids : one.ask["prompt"]) tokens += static_cast<int64_t>(ids.size());
    if (one_in(draw, 2)) step += between(draw, 0, 6);
    one.step = step;
    if (one_in(draw, 5)) one.leaves_after = static_cast<int>(between(draw, 0, 5));
    out.arrivals.push_back(std::move(one));
  }
  return out;
}

}  // namespace ostro::workloads
