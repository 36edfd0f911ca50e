// Command: a row of a table of commands or verbs, and what every such table needs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/shell/words/args.h"

namespace ostro::cli {

struct Command {
  const char* name;
  const char* help;  // one line
  // Returns the exit status.
  int (*run)(Args args);
};

// The options and words that each of `commands` takes, for completion. `prefix` is written before each name.
std::vector<CommandWords> describe(std::span<const Command> commands, const std::string& prefix,
                                   const Context& context);

// Runs the verb that the first word names (`ostro tokenizer train ...`), or prints the list of verbs. Returns
// the exit status.
int run_verb(Args args, std::span<const Command> verbs);

}  // namespace ostro::cli
