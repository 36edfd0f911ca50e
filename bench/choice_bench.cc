// Choosing tokens and their log-probabilities on request, for bench/choices.py, which runs PyTorch in turns
// with it. Reads lines:
//   case greedy|draw|top_k|top_p|log_prob VOCAB     prepares rows of logits of that length
//   run N                                           takes N rows
// and answers each with a line: `ready`, or the seconds of the CPU that the N rows took, on one thread.
#include <fmt/core.h>

#include <ctime>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ostro/infer/choose.h"
#include "ostro/infer/log_probs.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/threefry.h"

namespace {

using namespace ostro;

constexpr int64_t kRows = 8;
constexpr int64_t kLeaves = 8;

struct Work {
  std::string kind;
  std::vector<std::vector<float>> rows;
  int64_t position = 0;
  double sum = 0;  // keeps the results

  // Normal logits of deviation 3, and one that stands out, as a trained model's rows have.
  void prepare(size_t vocab) {
    rows.assign(kRows, std::vector<float>(vocab));
    for (uint32_t r = 0; r < kRows; ++r) {
      const numerics::Key key = numerics::fold_in(numerics::key_from_seed(1), r);
      for (size_t i = 0; i < vocab; ++i) rows[r][i] = 3 * numerics::random_normal(key, i);
      rows[r][7 * (r + 1)] = 14;
    }
  }

  void run() {
    const std::vector<float>& row = rows[static_cast<size_t>(position % kRows)];
    infer::ChoiceOptions options{.temperature = kind == "greedy" ? 0.0 : 1.0, .seed = 1};
    if (kind == "top_k") options.top_k = 40;
    if (kind == "top_p") options.top_p = 0.9;
    sum += kind == "log_prob" ? static_cast<double>(infer::LogProbs(row, kLeaves).of(5))
                              : infer::choose(row, options, {}, position);
    ++position;
  }
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main() {
  Work work;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what;
    size_t number = 0;
    words >> what;
    if (what == "case" && words >> work.kind >> number && number > 100) {
      work.prepare(number);
      fmt::print("ready\n");
    } else if (what == "run" && words >> number && !work.rows.empty()) {
      const double begin = cpu_seconds();
      for (size_t i = 0; i < number; ++i) work.run();
      fmt::print("{}\n", cpu_seconds() - begin);
    } else {
      fmt::print(stderr, "choice_bench: no request: {}\n", line);
      return 2;
    }
    std::fflush(stdout);
  }
  return work.sum == 0.5 ? 1 : 0;
}
