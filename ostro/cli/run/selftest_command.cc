// ostro selftest
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/main/commands.h"
#include "ostro/run/loop/selftest.h"
#include "ostro/shell/shared/sim_workers.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {

int selftest_command(Args args) {
  args.summary(
      "Trains three tiny models on text made up on the spot and compares two hashes of all they did with "
      "those\n"
      "that every machine must get: one of products of floats, one of products of integers. Exit 0: equal,\n"
      "1: differs.");
  args.device();
  if (const auto code = args.parse()) return *code;
  const auto engine = args.context().engine();
  if (!engine.ok()) return report_error(engine.error());
  const auto workers = sim_workers();
  if (!workers.ok()) return report_error(workers.error());
  const auto hashes = run::selftest_hashes(**engine, *workers);
  if (!hashes.ok()) return report_error(hashes.error());
  const run::SelftestHashes known = run::known_selftest_hashes();
  fmt::print("self-test hash: {}\nof integer products: {}\n", hashes->floats, hashes->integers);
  if (*hashes == known) {
    fmt::print("equal to the hashes that every machine gets ({})\n", (*engine)->info().name);
    return kExitOk;
  }
  std::fflush(stdout);
  const bool floats = hashes->floats != known.floats;
  fmt::print(stderr,
             "error: the {} must be {}: this build, its compiler or what it ran on ({}) does "
             "arithmetic that docs/spec/numerics.md does not allow\n",
             floats ? "self-test hash" : "self-test's hash of integer products",
             floats ? known.floats : known.integers, (*engine)->info().name);
  return kExitFailed;
}

}  // namespace ostro::cli
