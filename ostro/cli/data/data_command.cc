// ostro data batch; the other verbs have files of their own: data_x_command.cc
#include <fmt/core.h>

#include <string>

#include "ostro/base/machine.h"
#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/loader/eval_loader.h"
#include "ostro/batches/loader/loader.h"
#include "ostro/cli/main/commands.h"
#include "ostro/corpus_check/batch_text.h"
#include "ostro/data/options/choose_component.h"
#include "ostro/prepare/tokenizer/trained_tokenizer.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/batches.h"

namespace ostro::cli {
namespace {

struct BatchRequest {
  int64_t step = 0;
  std::string split = "train", component;
  bool json = false, explain = false;
};

Status print(io::FileSystem& fs, const BatchRequest& request, const batches::Batch& batch,
             const batches::DataSet& data, const batches::ReaderOf& reader_of) {
  ASSIGN_OR_RETURN(const auto sources, batches::batch_sources(fs, batch, data, reader_of, request.explain));
  return write_stdout(request.json      ? corpus_check::batch_json(batch, sources)
                      : request.explain ? corpus_check::batch_explained(batch, sources)
                                        : corpus_check::batch_summary(batch, sources));
}

// A batch of the evaluation of a component.
Status print_held_out(io::FileSystem& fs, const BatchRequest& request, const train::TrainConfig& config,
                      const batches::DataSet& data) {
  ASSIGN_OR_RETURN(const auto components,
                   data::named_components(data::components_of(config.data), request.component));
  ASSIGN_OR_RETURN(const data::Component component, data::only_component(components));
  size_t index = 0;
  while (data.parts()[index].component.name != component.name) ++index;
  ASSIGN_OR_RETURN(
      const batches::EvalLoader loader,
      batches::EvalLoader::create(data, index, config.data, config.model_options().seq_len(),
                                  *config.numerics.leaf_examples, config.trainer.max_eval_batches));
  if (request.step >= loader.batches())
    return invalid_argument(
        fmt::format("--step {}: evaluation has {} batches, from 0", request.step, loader.batches()));
  ASSIGN_OR_RETURN(const batches::Batch batch, loader.batch(request.step));
  return print(fs, request, batch, data,
               [&](size_t) -> const batches::SequenceReader& { return loader.reader(); });
}

Status print_batch(io::FileSystem& fs, const BatchRequest& request, const train::TrainConfig& config,
                   int threads) {
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer, prepare::open_tokenizer(fs, config.data));
  ASSIGN_OR_RETURN(const auto stores, batches::DataSet::open(fs, config.data, tokenizer));
  if (request.split == "validation") return print_held_out(fs, request, config, *stores);
  ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(config, stores));
  ASSIGN_OR_RETURN(const batches::Batch batch, loader.batch(request.step, threads));
  return print(fs, request, batch, *stores,
               [&](size_t component) -> const batches::SequenceReader& { return loader.reader(component); });
}

int batch(Args args) {
  BatchRequest request;
  args.summary(
      "Prints the batch of a step: token ids, loss mask, and for each sequence the files and documents it "
      "comes\n"
      "from. Reads what it needs and no more, whatever the step.");
  args.option("--step", &request.step, "N", "the step, from 0; with --split validation the batch",
              Args::kRequired);
  args.option("--split", &request.split, "NAME",
              "train (default), or validation: what evaluation reads, a component at a time");
  args.option("--component", &request.component, "NAME",
              "which one's held-out text; needed where there are several");
  args.flag(
      "--explain", &request.explain,
      "only where each sequence comes from: component, file, row, bytes, tokens; reads the source files "
      "where the store does not know. With --json all of it");
  args.flag("--json", &request.json, "one line of JSON");
  args.config();
  if (const auto code = args.parse()) return *code;
  if (request.step < 0)
    return report_error(invalid_argument(fmt::format("--step {}: use 0 or more", request.step)));
  if (request.split != "train" && request.split != "validation")
    return report_error(invalid_argument(fmt::format("--split {}: use train or validation", request.split)));
  if (request.split == "train" && !request.component.empty())
    return report_error(invalid_argument(
        "--component: goes with --split validation; a training batch has sequences of all components"));
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const Result<int> threads = default_threads();
  if (!threads.ok()) return report_error(threads.error());
  return exit_after(print_batch(args.context().fs, request, *config, *threads));
}

constexpr Command kDataVerbs[] = {
    {"build", "texts to token stores; goes on after a kill", data_build_command},
    {"consolidate", "stores of parts, built apart, to one", data_consolidate_command},
    {"stats", "what is in the stores", data_stats_command},
    {"show", "a row: text, ids, weights, where it comes from", data_show_command},
    {"batch", "the exact batch of a step, and where its text comes from", batch},
    {"find", "every step and place where a document is used", data_find_command},
    {"verify", "reads the stores and compares every byte with their ledgers", data_verify_command},
    {"check", "evaluation data, duplicates and figures of quality in the texts, as a report",
     data_check_command},
    {"diff", "what two configurations train on, and where they part", data_diff_command},
    {"prove", "proofs that rows, documents or a step's sequences are in the data of a run",
     data_prove_command},
    {"baseline", "what the held-out text costs without a model", data_baseline_command},
};

}  // namespace

int data_command(Args args) { return run_verb(std::move(args), kDataVerbs); }

}  // namespace ostro::cli
