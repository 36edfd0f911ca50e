#include "ostro/lab_commands/lab_replayed.h"

#include <fmt/format.h>

#include "ostro/lab/drive/take_replay.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {

int lab_replayed(Args args) {
  std::string file, statement;
  args.summary(
      "Takes the statement of somebody who replayed a run of the lab (ostro verify --statement) into the "
      "journal.\n"
      "The record's table `replays` has it from then on, and numbers that stand on runs and other steps that "
      "were\n"
      "all done again, whole, are of the class replayed.");
  args.positional("FILE", &file, "the plan");
  args.positional("STATEMENT", &statement, "the file that ostro verify wrote");
  if (const auto code = args.parse()) return *code;
  const auto take = [&]() -> Status {
    const Context& context = args.context();
    ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
    ASSIGN_OR_RETURN(const std::string text, context.fs.read_file(statement));
    ASSIGN_OR_RETURN(const lab::TakenReplay taken, lab::take_replay(context, plan, text, statement));
    return write_stdout(fmt::format("{}: {}: {}, by {}\n", taken.is_new ? "taken" : "taken already",
                                    taken.step, taken.verified, taken.who));
  };
  return exit_after(take());
}

}  // namespace ostro::cli
