// find_effect: trains a run again without some of its documents, and compares (`ostro lab without`).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/run/loop/run.h"
#include "ostro/without/measure.h"
#include "ostro/without/removal.h"

namespace ostro::without {

// A run without documents, beside the run that had them.
struct Effect {
  Removal removal;
  std::string hash;  // of the run without
  struct Step {
    int64_t step = 0;  // as in the chain, from 1
    double loss = 0, without = 0;
  };
  std::vector<Step> steps;  // those that the run without did
  StateLosses losses;       // at its end
  std::vector<double> own;  // the loss of each of its documents at its end
};

// What leaving the documents out does to a run with another seed, from its first step on.
struct SeedEffect {
  int64_t seed = 0;
  std::string hash, hash_without;  // of the two runs
  StateLosses losses, without;     // at their ends
};

struct EffectReport {
  std::string run, run_hash;
  bool is_sample = false;          // `asked` and `controls` are drawn documents, all alike
  std::vector<std::string> texts;  // names of what StateLosses::texts has: the documents, then the files
  StateLosses losses;              // of the run
  Effect asked;
  std::vector<Effect> controls;
  std::vector<std::vector<double>> own;  // of the run: the loss of each control's documents
  bool fewer_controls = false;
  std::vector<SeedEffect> seeds = {};

  // How much the loss of all documents that were asked for, as the mean over their tokens, grows without the
  // documents of `effect`.
  double on_documents(const Effect& effect) const;
  // The same with another seed.
  double on_documents(const SeedEffect& effect) const;
  // How much the loss of `effect`'s own documents grows without them. `control`: its number; nothing: asked.
  double on_itself(std::optional<size_t> control) const;
  std::vector<int64_t> tokens;  // of each text
};

// What the process gives: training as `ostro train` does it, and the building of data.
struct EffectServices {
  data::BuildSettings build;
  std::function<Result<run::RunOutcome>(const train::TrainConfig&)> train;
};

// Makes the runs of the plan in their folders, or goes on with them, one after the other, and measures.
// Nothing when training was asked to stop. Errors: those of forks, of training, and of measuring; a folder
// that holds another run.
Result<std::optional<EffectReport>> find_effect(const Context& context, const WithoutRequest& request,
                                                const RemovalPlan& plan, const EffectServices& services);

// The place of `value` among `others`, from 1: one more than there are larger ones.
int64_t place_among(double value, const std::vector<double>& others);

// For people, and as JSON with floats as in the chain. Of a sample they are a table of all its documents.
std::string plan_text(const WithoutRequest& request, const RemovalPlan& plan);
std::string effect_text(const EffectReport& report);
std::string effect_json(const EffectReport& report);

}  // namespace ostro::without
