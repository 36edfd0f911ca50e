// ostro data find
#include <fmt/format.h>

#include <cstdio>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/audit/sampled.h"
#include "ostro/cli/main/commands.h"
#include "ostro/corpus_check/uses_text.h"
#include "ostro/data/options/choose_component.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/train/step/run_data.h"

namespace ostro::cli {
namespace {

struct FindRequest {
  std::optional<std::string> run;
  std::string document, component, steps, cache;
  std::optional<int64_t> row;
  bool json = false;
};

struct Searched {
  train::TrainConfig config;
  std::shared_ptr<const batches::DataSet> stores;
  int64_t first = 0;  // step of the run: a fork does not begin with 0
};

Result<Searched> open_searched(const FindRequest& request, const Args& args) {
  io::FileSystem& fs = args.context().fs;
  if (!request.run) {
    ASSIGN_OR_RETURN(train::TrainConfig config, args.load_config());
    ASSIGN_OR_RETURN(const auto tokenizer, train::open_tokenizer(fs, config));
    ASSIGN_OR_RETURN(auto stores, batches::DataSet::open(fs, config.data, *tokenizer));
    return Searched{std::move(config), std::move(stores)};
  }
  ASSIGN_OR_RETURN(const std::string folder, audit::record_folder(fs, *request.run));
  ASSIGN_OR_RETURN(auto run,
                   audit::open_recorded(fs, folder, args.context().models, /*stored_programs=*/true));
  const chain::GenesisEntry& genesis = run.chain.genesis();
  // config.yaml may be that of before the last amend; the batches of all steps are those of the last period.
  const train::TrainConfig& config = run.newest();
  ASSIGN_OR_RETURN(train::DataAccess data,
                   train::open_run_data(fs, folder, config, run.chain, request.cache));
  return Searched{config, std::move(data.stores), genesis.fork ? genesis.fork->step : 0};
}

// "A:B": the steps from A to before B.
Result<std::pair<int64_t, int64_t>> steps_of(const std::string& text, int64_t first, int64_t end) {
  if (text.empty()) return std::pair{first, end};
  std::pair<int64_t, int64_t> steps;
  char more = 0;
  if (std::sscanf(text.c_str(), "%ld:%ld%c", &steps.first, &steps.second, &more) != 2 || steps.first < 0 ||
      steps.first >= steps.second)
    return invalid_argument(
        fmt::format("--steps {}: use A:B, the steps from A to before B, counted from 0", text));
  return steps;
}

Result<std::vector<batches::UsedRow>> find_row(const FindRequest& request, const Searched& in,
                                               const batches::Loader& loader,
                                               const std::pair<int64_t, int64_t>& steps) {
  ASSIGN_OR_RETURN(const auto named,
                   data::named_components(data::components_of(in.config.data), request.component));
  ASSIGN_OR_RETURN(const data::Component component, data::only_component(named));
  size_t c = 0;
  while (in.stores->parts()[c].component.name != component.name) ++c;
  const data::TokenStream& stream = loader.reader(c).stream();
  if (*request.row < 0 || *request.row >= stream.rows())
    return invalid_argument(
        fmt::format("--row {}: {} has {} rows, from 0", *request.row, stream.name(), stream.rows()));
  ASSIGN_OR_RETURN(batches::UsedRow used,
                   batches::row_uses(loader, c, *request.row, steps.first, steps.second));
  return std::vector{std::move(used)};
}

Status find(const FindRequest& request, const Args& args) {
  ASSIGN_OR_RETURN(const Searched in, open_searched(request, args));
  ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(in.config, in.stores));
  ASSIGN_OR_RETURN(const auto steps, steps_of(request.steps, in.first, in.config.trainer.num_train_steps));
  if (!loader.schedule().is_countable(steps.second))
    return invalid_argument(fmt::format("--steps {}: the examples before step {} are too many to be counted",
                                        request.steps, steps.second));
  std::vector<batches::UsedRow> rows;
  corpus_check::UsesQuestion question{*in.stores, request.document, steps.first, steps.second};
  if (request.row) {
    question.name = fmt::format("row {}", *request.row);
    ASSIGN_OR_RETURN(rows, find_row(request, in, loader, steps));
  } else {
    ASSIGN_OR_RETURN(const data::DocumentName name, data::parse_document_name(request.document));
    ASSIGN_OR_RETURN(
        rows, batches::document_uses(*in.stores, loader, name, request.component, steps.first, steps.second));
  }
  return write_stdout(request.json ? corpus_check::uses_json(question, rows)
                                   : corpus_check::uses_text(question, rows));
}

}  // namespace

int data_find_command(Args args) {
  FindRequest request;
  args.summary(
      "Prints every step and place where training uses a document: step, row of the batch, epoch, sequence, "
      "positions.\n"
      "Steps count from 0, as those of `ostro data batch`; the chain's numbers are one higher. Order and "
      "mixture are\n"
      "inverted, so no batch is made. The data are those of RUN, or of --config.");
  args.positional("RUN", &request.run, "run directory, or a bundle; otherwise --config");
  args.option("--document", &request.document, "FILE:N",
              "the document: source file, or the end of its path, and number in it, from 1");
  args.option("--row", &request.row, "N", "a row of the training split instead, from 0");
  args.option("--component", &request.component, "NAME",
              "only in this one; with --row needed where there are several");
  args.option("--steps", &request.steps, "A:B",
              "only the steps from A to before B (default: all of the run)");
  args.option("--cache", &request.cache, "DIR", "with RUN: the token store, when it is elsewhere now");
  args.flag("--json", &request.json, "one line of JSON");
  args.config(!Args::kRequired);
  if (const auto code = args.parse()) return *code;
  if (request.document.empty() != request.row.has_value())
    return report_error(invalid_argument("use one of --document FILE:N and --row N"));
  if (request.run.has_value() == args.has_config())
    return report_error(invalid_argument("name a run, or a configuration (--config FILE), and not both"));
  if (request.run && !args.overrides().empty())
    return report_error(invalid_argument(fmt::format(
        "{}: the options of {} are those of the run; leave it out", args.overrides()[0].path, *request.run)));
  return exit_after(find(request, args));
}

}  // namespace ostro::cli
