#include "ostro/lab/steps/work.h"

#include <nlohmann/json.hpp>

#include "ostro/chain/version.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {

const Step& Work::input(const std::string& parameter) const {
  const Step* found = plan.find(step.inputs.at(parameter));
  OSTRO_CHECK(found != nullptr, "step {}: its input {} is not in the plan", step.name,
              step.inputs.at(parameter));
  return *found;
}

std::vector<std::string> urls_of(const Made& source) {
  std::vector<std::string> urls;
  for (const data::SourceFile& file : source.files) urls.push_back(io::glob_literal(file.path));
  return urls;
}

const std::string& text_of(const Step& step, const char* parameter) {
  return step.parameters.find(parameter)->text;
}

std::vector<std::string> texts_of(const Step& step, const char* parameter) {
  std::vector<std::string> out;
  for (const config::Node& item : step.parameters.find(parameter)->items) out.push_back(item.text);
  return out;
}

Result<std::string> recipe(const Work& work) {
  const Step& step = work.step;
  nlohmann::json out = {
      {"kind", step.kind->name}, {"version", step.kind->version}, {"inputs", nlohmann::json::object()}};
  for (const auto& [parameter, input] : step.inputs) out["inputs"][parameter] = work.made.at(input).content;
  if (step.kind->name == "train") {
    ASSIGN_OR_RETURN(const train::TrainConfig config, training_config(work, ""));
    ASSIGN_OR_RETURN(const std::string programs, programs_of(work, config));
    out["parameters"] = {{"config", nlohmann::json::parse(train::canonical_text(config))},
                         {"program", programs},
                         {"numerics", chain::kNumericsVersion},
                         {"numerics_options", nlohmann::json::parse(train::numerics_options(config))}};
  } else {
    out["parameters"] = nlohmann::json::parse(config::canonical_json(step.parameters));
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::optional<std::string>> perform(const Work& work, const std::string& folder) {
  const std::string& kind = work.step.kind->name;
  if (kind == "train") return make_run(work, folder);
  const auto make = kind == "tokenizer" ? make_tokenizer : kind == "tokens" ? make_tokens : make_evaluation;
  ASSIGN_OR_RETURN(std::string content, make(work, folder));
  return std::optional<std::string>(std::move(content));
}

bool resumes(const StepKind& kind) { return kind.name == "train" || kind.name == "tokens"; }

}  // namespace ostro::lab
