#include "ostro/lab_commands/lab_kinds.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/config/options.h"
#include "ostro/experiment/plan/step_kinds.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

// What stands where a parameter is left out.
std::string default_text(const lab::Parameter& p) {
  if (p.required) return "required";
  return p.default_value.empty() ? "may be left out" : "default " + p.default_value;
}

std::string value_text(const lab::Parameter& p) {
  const std::string text = lab::value_type_text(p.type);
  return p.of.empty() ? text : fmt::format("{} ({})", text, lab::kinds_that_fit(p));
}

std::string kind_text(const lab::StepKind& kind) {
  std::string out = fmt::format("{} (version {}): {}\n", kind.name, kind.version, kind.help);
  for (const lab::Parameter& p : kind.parameters)
    out += fmt::format("  {}: {}\n    {}; {}; effect: {}\n", p.name, p.help, value_text(p), default_text(p),
                       config::effect_name(p.effect));
  return out;
}

nlohmann::json kind_json(const lab::StepKind& kind) {
  nlohmann::json out = {{"kind", kind.name}, {"version", kind.version}, {"help", kind.help}};
  for (const lab::Parameter& p : kind.parameters)
    out["parameters"].push_back({{"name", p.name},
                                 {"value", value_text(p)},
                                 {"default", default_text(p)},
                                 {"effect", config::effect_name(p.effect)},
                                 {"help", p.help}});
  return out;
}

}  // namespace

int lab_kinds(Args args) {
  std::string name;
  bool json = false;
  args.summary(
      "Lists the kinds of steps with their parameters, and what each parameter changes: bits (another value "
      "is "
      "another\n"
      "output, and the step is done again), output (what is said of the same output) or plan (when the step "
      "is "
      "done).");
  args.option("--kind", &name, "KIND", "only this kind");
  args.flag("--json", &json, "print a JSON object for each kind, a line each");
  if (const auto code = args.parse()) return *code;
  std::vector<std::string> names;
  std::string text;
  for (const lab::StepKind& kind : lab::step_kinds()) {
    names.push_back(kind.name);
    if (!name.empty() && kind.name != name) continue;
    text += json ? kind_json(kind).dump() + "\n" : (text.empty() ? "" : "\n") + kind_text(kind);
  }
  if (!text.empty()) return exit_after(write_stdout(text));
  const std::string nearest = config::nearest_name(name, names);
  return report_error(
      invalid_argument(fmt::format("--kind: no step is of kind \"{}\"{}", name,
                                   nearest.empty() ? "" : fmt::format("; the nearest is \"{}\"", nearest))));
}

}  // namespace ostro::cli
