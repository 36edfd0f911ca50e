#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/config/utf8.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/decide.h"
#include "ostro/lab/drive/first_rows.h"

namespace ostro::lab {
namespace {

std::string text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string pin_name(const Plan& plan, const std::string& step) { return plan.name + "/" + step; }

Status decide_source(OpenLab& lab, StepState& state, Made& out) {
  const Step& step = *state.step;
  std::vector<std::string> patterns, places;
  for (const config::Node& file : step.parameters.find("files")->items) {
    patterns.push_back(file.text);
    places.push_back(io::join_path(lab.plan.folder, file.text));
  }
  ASSIGN_OR_RETURN(const data::FoundSources found,
                   data::find_sources(lab.context.fs, {places, {}}, {.train = step.name + ".files"}));
  ASSIGN_OR_RETURN(out.files, found.all());
  std::vector<PinnedFile> pinned;
  for (const data::SourceFile& file : out.files) {
    if (!config::is_utf8(file.path))
      return invalid_argument(fmt::format("{}: {}.files: the name of this file is no UTF-8; rename it",
                                          config::as_utf8(file.path), step.name));
    ASSIGN_OR_RETURN(const std::string hash, lab.hashes.sha256(file.path));
    pinned.push_back({lab.plan.relative(file.path), hash});
  }
  const bool is_new = !lab.pins.has(pin_name(lab.plan, step.name));
  RETURN_IF_ERROR(lab.pins.pin(pin_name(lab.plan, step.name), patterns, pinned));
  state.reason = fmt::format("{} file{}, {} in {}", pinned.size(), pinned.size() == 1 ? "" : "s",
                             !is_new     ? "as pinned"
                             : lab.works ? "now pinned"
                                         : "to be pinned",
                             kPinsFile);
  if (lab.plan.sanity) {
    ASSIGN_OR_RETURN(pinned, write_first_rows(lab, step, out.files));
    state.reason += fmt::format("; of them the first {} rows", kSanityRows);
  }
  auto inputs = nlohmann::json::object(), order = nlohmann::json::array();
  for (const PinnedFile& file : pinned) {
    out.pinned.push_back(file.sha256);
    inputs[file.path] = file.sha256;
    order.push_back({file.path, file.sha256});
  }
  state.recipe = text({{"kind", step.kind->name},
                       {"version", step.kind->version},
                       {"inputs", inputs},
                       {"parameters", nlohmann::json::parse(config::canonical_json(step.parameters))}});
  state.fingerprint = sha256_hex(state.recipe);
  state.content = sha256_hex(text(order));
  state.action = Action::kSkip;
  return lab.works ? lab.pins.save() : Status();
}

}  // namespace ostro::lab
