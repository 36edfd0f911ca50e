// ostro data batch; the other verbs have files of their own: data_x_command.cc
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/commands.h"
#include "ostro/cli/exit_code.h"
#include "ostro/cli/standard_streams.h"
#include "ostro/cpu/thread_pool.h"
#include "ostro/data/batch_text.h"
#include "ostro/data/data_set.h"
#include "ostro/data/loader.h"
#include "ostro/io/routing_file_system.h"
#include "ostro/tokenizer/files.h"
#include "ostro/train/config.h"

namespace ostro::cli {
namespace {

using BatchText = Result<std::string> (*)(const data::Batch&, const data::Loader&);

Status print_batch(const train::TrainConfig& config, int64_t step, BatchText print, int threads) {
  io::FileSystem& fs = io::default_file_system();
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer,
                   tokenizer::load_tokenizer(fs, config.data.tokenizer));
  ASSIGN_OR_RETURN(const auto stores, data::DataSet::open(fs, config.data, tokenizer));
  ASSIGN_OR_RETURN(
      const data::Loader loader,
      data::Loader::create(stores, config.data, config.model_options().seq_len(),
                           config.trainer.train_batch_size, static_cast<uint64_t>(config.trainer.seed)));
  ASSIGN_OR_RETURN(const data::Batch batch, loader.batch(step, threads));
  ASSIGN_OR_RETURN(const std::string text, print(batch, loader));
  return write_stdout(text);
}

int batch(Args args) {
  int64_t step = 0;
  bool json = false, explain = false;
  args.summary(
      "Prints the batch of a step: token ids, loss mask, and for each sequence the files and documents it "
      "comes\n"
      "from. Reads what it needs and no more, whatever the step.");
  args.option("--step", &step, "N", "the step, from 0", Args::kRequired);
  args.flag("--explain", &explain,
            "only where each sequence comes from: component, file, row, bytes, tokens");
  args.flag("--json", &json, "one line of JSON");
  args.config();
  if (const auto code = args.parse()) return *code;
  if (step < 0) return report_error(invalid_argument(fmt::format("--step {}: use 0 or more", step)));
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const Result<int> threads = cpu::default_threads();
  if (!threads.ok()) return report_error(threads.error());
  const Status done = print_batch(*config, step,
                                  json      ? data::batch_json
                                  : explain ? data::batch_sources
                                            : data::batch_summary,
                                  *threads);
  return done.ok() ? kExitOk : report_error(done.error());
}

constexpr Command kDataVerbs[] = {
    {"build", "texts to token stores; goes on after a kill", data_build_command},
    {"consolidate", "stores of parts, built apart, to one", data_consolidate_command},
    {"stats", "what is in the stores", data_stats_command},
    {"show", "a row: text, ids, weights, where it comes from", data_show_command},
    {"batch", "the exact batch of a step, and where its text comes from", batch},
    {"verify", "reads the stores and compares every byte with their ledgers", data_verify_command},
    {"check", "evaluation data, duplicates and figures of quality in the texts, as a report",
     data_check_command},
    {"diff", "what two configurations train on, and where they part", data_diff_command},
    {"baseline", "what the held-out text costs without a model", data_baseline_command},
};

}  // namespace

int data_command(Args args) { return run_verb(std::move(args), kDataVerbs); }

}  // namespace ostro::cli
