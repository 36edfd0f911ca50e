// plan_removals: what a run without some of its documents takes: where they are first used, the step at which
// a fork can begin, and controls to compare with (`ostro lab without`). It reads only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/batches/loader/loader.h"
#include "ostro/chain/chain.h"
#include "ostro/context/context.h"
#include "ostro/data/options/document_name.h"
#include "ostro/train/options/config.h"

namespace ostro::without {

struct WithoutRequest {
  std::string run;                     // run directory
  std::vector<std::string> documents;  // FILE:N
  data::WithoutAs as = data::WithoutAs::kMask;
  bool rebuild = false;  // in place of `as`: the stores are made again without them, so another order
  int64_t controls = 0;
  int64_t seeds = 0;               // the same with so many drawn seeds, each with and without the documents
  int64_t sample = 0;              // in place of `documents`: so many that are drawn, each left out alone
  std::vector<std::string> texts;  // files, whose loss is compared, too
  std::string out;                 // folder of the runs without; it may hold those of an earlier call
};

// Documents that are removed together, and the run without them.
struct Removal {
  std::string folder;                           // of that run
  std::vector<std::string> documents;           // FILE:N, with the path in the store
  std::vector<data::DocumentName> sources;      // the same, with the whole path in the ledger
  std::vector<std::vector<size_t>> components;  // of the run's data, in whose training rows each is
  std::vector<std::vector<uint32_t>> ids;       // the tokens of each
  int64_t tokens = 0;
  int64_t uses = 0;       // places in the run's batches
  int64_t first_use = 0;  // step, from 0
  int64_t begins = 0;     // steps that are taken over from the run; 0: none
};

struct RemovalPlan {
  train::TrainConfig config;  // of the run
  chain::Chain chain;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  Removal asked;
  std::vector<Removal> controls;
  bool fewer_controls = false;      // the data had no more that are like the documents, or that are used
  int64_t steps = 0;                // of the whole run
  std::vector<int64_t> seeds = {};  // that the run hash draws

  // Steps that all removals do.
  int64_t steps_to_do() const;
};

// Opens run and data, and finds uses, beginnings and controls. A control has a document for each that was
// asked for, of the same component: the first, in an order that the run hash draws, whose number of tokens is
// within a quarter of the other's and whose first use is at most a twentieth of the run's steps away. Of a
// sample `asked` is the first document and `controls` are the others: rows of all components in an order that
// the run hash draws, without those that no step uses, or whose fork cannot begin. Errors,
// which are kInvalidArgument: no step uses the documents; a batch has no target without them; the run is not
// finished, was amended after the step at which the fork must begin, is a fork that begins after the first
// use, or trains on pairs; with seeds or `rebuild`, a run that is a fork or was amended. Those of documents
// (batches::training_rows), and of opening; the data must be where the run's configuration has them.
Result<RemovalPlan> plan_removals(const Context& context, const WithoutRequest& request);

}  // namespace ostro::without
