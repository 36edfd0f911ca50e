#include "ostro/lab/steps/run_data.h"

#include "ostro/chain/config_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {

Result<std::optional<RunData>> run_data(const Context& context, const Plan& plan,
                                        const std::map<std::string, Made>& made, const Step& step) {
  const Services services;
  const Seeds seeds;  // no option of data has one
  const Work work{context, services, plan, step, made, seeds};
  std::vector<config::Override> overrides;
  RETURN_IF_ERROR(set_data(work, overrides));
  // The configuration that the run has in its folder: that of its last period, which describes all steps.
  const std::string file = chain::config_file(context.fs, made.at(step.name).folder);
  RETURN_IF_ERROR(context.fs.stat(file));
  auto config = train::load_train_config(file, overrides, context.models);
  if (!config.ok()) return std::optional<RunData>();
  RunData out{std::move(*config), {}};
  for (const auto& [component, tokens] : stores_of(work)) {
    StoreFrom& store = out.stores[component];
    store.step = tokens->name;
    const std::string& from = tokens->inputs.at("from");
    ASSIGN_OR_RETURN(const std::vector<data::SourceFile> files, files_of(work, from));
    for (const data::SourceFile& file : files)
      store.files.push_back({file.path, name_of(work, from, file.path)});
    store.may_be_shown = texts_may_be_shown(plan, *plan.find(from));
  }
  return std::optional<RunData>(std::move(out));
}

bool texts_may_be_shown(const Plan& plan, const Step& step) {
  std::set<std::string> seen;
  std::vector<const Step*> steps = plan.needed_by(step, seen);
  steps.push_back(&step);
  bool has_source = false;
  for (const Step* needed : steps) {
    const std::string& kind = needed->kind->name;
    // The files of the plan's folder that a program reads have no licence.
    if (kind == kCommandKind && !texts_of(*needed, "files").empty()) return false;
    if (kind != "source" && kind != kCorpusKind) continue;
    has_source = true;
    if (!plan.show_texts.contains(kind == "source" ? text_of(*needed, "licence") : "drawn")) return false;
  }
  return has_source;
}

}  // namespace ostro::lab
