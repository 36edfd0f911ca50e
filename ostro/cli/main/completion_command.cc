// ostro completion bash
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/main/bash_completion.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"

namespace ostro::cli {
namespace {

int bash(Args args) {
  args.summary(
      "Prints a script for bash that completes commands, options, keys of the configuration and files:\n"
      "  source <(ostro completion bash)\n"
      "An installed ostro has it in share/bash-completion/completions, where bash finds it by itself.");
  if (const auto code = args.parse()) return *code;
  const std::string script = bash_completion("ostro", describe(commands(), "", args.context()),
                                             config::list_options(train::TrainConfig(args.context().models)));
  std::fputs(script.c_str(), stdout);
  return kExitOk;
}

constexpr Command kShells[] = {{"bash", "for bash 4 and later", bash}};

}  // namespace

int completion_command(Args args) { return run_verb(std::move(args), kShells); }

}  // namespace ostro::cli
