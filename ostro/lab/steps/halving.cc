#include "ostro/lab/steps/halving.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/bundle/parts/file_sums.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/config_file.h"
#include "ostro/config/config.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/lab/steps/rung.h"

namespace ostro::lab {
namespace {

constexpr const char* kCopyBegun = ".begun";  // one of kBesideOutput

std::string shown_loss(const std::string& loss) {
  const auto value = chain::parse_hex_float(loss);
  return value.ok() ? fmt::format("{:.6g}", *value) : loss;
}

}  // namespace

Result<std::optional<Stopped>> stopped_at(io::FileSystem& fs, const Plan& plan,
                                          const std::map<std::string, Made>& made, const Step& step) {
  const auto begun = step.inputs.find(kBegun);
  if (step.kind->name != "train" || begun == step.inputs.end()) return std::optional<Stopped>();
  ASSIGN_OR_RETURN(std::optional<Stopped> before, stopped_at(fs, plan, made, *plan.find(begun->second)));
  if (before) return before;
  const std::string& rung = step.inputs.at(kRung);
  const auto decided = made.find(rung);
  if (decided == made.end())
    return corrupt(fmt::format("step {}: its rung {} is not there", step.name, rung));
  ASSIGN_OR_RETURN(const std::vector<RungMember> members, read_rung(fs, decided->second.folder));
  const auto kept = std::count_if(members.begin(), members.end(), [](const auto& m) { return m.kept; });
  for (const RungMember& member : members) {
    if (member.run != begun->second) continue;
    if (member.kept) return std::optional<Stopped>();
    return std::optional(
        Stopped{member.step,
                fmt::format("at the rung {} after step {}: place {} of {} by held-out loss {}, "
                            "{} kept",
                            rung, member.step, member.place, members.size(), shown_loss(member.loss), kept)});
  }
  return corrupt(
      fmt::format("{}: says nothing of {}", io::join_path(decided->second.folder, kRungFile), begun->second));
}

int64_t began_behind(const Plan& plan, const std::map<std::string, Made>& made, const Step& step) {
  if (step.kind->name != "train") return 0;
  const std::string& fingerprint = made.at(step.name).fingerprint;
  for (const Step* at = &step; at->inputs.contains(kBegun);) {
    const Step& before = *plan.find(at->inputs.at(kBegun));
    const auto part = made.find(before.name);  // of what was stopped all parts are one output
    if (part == made.end() || part->second.fingerprint != fingerprint)
      return rung_step(plan, before).value_or(0);
    at = &before;
  }
  return 0;
}

bool is_of_family(const Step& step, const std::string& parameter) {
  return step.kind->find(parameter) == nullptr &&
         std::any_of(step.kind->parameters.begin(), step.kind->parameters.end(),
                     [](const Parameter& p) { return p.type == ValueType::kFamilies; });
}

std::vector<const Step*> members_there(const Plan& plan, const std::map<std::string, Made>& made,
                                       const Step& step) {
  std::vector<const Step*> out;
  for (const Step& other : plan.steps)
    if (step.inputs.contains(other.name) && is_of_family(step, other.name) && made.contains(other.name))
      out.push_back(&other);
  return out;
}

Result<std::string> left_out(io::FileSystem& fs, const Plan& plan, const std::map<std::string, Made>& made,
                             const std::set<std::string>& left, const Step& step) {
  std::string of_family;
  bool has_member = false;
  for (const auto& [parameter, input] : step.inputs) {
    std::string why;
    if (left.contains(input)) why = fmt::format("needs {}, which is left out", input);
    if (why.empty() && !(parameter == kBegun && step.kind->name == "train")) {
      ASSIGN_OR_RETURN(const std::optional<Stopped> stopped, stopped_at(fs, plan, made, *plan.find(input)));
      if (stopped) why = fmt::format("{} was stopped {}", input, stopped->why);
    }
    if (is_of_family(step, parameter)) {
      has_member |= why.empty();
      if (of_family.empty()) of_family = why;
    } else if (!why.empty()) {
      return why;
    }
  }
  return has_member ? "" : of_family;
}

std::optional<int64_t> most_that_go_on(const Plan& plan, const Step& training) {
  const auto begun = training.inputs.find(kBegun);
  if (training.kind->name != "train" || begun == training.inputs.end()) return std::nullopt;
  const Step& before = *plan.find(begun->second);
  const auto here = most_that_go_on(plan, before);
  const int64_t members =
      here ? *here : std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& other) {
        return other.family == before.family;
      });
  const Step& rung = *plan.find(training.inputs.at(kRung));
  return KeptShare::parse(text_of(rung, "keep")).value_or(KeptShare{}).kept(members);
}

Status check_rungs(const Work& work, const train::TrainConfig& config) {
  if (!is_halved(work.step)) return {};
  const int64_t total = config.trainer.num_train_steps;
  for (const Step* part : parts_of_member(work.plan, work.step)) {
    const auto at = rung_step(work.plan, *part);
    if (!at) continue;
    const std::string what = fmt::format("halving.at: {}", *at);
    if (*at >= total)
      return invalid_argument(fmt::format(
          "{}: the training has {} steps, and a rung is before the last one; leave it out, or raise "
          "trainer.num_train_steps",
          what, total));
    if (!config.trainer.checkpointer.is_kept(*at))
      return invalid_argument(
          fmt::format("{}: the training keeps no state there, from which members could go on; let "
                      "trainer.checkpointer.keep have it, for instance '[{{every: {}}}]'",
                      what, *at));
  }
  return {};
}

bool is_halved(const Step& step) {
  return step.kind->name == "train" &&
         (step.parameters.find(kUntil) != nullptr || step.inputs.contains(kBegun));
}

Result<std::optional<int64_t>> ends_after(const Work& work) {
  if (!is_halved(work.step)) return std::optional<int64_t>();
  ASSIGN_OR_RETURN(const std::optional<Stopped> stopped,
                   stopped_at(work.context.fs, work.plan, work.made, work.step));
  if (stopped) return std::optional(stopped->step);
  return rung_step(work.plan, work.step);
}

Status take_begun(const Work& work, const std::string& folder) {
  const auto begun = work.step.inputs.find(kBegun);
  if (begun == work.step.inputs.end()) return {};
  io::FileSystem& fs = work.context.fs;
  ASSIGN_OR_RETURN(const bool is_there, fs.exists(folder));
  if (is_there) return {};
  const std::string from = work.made.at(begun->second).folder, copy = folder + kCopyBegun;
  RETURN_IF_ERROR(fs.remove_all(copy));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, files_below(fs, from, [](const std::string& name) {
                     return name == "lock" || name.ends_with(".lock") || name.ends_with(".tmp");
                   }));
  for (const std::string& file : files) {
    const std::string path = io::join_path(copy, file);
    RETURN_IF_ERROR(fs.make_dirs(io::parent_path(path)));
    RETURN_IF_ERROR(bundle::copy_file(fs, io::join_path(from, file), path, [](int64_t) {}));
  }
  ASSIGN_OR_RETURN(const train::TrainConfig config, training_config(work, folder));
  RETURN_IF_ERROR(
      io::write_file_atomically(fs, io::join_path(copy, chain::kConfigFile), config::resolved_yaml(config)));
  RETURN_IF_ERROR(fs.sync_tree(copy));
  return fs.rename(copy, folder);
}

}  // namespace ostro::lab
