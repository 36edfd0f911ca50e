#include "ostro/lab/drive/driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/failpoint.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/config/options.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/journal/output.h"
#include "ostro/lab/journal/pins.h"

namespace ostro::lab {
namespace {

std::string short_hash(const std::string& hash) { return hash.substr(0, 12); }

class Driver {
 public:
  Driver(const Context& context, const Services& services, const Plan& plan, const RunRequest& request,
         bool works, Journal journal, Pins pins)
      : context_(context),
        services_(services),
        plan_(plan),
        request_(request),
        works_(works),
        journal_(std::move(journal)),
        pins_(std::move(pins)),
        directory_(plan.directory()),
        hashes_(context.fs, io::join_path(directory_, "hashes.json"), request.every_byte) {}

  Result<LabState> all() {
    if (works_) RETURN_IF_ERROR(keep_plan());
    for (const std::string& source : request_.pin) pins_.forget(pin_name(source));
    for (const Step& step : plan_.steps) {
      StepState state{.step = &step};
      RETURN_IF_ERROR(handle(state));
      if (request_.on_end) request_.on_end(state);
      if (state.action == Action::kSkip)
        out_.made[step.name] =
            Made{state.fingerprint, state.content,
                 step.kind->name == "source" ? "" : output_folder(directory_, state.fingerprint),
                 std::move(files_), std::move(pinned_)};
      files_.clear();
      pinned_.clear();
      out_.steps.push_back(std::move(state));
      if (works_ && (out_.stopped = out_.stopped || context_.stop())) break;
    }
    if (works_) RETURN_IF_ERROR(hashes_.save());
    return std::move(out_);
  }

 private:
  std::string pin_name(const std::string& step) const { return plan_.name + "/" + step; }

  // The expanded plan is kept beside the journal, which has its hash.
  Status keep_plan() {
    const std::string text = canonical_plan(plan_), hash = sha256_hex(text);
    if (journal_.plan_hash() == hash) return {};
    const std::string folder = io::join_path(directory_, "plans");
    RETURN_IF_ERROR(context_.fs.make_dirs(folder));
    RETURN_IF_ERROR(io::write_file_atomically(context_.fs, io::join_path(folder, hash + ".json"), text));
    return journal_.add_plan(hash);
  }

  // The final state of a step. Its failures are states, too; errors are those of the lab's own files.
  Status handle(StepState& state) {
    const Step& step = *state.step;
    for (const auto& [parameter, input] : step.inputs) {
      if (out_.made.contains(input)) continue;
      const StepState* of = out_.find(input);
      const bool failed = of->action == Action::kFail;
      state.reason = fmt::format("needs {}, which {}", input, failed ? "failed" : "is not done");
      return {};
    }
    const Work work = {context_, services_, plan_, step, out_.made};
    if (const Status known = prepare(work, state); !known.ok()) {
      state.action = Action::kFail;
      state.reason = known.error().message();
      return {};
    }
    if (state.action == Action::kSkip || !works_)
      return is_recorded(state) || !works_ ? Status() : record(state);
    if (request_.on_begin) request_.on_begin(state);
    const Result<bool> done = perform_step(work, state);
    if (!done.ok()) {
      state.action = Action::kFail;
      state.reason = done.error().message();
    } else if (!*done) {
      out_.stopped = true;
      state.reason = "stopped; the same command goes on";
    } else {
      state.action = Action::kSkip;
      state.reason = fmt::format("has the content {}", short_hash(state.content));
    }
    return {};
  }

  bool is_recorded(const StepState& state) const {
    const DoneEntry* last = journal_.last_of(state.step->name);
    return last != nullptr && last->fingerprint == state.fingerprint;
  }

  Status record(const StepState& s) {
    return journal_.add_done({s.step->name, s.recipe, s.fingerprint, s.content, s.manifest});
  }

  // Recipe and fingerprint of a step, and whether it is done.
  Status prepare(const Work& work, StepState& state) {
    if (state.step->kind->name == "source") return pin_source(state);
    ASSIGN_OR_RETURN(state.recipe, recipe(work));
    state.fingerprint = sha256_hex(state.recipe);
    if (journal_.has_conflict(state.fingerprint))
      return corrupt(
          fmt::format("fingerprint {} gave two different outputs (journal, \"conflict\"); this machine or "
                      "this program computes wrongly. Nothing goes on from here",
                      short_hash(state.fingerprint)));
    const DoneEntry* done = journal_.find(state.fingerprint);
    state.action = Action::kRun;
    if (done != nullptr) {
      ASSIGN_OR_RETURN(const bool holds,
                       check_output(context_.fs, directory_, state.fingerprint, done->manifest, hashes_));
      state.content = done->content;
      state.manifest = done->manifest;
      if (holds) state.action = Action::kSkip;
      state.reason = !holds ? "its output is gone"
                     : done->step == state.step->name
                         ? fmt::format("fingerprint {} is in the journal, and its output is unchanged",
                                       short_hash(state.fingerprint))
                         : fmt::format("{} has the same fingerprint {}, and its output is unchanged",
                                       done->step, short_hash(state.fingerprint));
      return {};
    }
    const DoneEntry* last = journal_.last_of(state.step->name);
    state.reason = last == nullptr ? "was never done" : first_difference(last->recipe, state.recipe);
    ASSIGN_OR_RETURN(const bool begun, context_.fs.exists(output_folder(directory_, state.fingerprint)));
    if (begun && resumes(*state.step->kind)) {
      state.action = Action::kResume;
      state.reason = "was begun";
    }
    return {};
  }

  static std::string first_difference(const std::string& there, const std::string& here) {
    const auto all = chain::object_differences(there, here);
    return all.empty() ? "its recipe has changed"
                       : fmt::format("{}{}", all[0],
                                     all.size() > 1 ? fmt::format(", and {} more", all.size() - 1) : "");
  }

  // A source is done when its files are what lab.lock says; its content are their names and hashes.
  Status pin_source(StepState& state) {
    const Step& step = *state.step;
    const std::string top =
        plan_.folder.ends_with('/') ? plan_.folder : plan_.folder + "/";  // "/" is a folder
    std::vector<std::string> patterns, places;
    for (const config::Node& file : step.parameters.find("files")->items) {
      patterns.push_back(file.text);
      places.push_back(io::join_path(plan_.folder, file.text));
    }
    ASSIGN_OR_RETURN(const data::FoundSources found,
                     data::find_sources(context_.fs, {places, {}}, {.train = step.name + ".files"}));
    ASSIGN_OR_RETURN(files_, found.all());
    std::vector<PinnedFile> pinned;
    auto inputs = nlohmann::json::object(), order = nlohmann::json::array();
    for (const data::SourceFile& file : files_) {
      const bool below = !plan_.folder.empty() && file.path.starts_with(top);
      const std::string path = below ? file.path.substr(top.size()) : file.path;
      ASSIGN_OR_RETURN(const std::string hash, hashes_.sha256(file.path));
      pinned.push_back({path, hash});
      pinned_.push_back(hash);
      inputs[path] = hash;
      order.push_back({path, hash});
    }
    const bool is_new = !pins_.has(pin_name(step.name));
    RETURN_IF_ERROR(pins_.pin(pin_name(step.name), patterns, pinned));
    const auto text = [](const nlohmann::json& json) {
      return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    state.recipe = text({{"kind", step.kind->name},
                         {"version", step.kind->version},
                         {"inputs", inputs},
                         {"parameters", nlohmann::json::parse(config::canonical_json(step.parameters))}});
    state.fingerprint = sha256_hex(state.recipe);
    state.content = sha256_hex(text(order));
    state.action = Action::kSkip;
    state.reason = fmt::format("{} file{}, {} in {}", pinned.size(), pinned.size() == 1 ? "" : "s",
                               !is_new  ? "as pinned"
                               : works_ ? "now pinned"
                                        : "to be pinned",
                               kPinsFile);
    return works_ ? pins_.save() : Status();
  }

  // An error when a source of the step has other bytes than before it was done. Every byte is read again.
  Status check_sources(const Step& step) {
    for (const auto& [parameter, input] : step.inputs) {
      const Made& made = out_.made.at(input);
      for (size_t i = 0; i < made.files.size(); ++i) {
        const std::string& path = made.files[i].path;
        ASSIGN_OR_RETURN(const std::string now, io::file_sha256(context_.fs, path));
        if (now != made.pinned[i])
          return corrupt(fmt::format(
              "{}: was changed while the step read it: its SHA-256 is {}, and was {}. Put it back, "
              "or take it as it is now: --pin {}",
              path, now, made.pinned[i], input));
      }
    }
    return {};
  }

  // Does a step. False: it was stopped.
  Result<bool> perform_step(const Work& work, StepState& state) {
    io::FileSystem& fs = context_.fs;
    const std::string folder = output_folder(directory_, state.fingerprint);
    const std::string before = state.content;
    RETURN_IF_ERROR(fs.remove_all(manifest_path(directory_, state.fingerprint)));
    if (state.action != Action::kResume) {
      RETURN_IF_ERROR(fs.remove_all(folder));
      RETURN_IF_ERROR(fs.make_dirs(resumes(*state.step->kind) ? io::parent_path(folder) : folder));
    }
    const Result<std::optional<std::string>> performed = perform(work, folder);
    if (performed.ok() && !*performed) return false;
    // What was made of other bytes than the fingerprint says is not kept.
    if (const Status same = check_sources(*state.step); !same.ok()) {
      RETURN_IF_ERROR(fs.remove_all(folder));
      return same.error();
    }
    if (!performed.ok()) return performed.error();
    const std::optional<std::string>& content = *performed;
    if (!before.empty() && before != *content) {
      RETURN_IF_ERROR(journal_.add_conflict(state.step->name, state.fingerprint, before, *content));
      return corrupt(
          fmt::format("fingerprint {} gave the content {} before and {} now. The same recipe must give the "
                      "same bits: this machine or this program computes wrongly. {} has the later output",
                      short_hash(state.fingerprint), short_hash(before), short_hash(*content), folder));
    }
    state.content = *content;
    ASSIGN_OR_RETURN(state.manifest, write_manifest(fs, directory_, state.fingerprint, hashes_));
    failpoint("lab_step");
    RETURN_IF_ERROR(record(state));
    return true;
  }

  const Context& context_;
  const Services& services_;
  const Plan& plan_;
  const RunRequest& request_;
  bool works_;
  Journal journal_;
  Pins pins_;
  std::string directory_;
  FileHashes hashes_;
  std::vector<data::SourceFile> files_;  // of the source that is handled
  std::vector<std::string> pinned_;      // their hashes
  LabState out_;
};

Result<LabState> drive(const Context& context, const Services& services, const Plan& plan,
                       const RunRequest& request, bool works) {
  ASSIGN_OR_RETURN(Journal journal, Journal::open(context.fs, plan.directory()));
  ASSIGN_OR_RETURN(Pins pins, Pins::read(context.fs, io::join_path(plan.folder, kPinsFile)));
  return Driver(context, services, plan, request, works, std::move(journal), std::move(pins)).all();
}

}  // namespace

const char* action_name(Action action) {
  constexpr const char* kNames[] = {"done", "run", "resume", "wait", "failed"};
  return kNames[static_cast<size_t>(action)];
}

bool LabState::is_done() const {
  return std::all_of(steps.begin(), steps.end(),
                     [](const StepState& s) { return s.action == Action::kSkip; });
}

std::string LabState::hash() const {
  auto json = nlohmann::json::object();
  for (const StepState& state : steps) json[state.step->name] = {state.fingerprint, state.content};
  return sha256_hex(json.dump());
}

const StepState* LabState::find(const std::string& step) const {
  for (const StepState& state : steps)
    if (state.step->name == step) return &state;
  return nullptr;
}

Result<LabState> run_plan(const Context& context, const Services& services, const Plan& plan,
                          const RunRequest& request) {
  for (const std::string& source : request.pin) {
    const Step* step = plan.find(source);
    if (step != nullptr && step->kind->name == "source") continue;
    std::vector<std::string> sources;
    for (const Step& s : plan.steps)
      if (s.kind->name == "source") sources.push_back(s.name);
    return invalid_argument(fmt::format("--pin {}: is no source of the plan; the nearest is \"{}\"", source,
                                        config::nearest_name(source, sources)));
  }
  RETURN_IF_ERROR(context.fs.make_dirs(plan.directory()));
  const auto lock =
      context.fs.lock(io::join_path(plan.directory(), "lock"), fmt::format("process {}", ::getpid()));
  if (!lock.ok()) return lock.error().with_context("another process works on this lab");
  return drive(context, services, plan, request, true);
}

Result<LabState> look_at(const Context& context, const Plan& plan, bool every_byte) {
  return drive(context, Services{}, plan, RunRequest{.every_byte = every_byte}, false);
}

Result<std::string> why_text(const Context& context, const Plan& plan, const std::string& name) {
  if (plan.find(name) == nullptr) {
    std::vector<std::string> names;
    for (const Step& step : plan.steps) names.push_back(step.name);
    return not_found(fmt::format("the plan has no step \"{}\"; the nearest is \"{}\"", name,
                                 config::nearest_name(name, names)));
  }
  ASSIGN_OR_RETURN(const LabState state, look_at(context, plan));
  const StepState& step = *state.find(name);
  std::string out = fmt::format("{}: {}: {}\n", name, action_name(step.action), step.reason);
  if (step.fingerprint.empty()) return out;
  out += fmt::format("fingerprint {}\n", step.fingerprint);
  ASSIGN_OR_RETURN(const Journal journal, Journal::open(context.fs, plan.directory()));
  const DoneEntry* last = journal.last_of(name);
  if (last == nullptr || last->fingerprint == step.fingerprint) return out;
  out += fmt::format("when it was done last, the fingerprint was {}:\n", last->fingerprint);
  for (const std::string& difference : chain::object_differences(last->recipe, step.recipe))
    out += "  " + difference + "\n";
  return out;
}

}  // namespace ostro::lab
