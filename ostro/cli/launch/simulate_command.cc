// ostro simulate
#include <fmt/format.h>

#include "ostro/cli/main/commands.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/simulate/simulate.h"

namespace ostro::cli {
int simulate_command(Args args) {
  simulate::SimulateOptions options;
  int64_t vocab = 0;
  bool json = false, calibrates = false;
  args.summary(
      "Says how long a step of a run takes on many hosts, what they send, what a run loses by failures, and "
      "what limits it.\nNothing is trained: clock and links are virtual. But for --calibrate, the same "
      "options give the same result.");
  args.option("--hosts", &options.hosts, "N", "how many workers", Args::kRequired);
  args.option("--slices", &options.slices, "N",
              "groups of hosts of one size, with slow links between them (default 1)");
  args.option("--hosts_per_machine", &options.hosts_per_machine, "N",
              "hosts that share the cores and the link of one machine (default 1)");
  args.option(
      "--min_workers", &options.min_workers, "N",
      "with fewer hosts the run waits for others (default 1: it goes on with as few as its mesh allows)");
  args.option("--seed", &options.seed, "N", "of speeds and failures (default 1)");
  args.option("--vocab", &vocab, "N", "tokens, in place of the tokenizer's; then no tokenizer is read");
  for (const simulate::Rate& rate : simulate::rates())
    args.option(std::string("--") + rate.name, &(options.*rate.value), "X",
                fmt::format("{}{}{} (default {:g})", rate.unit, *rate.unit == '\0' ? "" : " ", rate.help,
                            options.*rate.value));
  args.flag("--calibrate", &calibrates,
            "measure on this machine, with OSTRO_THREADS threads: leaves, sums, update, fingerprints, "
            "loopback and messages");
  args.flag("--json", &json, "print JSON");
  args.config();
  if (const auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const Context& context = args.context();
  const auto engine = calibrates ? context.engine() : context.engine_for_a_moment();
  if (!engine.ok()) return report_error(engine.error());
  const auto done = simulate::simulate_config(context.fs, *config, vocab, **engine, options, calibrates);
  if (!done.ok()) return report_error(done.error());
  return exit_after(write_stdout(json ? simulate::report_json(*done) : simulate::report_text(*done)));
}

}  // namespace ostro::cli
