// Workload: drawn requests to one model, and the drawn settings in which they run together.
#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "models.h"

namespace ostro::workloads {

using Json = nlohmann::ordered_json;

// A request that comes when the model has made so many steps, or when nothing else is left to do.
struct Arrival {
  Json ask;
  int64_t step = 0;
  int adapter = 0;        // to the model with this adapter of Weights; 0: none
  int leaves_after = -1;  // pieces of its answer, after which the client leaves; -1: it stays
};

// What becomes of the memory of keys and values.
enum class Memory { kNothingKept, kWarm, kEvicting, kTooSmall };

// Bounds of what is drawn.
struct Size {
  int64_t requests = 48, prompt = 3000, answer = 40;
  int64_t prompt_tokens = 20'000;  // of all requests together
  int64_t long_answer = 160;       // where memory is too small: such answers need pages that others have
};

struct Workload {
  size_t kind = 0;  // of kinds()
  Numbers numbers = Numbers::kF32;
  int adapters = 0;
  bool shares_steps = false;  // the model and those with its adapters; else each has a runner of its own
  Memory memory = Memory::kNothingKept;
  Setting together, alone;
  double step_seconds = 0.05;
  std::vector<Arrival> arrivals;  // in order of their steps

  std::string text() const;  // the settings, for a test's message
};

// Draws everything but the kind, the numbers and who has adapters, which follow from `number`, so that
// neighbours share weights; every kind is reached within 4 * 16 numbers. The reference (`alone`) runs on
// another instruction set, with one thread; one in six is interpreted, and then small.
Workload draw_workload(std::mt19937& draw, int number, const Size& size);

// One request. `earlier`: prompts with which it may share its beginning; its own are appended.
Json draw_ask(std::mt19937& draw, const Size& size, std::vector<std::vector<int32_t>>& earlier);

}  // namespace ostro::workloads
