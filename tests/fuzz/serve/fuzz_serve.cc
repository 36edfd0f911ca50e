// Damaged requests, receipts and answers for the readers of `ostro serve`.
//   fuzz_serve [--target NAME|all] [--count N] [--seed FIRST|drawn] [--seconds S]
// Case number i of a target depends on seed + i alone. --seconds goes on from the seed until each target has
// taken so much CPU time. Run it under sanitizers: PRESET=asan-ubsan.
#include <fmt/core.h>

#include <cstdlib>
#include <ctime>
#include <set>

#include "ostro/base/test_size.h"
#include "targets.h"

using namespace ostro;
using namespace ostro::fuzz;

namespace {

struct Options {
  std::string target = "all";
  int64_t count = 2000;
  uint64_t seed = 1;
  double seconds = 0;
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Texts of errors without what they quote and without numbers.
std::string kind_of(const std::string& reason) {
  std::string out;
  bool quoted = false;
  for (const char c : reason.substr(0, 200)) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c < '0' || c > '9')) out += c;
  }
  return out;
}

int run(const std::string& name, const Options& options) {
  const std::unique_ptr<Target> target = make_target(name);
  if (const auto wrong = target->known()) {
    fmt::print("{}: {}\n", name, *wrong);
    return 1;
  }
  const double end = cpu_seconds() + options.seconds;
  std::set<std::string> reasons;
  int64_t done = 0, accepted = 0;
  for (; options.seconds > 0 ? cpu_seconds() < end : done < options.count; ++done) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(done);
    const Outcome seen = target->run(seed);
    if (seen.wrong) {
      fmt::print("{}, seed {}: {}\n", name, seed, *seen.wrong);
      return 1;
    }
    accepted += seen.accepted;
    if (!seen.accepted) reasons.insert(kind_of(seen.reason));
  }
  fmt::print("result: fuzz_serve: {}: seeds {} .. {}: {} taken, {} refused for {} reasons\n", name,
             options.seed, options.seed + static_cast<uint64_t>(done) - 1, accepted, done - accepted,
             reasons.size());
  // Else the cases have become too dull, or too wild.
  return done >= 2000 && (accepted < done / 50 || accepted == done) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--target" && (value == "all" || make_target(value) != nullptr))
      options.target = value;
    else if (flag == "--count")
      options.count = std::atoll(value.c_str());
    else if (flag == "--seconds")
      options.seconds = std::atof(value.c_str());
    else if (flag == "--seed")
      options.seed = value == "drawn" ? test_seed() : std::strtoull(value.c_str(), nullptr, 10);
    else {
      fmt::print(stderr,
                 "usage: fuzz_serve [--target bodies|http|receipts|calls|all] [--count N] "
                 "[--seed FIRST|drawn] [--seconds S]\n");
      return 2;
    }
  }
  int status = 0;
  for (const std::string& name : target_names())
    if (options.target == "all" || options.target == name) status |= run(name, options);
  return status;
}
