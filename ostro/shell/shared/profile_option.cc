#include "ostro/shell/shared/profile_option.h"

namespace ostro::cli {

void take_profile(Args& args, std::string* text, const std::string& more) {
  args.option("--profile", text, "steps=FIRST:END",
              "write a trace of the steps from FIRST to before END, counted from 0, into the run directory: "
              "profile-FIRST-END.json, for https://ui.perfetto.dev" +
                  more);
}

Result<std::optional<train::StepRange>> profile_range(const std::string& text, std::optional<int64_t> steps) {
  if (text.empty()) return std::optional<train::StepRange>();
  ASSIGN_OR_RETURN(const train::StepRange range, train::parse_profile(text));
  if (steps) RETURN_IF_ERROR(train::check_profile(range, *steps));
  return std::optional(range);
}

}  // namespace ostro::cli
