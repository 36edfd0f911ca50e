#include "ostro/shell/words/verbs.h"

#include <fmt/core.h>

#include <cstdio>

#include "ostro/config/options.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {

std::vector<CommandWords> describe(std::span<const Command> commands, const std::string& prefix,
                                   const Context& context) {
  std::vector<CommandWords> out;
  for (const Command& command : commands) {
    out.emplace_back();
    (void)command.run(Args::describing(prefix + command.name, context, &out.back()));
  }
  return out;
}

int run_verb(Args args, std::span<const Command> verbs) {
  if (CommandWords* out = args.described()) {
    out->name = args.command();
    out->verbs = describe(verbs, args.command() + " ", args.context());
    return kExitOk;
  }
  const std::string command = args.command(), word = args.take_word();
  std::string help = fmt::format("Usage: {} VERB [words]\n\nVerbs (each has --help):\n", command);
  std::vector<std::string> names;
  for (const Command& verb : verbs) {
    if (word == verb.name) return verb.run(std::move(args));
    names.emplace_back(verb.name);
    help += fmt::format("  {:<12}{}\n", verb.name, verb.help);
  }
  if (!word.empty())
    return report_error(
        invalid_argument(fmt::format("{}: unknown verb \"{}\"; the nearest is \"{}\" (see {} --help)",
                                     command, word, config::nearest_name(word, names), command)));
  const bool wanted = args.asks_for_help();
  std::fputs(help.c_str(), wanted ? stdout : stderr);
  return wanted ? kExitOk : kExitUsage;
}

}  // namespace ostro::cli
