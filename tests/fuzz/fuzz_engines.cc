// Compares two engines bit for bit on random programs.
//   fuzz_engines [--count N] [--seed FIRST] [--engine interp|cpu|cpu-loops] [--coverage]
// interp is compared with ENGINE (interp: itself after a round trip through the text form). Prints the seed
// of every program that differs, its text and the first op that differs; exits 1 if there was one, or if too
// few outputs are finite and varied to prove anything.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compare.h"
#include "coverage.h"
#include "ostro/interp/engine.h"
#include "ostro/ir/text.h"
#ifdef OSTRO_FUZZ_CPU
#include "ostro/cpu/engine.h"
#endif

namespace {

using namespace ostro;

struct Options {
  int64_t count = 40;
  uint64_t seed = 1;
  std::string engine = "interp";
  bool coverage = false;
};

Result<Options> parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--coverage") {
      o.coverage = true;
      continue;
    }
    if (i + 1 == argc) return invalid_argument(fmt::format("{} needs a value", flag));
    const std::string_view value = argv[++i];
    auto number = [&](auto& out) -> Status {
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), out);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size())
        return invalid_argument(fmt::format("{}: \"{}\" is not a number", flag, value));
      return Status();
    };
    if (flag == "--count") {
      RETURN_IF_ERROR(number(o.count));
    } else if (flag == "--seed") {
      RETURN_IF_ERROR(number(o.seed));
    } else if (flag == "--engine") {
      o.engine = value;
    } else {
      return invalid_argument(fmt::format("unknown option {}", flag));
    }
  }
  return o;
}

Result<std::unique_ptr<runtime::Engine>> make_engine(const std::string& name) {
  if (name == "interp") return interp::make_interpreter();
#ifdef OSTRO_FUZZ_CPU
  if (name == "cpu" || name == "cpu-loops") {
    cpu::CpuOptions options;
    options.generated_code = name == "cpu";
    return cpu::make_cpu_engine(options);
  }
#endif
  return invalid_argument(fmt::format("no engine \"{}\" in this build", name));
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (!options.ok()) return fmt::print(stderr, "{}\n", options.error().message()), 2;
  auto engine = make_engine(options->engine);
  if (!engine.ok()) return fmt::print(stderr, "{}\n", engine.error().message()), 2;
  const auto reference = interp::make_interpreter();
  fuzz::Coverage coverage;
  fuzz::OutputStats stats;
  int64_t different = 0, differentiated = 0;
  for (int64_t i = 0; i < options->count; ++i) {
    const uint64_t seed = options->seed + static_cast<uint64_t>(i);
    const fuzz::RandomCase c = fuzz::random_case(seed);
    coverage.add(c);
    differentiated += c.differentiated ? 1 : 0;
    const auto problem = fuzz::difference(*reference, **engine, c, &stats);
    if (!problem) continue;
    ++different;
    fmt::print("seed {}: {}\n", seed, *problem);
    const auto first = fuzz::difference(*reference, **engine, fuzz::returning_everything(c));
    fmt::print("first value that differs when every value is returned: {}\n{}\n", first.value_or("none"),
               ir::print(c.program));
    std::fflush(stdout);
  }
  const auto missing = coverage.missing(), missing_differentiated = coverage.missing_differentiated();
  fmt::print(
      "seeds {} .. {}, interp against {}: {} of {} programs differ; {} differentiated; median {} ops; "
      "{} outputs, {} finite, {} varied; {} combinations reached, {} missing, {} more when differentiated\n",
      options->seed, options->seed + static_cast<uint64_t>(options->count) - 1, options->engine, different,
      options->count, differentiated, coverage.median_ops(), stats.outputs, stats.finite, stats.varied,
      coverage.reached(), missing.size(), missing_differentiated.size());
  if (options->coverage) {
    for (const std::string& m : missing) fmt::print("missing: {}\n", m);
    for (const std::string& m : missing_differentiated)
      fmt::print("missing in differentiated programs: {}\n", m);
  }
  const bool meaningful = stats.finite * 10 >= stats.outputs * 9 && stats.varied * 10 >= stats.outputs * 8;
  if (!meaningful) fmt::print("too few outputs are finite and varied\n");
  return different == 0 && meaningful ? 0 : 1;
}
