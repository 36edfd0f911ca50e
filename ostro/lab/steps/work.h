// Work: one step with all that doing it needs. recipe() says what the output is a function of, perform()
// makes it. The kinds have a file each; they call the functions behind the commands that do the same.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/experiment/plan/plan.h"
#include "ostro/experiment/plan/seeds.h"
#include "ostro/run/loop/dry_run.h"
#include "ostro/run/loop/run.h"

namespace ostro::lab {

// What the process gives to steps besides its Context. Nothing of it changes a bit.
struct Services {
  data::BuildSettings build;
  // Trains as `ostro train` does, with --amend where it is asked, until context.stop says so. `workers` are
  // those in this process; nothing: as the process says. `until`: as run::Environment has it.
  std::function<Result<run::RunOutcome>(const train::TrainConfig&, bool amend, std::optional<int64_t> workers,
                                        std::optional<int64_t> until)>
      train = {};
  // What a training would take, as `ostro train --dry_run` computes it. Empty: it is not asked.
  // `from_step`: the steps before it are not of this configuration.
  std::function<Result<run::Cost>(const train::TrainConfig&, int64_t from_step)> cost = {};
  std::string version = {};  // of this program, for bundles and tasks
};

// A step whose output is there.
struct Made {
  std::string fingerprint;
  std::string content;                  // hash of what it gives to others
  std::string folder;                   // of its output; empty for a source
  std::vector<data::SourceFile> files;  // of a source
  std::vector<std::string> pinned;      // the SHA-256 of each of these files
};

// In the output of a step that gives verdicts (docs/reference/formats/rows.md).
inline constexpr const char* kVerdictsFile = "verdicts.jsonl";
// In the output of a step sample: what was made of which prompts, and the texts themselves.
inline constexpr const char* kSamplesFile = "samples.json";
inline constexpr const char* kTextsFile = "texts.jsonl";
// In the output of a step publish: the folder of the bundle.
inline constexpr const char* kBundleFolder = "bundle";

struct Work {
  const Context& context;
  const Services& services;
  const Plan& plan;
  const Step& step;
  const std::map<std::string, Made>& made;  // steps before it, by name
  const Seeds& seeds;

  // The step's parameters, with the seeds themselves.
  config::Node parameters() const { return with_seeds(step.parameters, seeds); }

  // The step that a parameter names, and what it made.
  const Step& input(const std::string& parameter) const;
  const Made& made_by(const Step& step) const { return made.at(step.name); }
  // The same for another step.
  Work of(const Step& other) const { return {context, services, plan, other, made, seeds}; }
};

// The recipe of a step: canonical JSON of kind, version, parameters and the contents of its inputs. No path,
// host, time or number of threads is in it. A training's has the canonical config, the hash of its programs
// and the version of the arithmetic: as the genesis of its run. Errors: those of the configuration.
Result<std::string> recipe(const Work& work);

// What a training would take; nothing for other kinds, and where it is not asked.
Result<std::optional<run::Cost>> cost(const Work& work);

// The step whose files a step's verdicts are on; of another step itself.
const Step& step_with_files(const Plan& plan, const Step& step);

// An error where a file is none that an extract reads: Parquet, or compressed.
Status check_pages(const std::vector<data::SourceFile>& files);

// Makes the output in `folder`, which exists. Returns its content; nothing when context.stop asked to stop.
Result<std::optional<std::string>> perform(const Work& work, const std::string& folder);

// That a run or a store that was made outside of the lab is what the recipe of a step says, as far as its
// record tells; the error names both values. Kinds train and tokens.
Status check_foreign(const Work& work, const std::string& recipe, const std::string& folder);
// Gives a copy of a run that was checked the configuration of the lab's own: with the places of its stores,
// and without the words of commands that watched it elsewhere, which are not published. A store stays as it
// is.
Status place_foreign(const Work& work, const std::string& folder);
// Does a part of it again, which `challenge` draws: `count` steps of a run are replayed, of a store all
// arrays are read and `count` documents encoded. Returns which, for people. Error: kCorrupt for what differs.
Result<std::string> verify_foreign(const Work& work, const std::string& folder, const std::string& challenge,
                                   int64_t count);

// Whether a step of kind run is done in a sandbox here; the error says why not. Other kinds need none.
Status is_sandboxed(const StepKind& kind);

// Whether a step goes on with what an interrupted one left in its folder. Others begin in an empty one.
bool resumes(const StepKind& kind);

}  // namespace ostro::lab
