// make_tokenizer, make_run, make_fit, ...: what the kinds of steps do, for perform() in work.h. Private to
// the sub-room.
#pragma once

#include <memory>
#include <set>

#include "ostro/data/options/options.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/lab/steps/work.h"

namespace ostro::lab {

Result<std::string> make_tokenizer(const Work& work, const std::string& folder);
Result<std::string> make_tokens(const Work& work, const std::string& folder);
Result<std::optional<std::string>> make_run(const Work& work, const std::string& folder);
Result<std::optional<std::string>> make_fork(const Work& work, const std::string& folder);
Result<std::string> make_evaluation(const Work& work, const std::string& folder);
Result<std::string> make_samples(const Work& work, const std::string& folder);
Result<std::string> make_export(const Work& work, const std::string& folder);
Result<std::string> make_bundle(const Work& work, const std::string& folder);
Result<std::string> make_fit(const Work& work, const std::string& folder);
Result<std::string> make_forecast(const Work& work, const std::string& folder);
// Errors: members have different tokenizers or held-out texts; those of rung_text().
Result<std::string> make_rung(const Work& work, const std::string& folder);
Result<std::string> make_extraction(const Work& work, const std::string& folder);
Result<std::string> make_corpus(const Work& work, const std::string& folder);
Result<std::string> make_filter(const Work& work, const std::string& folder);
Result<std::string> make_quality(const Work& work, const std::string& folder);
Result<std::string> make_command(const Work& work, const std::string& folder);
// The options of a tokens step, with its store in `folder`.
Result<data::DataOptions> tokens_options(const Work& work, const std::string& folder);
// The SHA-256 of each file of the plan's folder that a command reads.
Result<std::map<std::string, std::string>> command_files(const Work& work);

// The documents of a corpus; in a sanity run at most its rows of a source.
int64_t corpus_documents(const Work& work);

// The configuration of a training: the plan's file with `set`, on the data of its tokens step; of a training
// with phases that of the last one. `folder` is the run's. Errors: of the configuration; one that names data,
// run or output, which follow from the plan.
Result<train::TrainConfig> training_config(const Work& work, const std::string& folder);
// Those of all phases, as they are in force; one where the training has no phases.
Result<std::vector<train::TrainConfig>> training_configs(const Work& work, const std::string& folder);
// The plan's file with `set`; of a phase with its options, whose number of steps stays, and without the
// components that come later.
struct PhaseOptions {
  std::vector<config::Override> options;
  std::set<std::string> later;
};
Result<train::TrainConfig> config_with(const Work& work, const std::string& folder,
                                       const PhaseOptions* phase);
// The same of a fork: the configuration of the other run at the step, with `set`.
Result<train::TrainConfig> fork_config(const Work& work, const std::string& folder);
// The step whose state a fork begins with; in a sanity run the last one of the other run.
Result<int64_t> forked_at(const Work& work);
// The options of `set`, with the seeds themselves.
std::vector<config::Override> options_of(const Work& work);
// An error where one of the options follows from the plan, or is of a single training (metrics, alerts,
// notices).
Status check_left_to_plan(const std::vector<config::Override>& options);
// The tokens steps of a training by component; one with the name "" where its data are one step. A fork
// without data has those that the other run had at its step, and later ones that its weights name.
std::map<std::string, const Step*> stores_of(const Work& work);
// Appends the options that say where the data of a training are, without the components `later`. Error: its
// stores have several tokenizers.
Status set_data(const Work& work, std::vector<config::Override>& overrides,
                const std::set<std::string>& later = {});
// Whether a training is a part of a halved one, or the end of it.
bool is_halved(const Step& step);
// An error where a rung of a halved training is at a step that is not before its last
// one, or whose state is not kept.
Status check_rungs(const Work& work, const train::TrainConfig& config);
// The step after which a training ends, though its configuration has more: the rung that it waits for, or the
// one at which it was stopped. Nothing: it goes to its last step.
Result<std::optional<int64_t>> ends_after(const Work& work);
// Gives a training that goes on behind a rung a copy of what there is of it, unless `folder` is there, as it
// is of one that was stopped: its part's.
Status take_begun(const Work& work, const std::string& folder);
inline constexpr int64_t kSanitySteps = 20;  // at most, of a training in a sanity run
// The SHA-256 of the training's canonical programs.
Result<std::string> programs_of(const Work& work, const train::TrainConfig& config);

// A state that the chain of a run names, and the folder of its checkpoint.
struct KeptState {
  int64_t step = 0;
  std::string name, folder;
};
// Those of the run that a step is `of`, the last one at the end.
Result<std::vector<KeptState>> kept_states(const Work& work);
// The one of the step `at`; where that is left out, and in a sanity run, the last one. Error: there is none,
// with what it takes to make it.
Result<KeptState> state_at(const Work& work);
// The context with the engine of the device of the run that a step is `of`.
Result<Context> context_of_run(const Work& work);

// What a training, or the one that a forecast is of, comes to: all parameters, those without the tables of
// tokens and positions and without the head, and tokens and floating-point operations of all its steps.
struct RunSize {
  int64_t parameters = 0, without_embeddings = 0, tokens = 0;
  double flops = 0;
};
Result<RunSize> run_size(const Work& work);

// The verdicts' file in the output of a step that gives verdicts; empty for other steps.
std::string verdicts_file(const Work& work, const std::string& step);
// What is in it; null for other steps.
Result<std::shared_ptr<const data::RowVerdicts>> verdicts_of(const Work& work, const std::string& step);

// The files of a source, or those that a step made, as texts or rows. Of a step that gives verdicts the files
// that they are on.
Result<std::vector<data::SourceFile>> files_of(const Work& work, const std::string& step);
// The name of one of them, for people: its path from the plan's folder, or in the output of its step.
std::string name_of(const Work& work, const std::string& step, const std::string& path);
// A path of a source's file for programs, which read files of this machine alone: the path itself, or that of
// a copy of an object (s3://) in the folder FOLDER.fetched. Error: of the copy; a key with an empty, "." or
// ".." component, which would lead out of that folder.
Result<std::string> fetched(io::FileSystem& fs, const std::string& folder, const std::string& path);
// Removes these copies at the end of its life, also after an error.
class FetchedCopies {
 public:
  FetchedCopies(io::FileSystem& fs, std::string folder) : fs_(fs), folder_(std::move(folder)) {}
  FetchedCopies(const FetchedCopies&) = delete;
  FetchedCopies& operator=(const FetchedCopies&) = delete;
  ~FetchedCopies();

 private:
  io::FileSystem& fs_;
  std::string folder_;
};
// Literal globs for them.
Result<std::vector<std::string>> urls_of(const Work& work, const std::string& step);
// A text parameter.
const std::string& text_of(const Step& step, const char* parameter);
// A list of texts.
std::vector<std::string> texts_of(const Step& step, const char* parameter);

}  // namespace ostro::lab
