#include "ostro/lab/steps/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/bundle/parts/file_sums.h"
#include "ostro/chain/version.h"
#include "ostro/experiment/plan/evaluation_files.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/io/files/below.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/halving.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/lab/steps/sandbox.h"
#include "ostro/run/phases/phases.h"

namespace ostro::lab {
namespace {

constexpr const char* kFetched = ".fetched";  // one of kBesideOutput

}  // namespace

const Step& Work::input(const std::string& parameter) const {
  const Step* found = plan.find(step.inputs.at(parameter));
  OSTRO_CHECK(found != nullptr, "step {}: its input {} is not in the plan", step.name,
              step.inputs.at(parameter));
  return *found;
}

const Step& step_with_files(const Plan& plan, const Step& step) {
  const Step* out = &step;
  while (out->kind->gives_verdicts()) out = plan.find(out->inputs.at("from"));
  return *out;
}

std::string verdicts_file(const Work& work, const std::string& step) {
  if (!work.plan.find(step)->kind->gives_verdicts()) return "";
  return io::join_path(work.made.at(step).folder, kVerdictsFile);
}

Result<std::shared_ptr<const data::RowVerdicts>> verdicts_of(const Work& work, const std::string& step) {
  const std::string path = verdicts_file(work, step);
  if (path.empty()) return std::shared_ptr<const data::RowVerdicts>();
  ASSIGN_OR_RETURN(data::RowVerdicts read, data::read_row_verdicts(work.context.fs, path));
  return std::shared_ptr<const data::RowVerdicts>(std::make_shared<data::RowVerdicts>(std::move(read)));
}

std::string name_of(const Work& work, const std::string& name, const std::string& path) {
  const std::string& step = step_with_files(work.plan, *work.plan.find(name)).name;
  const std::string& folder = work.made.at(step).folder;
  return folder.empty() ? work.plan.relative(path) : step + path.substr(folder.size());
}

Result<std::vector<data::SourceFile>> files_of(const Work& work, const std::string& name) {
  const std::string& step = step_with_files(work.plan, *work.plan.find(name)).name;
  const Made& made = work.made.at(step);
  if (made.folder.empty()) return made.files;
  ASSIGN_OR_RETURN(const data::FoundSources found,
                   data::find_sources(work.context.fs, {{made.folder}, {}}, {.train = step}));
  return found.all();
}

Result<std::string> fetched(io::FileSystem& fs, const std::string& folder, const std::string& path) {
  const std::string_view scheme = io::path_scheme(path);
  if (scheme.empty()) return path;
  const std::string object = path.substr(scheme.size());
  if (!io::stays_below(object))
    return invalid_argument(
        fmt::format("{}: its key has an empty, \".\" or \"..\" component, so no copy of it gets a place on "
                    "this machine; give the object another key",
                    path));
  const std::string copy = io::join_path(folder + kFetched, object);
  RETURN_IF_ERROR(fs.make_dirs(io::parent_path(copy)));
  RETURN_IF_ERROR(bundle::copy_file(fs, path, copy, [](int64_t) {}));
  return copy;
}

FetchedCopies::~FetchedCopies() {
  const std::string place = folder_ + kFetched;
  if (const Status removed = fs_.remove_all(place); !removed.ok())
    log_warning(fmt::format("{}: copies of objects stay there: {}", place, removed.error().message()));
}

Result<std::vector<std::string>> urls_of(const Work& work, const std::string& step) {
  std::vector<std::string> urls;
  ASSIGN_OR_RETURN(const std::vector<data::SourceFile> files, files_of(work, step));
  for (const data::SourceFile& file : files) urls.push_back(io::glob_literal(file.path));
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
  const bool trains = step.kind->makes_run();
  for (const auto& [parameter, input] : step.inputs) {
    if (is_of_family(step, parameter) && !work.made.contains(input)) continue;  // it is left out
    // A training does not depend on the forecast that it checks: it only comes after it.
    const Parameter* declared = step.kind->find(parameter);
    if (declared == nullptr || declared->effect != config::Effect::kPlan)
      out["inputs"][parameter] = work.made.at(input).content;
  }
  if (trains || step.kind->name == "forecast") {
    ASSIGN_OR_RETURN(const std::vector<train::TrainConfig> configs, training_configs(work, ""));
    const train::TrainConfig& config = configs.front();
    std::vector<std::string> programs;
    for (const train::TrainConfig& phase : configs) {
      ASSIGN_OR_RETURN(programs.emplace_back(), programs_of(work, phase));
    }
    if (step.kind->name == kForkKind) {
      ASSIGN_OR_RETURN(out["at"], forked_at(work));
    }
    RETURN_IF_ERROR(check_rungs(work, configs.back()));
    ASSIGN_OR_RETURN(const std::optional<int64_t> until, ends_after(work));
    out["parameters"] = {{"config", nlohmann::json::parse(train::canonical_text(config))},
                         {"program", programs.front()},
                         {"numerics", chain::kNumericsVersion},
                         {"numerics_options", nlohmann::json::parse(train::numerics_options(config))}};
    if (until) out["parameters"]["until"] = *until;
    for (const run::ComingAmend& amend : run::amends_of(configs, programs))
      out["parameters"]["amends"].push_back(
          {{"step", amend.step}, {"difference", nlohmann::json::parse(amend.difference)}});
    if (!trains) out["parameters"]["runs"] = nlohmann::json::parse(step.parameters.find("runs")->text);
  } else {
    out["parameters"] = nlohmann::json::parse(config::canonical_json(work.parameters()));
  }
  // An evaluation of all states of a training in phases computes each with the model of its phase. Versions
  // before this one took the model of the last phase for all.
  if (step.kind->name == "eval" && work.input("of").parameters.find("phases") != nullptr)
    if (const config::Node* at = step.parameters.find("at"); at != nullptr && at->text == "kept")
      out["parameters"]["models"] = "of phases";
  // The names of its runs are in its output, and their N, D and FLOPs, which follow from their recipes.
  if (step.kind->name == "fit")
    for (const auto& [unused, evaluation] : step.inputs) {
      if (!work.made.contains(evaluation)) continue;
      const std::string& run = work.plan.find(evaluation)->inputs.at("of");
      out["runs"].push_back({run, work.made.at(run).fingerprint});
    }
  // Of equal losses the order of the plan decides.
  if (step.kind->name == kRung)
    for (const Step* evaluation : members_there(work.plan, work.made, step))
      out["members"].push_back({evaluation->name, evaluation->inputs.at("of")});
  if (step.kind->name == kCorpusKind) out["parameters"]["documents"] = corpus_documents(work);
  if (step.kind->name == "filter" || step.kind->name == kCorpusKind) {
    ASSIGN_OR_RETURN(out["files"], evaluation_hashes(work.context.fs, work.plan, step));
  }
  if (step.kind->name == kCommandKind) {
    ASSIGN_OR_RETURN(out["files"], command_files(work));
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::optional<run::Cost>> cost(const Work& work) {
  if (!work.step.kind->makes_run() || !work.services.cost) return std::optional<run::Cost>();
  ASSIGN_OR_RETURN(const std::vector<train::TrainConfig> configs, training_configs(work, ""));
  int64_t from = 0;  // what the first of them begins behind
  if (work.step.kind->name == kForkKind) {
    ASSIGN_OR_RETURN(from, forked_at(work));
  }
  if (const auto begun = work.step.inputs.find(kBegun); begun != work.step.inputs.end())
    from = rung_step(work.plan, *work.plan.find(begun->second)).value_or(0);
  // What is kept up to a step in a folder of its own, with the copies of what was kept before its rung.
  const auto kept = [](const train::TrainConfig& config, int64_t last) {
    int64_t count = 1;  // the one of the last step is kept whatever the configuration says
    for (int64_t at = 1; at < last; ++at) count += config.trainer.checkpointer.is_kept(at) ? 1 : 0;
    return static_cast<double>(count);
  };
  run::Cost out;
  for (const train::TrainConfig& config : configs) {
    const int64_t all = config.trainer.num_train_steps, to = rung_step(work.plan, work.step).value_or(all);
    ASSIGN_OR_RETURN(const run::Cost whole,
                     work.services.cost(config, from));  // of a run from the first step on
    const double share = static_cast<double>(to - from) / static_cast<double>(all);
    out.flops += whole.flops * share;
    out.seconds += whole.seconds * share;
    out.memory = std::max(out.memory, whole.memory);
    out.files = whole.files;  // of all checkpoints up to its last step
    if (to < all)
      out.files = static_cast<decltype(out.files)>(static_cast<double>(whole.files) * kept(config, to) /
                                                   kept(config, all));
    from = to;
  }
  return std::optional<run::Cost>(out);
}

Result<std::optional<std::string>> perform(const Work& work, const std::string& folder) {
  const std::string& kind = work.step.kind->name;
  if (kind == "train") return make_run(work, folder);
  if (kind == kForkKind) return make_fork(work, folder);
  const auto make = kind == "tokenizer"    ? make_tokenizer
                    : kind == "tokens"     ? make_tokens
                    : kind == "fit"        ? make_fit
                    : kind == "forecast"   ? make_forecast
                    : kind == kRung        ? make_rung
                    : kind == "extract"    ? make_extraction
                    : kind == kCorpusKind  ? make_corpus
                    : kind == "filter"     ? make_filter
                    : kind == "quality"    ? make_quality
                    : kind == "sample"     ? make_samples
                    : kind == kExportKind  ? make_export
                    : kind == kPublishKind ? make_bundle
                    : kind == kCommandKind ? make_command
                                           : make_evaluation;
  Result<std::string> content = make(work, folder);
  // The terminal sends its signal to a program that is run, too.
  const bool stops = kind == kCommandKind || kind == "extract" || kind == "sample";
  if (!content.ok() && stops && work.context.stop()) return std::optional<std::string>();
  if (!content.ok()) return content.error();
  return std::optional<std::string>(std::move(*content));
}

Status is_sandboxed(const StepKind& kind) { return kind.name == kCommandKind ? sandbox_works() : Status(); }

bool resumes(const StepKind& kind) { return kind.makes_run() || kind.name == "tokens"; }

}  // namespace ostro::lab
