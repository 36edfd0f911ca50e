// ostro selftest
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/sim_workers.h"
#include "ostro/run/loop/selftest.h"

namespace ostro::cli {

int selftest_command(Args args) {
  args.summary(
      "Trains two tiny models on text made up on the spot and compares the hash of all they did with the "
      "one\n"
      "that every machine must get. Exit 0: equal, 1: differs.");
  args.device();
  if (const auto code = args.parse()) return *code;
  const auto engine = args.context().engine();
  if (!engine.ok()) return report_error(engine.error());
  const auto workers = sim_workers();
  if (!workers.ok()) return report_error(workers.error());
  const auto hash = run::selftest_hash(**engine, *workers);
  if (!hash.ok()) return report_error(hash.error());
  fmt::print("self-test hash: {}\n", *hash);
  if (*hash == run::kSelftestHash) {
    fmt::print("equal to the hash that every machine gets ({})\n", (*engine)->info().name);
    return kExitOk;
  }
  std::fflush(stdout);
  fmt::print(stderr,
             "error: the self-test hash must be {}: this build, its compiler or what it ran on ({}) does "
             "arithmetic that docs/spec/numerics.md does not allow\n",
             run::kSelftestHash, (*engine)->info().name);
  return kExitFailed;
}

}  // namespace ostro::cli
