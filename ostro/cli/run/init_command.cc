// ostro init
#include <fmt/core.h>

#include "ostro/base/machine.h"
#include "ostro/cli/main/commands.h"
#include "ostro/init/config_text.h"
#include "ostro/init/token_sample.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/run/loop/reporter.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

struct InitRequest {
  std::vector<std::string> places;
  std::string out = "train.yaml";
  double minutes = 5;
  bool force = false;
};

// How fast training can be here: its products, in the type that it computes in.
Result<init::Machine> measured_machine(const Context& context) {
  init::Machine machine;
  ASSIGN_OR_RETURN(machine.cores, default_threads());
  machine.memory = available_memory();
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  machine.peak_flops = run::engine_peak(*engine, DType::bf16);
  return machine;
}

Status write_config(const Context& context, const InitRequest& request, const std::string& command) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(const bool exists, fs.exists(request.out));
  if (exists && !request.force)
    return invalid_argument(fmt::format(
        "{}: is there already; name another file with --out, or replace it with --force", request.out));
  const init::RunPlaces places{.id =
                                   request.places.size() == 1 ? init::run_id(request.places.front()) : "run"};
  ASSIGN_OR_RETURN(const init::Survey survey,
                   init::survey(fs, {request.places, {request.out, places.cache_dir, places.log_dir}}));
  const init::HoldOut held_out = init::choose_hold_out(survey);
  ASSIGN_OR_RETURN(const init::Machine machine, measured_machine(context));
  init::TextAmount text{.bytes = survey.text_bytes - held_out.held_out_bytes,
                        .documents = survey.documents,
                        .held_out_bytes = held_out.held_out_bytes};
  if (text.bytes < init::kLeastText)
    return invalid_argument(
        fmt::format("{} bytes of text to train on; a model needs {} at least, and some hundred "
                    "thousand before it learns to spell",
                    text.bytes, init::kLeastText));
  const int64_t vocab_size = init::choose_vocab_size(text.bytes);
  ASSIGN_OR_RETURN(text.bytes_per_token, init::bytes_per_token(survey.sample, vocab_size, machine.cores));
  const init::Sizes sizes = init::choose_sizes(text, vocab_size, machine, request.minutes);
  const std::string yaml = init::config_text(survey, held_out, sizes, machine, places, command);
  const auto parsed = train::parse_train_config(yaml, request.out, context.models);
  OSTRO_CHECK(parsed.ok(), "init wrote a configuration that does not load: {}", parsed.error().message());
  RETURN_IF_ERROR(io::write_file_atomically(fs, request.out, yaml));
  RETURN_IF_ERROR(write_stdout(init::choices_text(survey, held_out, sizes, machine)));
  return write_stdout(
      fmt::format("{}: written; train with: ostro train --config {}\n", request.out, request.out));
}

}  // namespace

int init_command(Args args) {
  InitRequest request;
  args.summary(
      "Looks at texts and writes a configuration for them, with sizes that suit their amount and kind and "
      "this\n"
      "machine, each with its reason. PLACE is a folder, a file or a glob (quote it); default: this folder.");
  args.positional("PLACE", &request.places,
                  "texts: .txt, .md and other plain files, .jsonl (.gz, .zst), .parquet");
  args.option("--out", &request.out, "FILE", "the configuration to write (default train.yaml)");
  args.option(
      "--minutes", &request.minutes, "M",
      "how long training may take on this machine; the sizes follow from it where there is text enough");
  args.flag("--force", &request.force, "replace FILE when it is there");
  if (const auto code = args.parse()) return *code;
  if (!(request.minutes > 0 && request.minutes < 1e7))
    return report_error(invalid_argument(fmt::format("--minutes {}: use a number above 0", request.minutes)));
  if (request.places.empty()) request.places = {"."};
  std::string command = args.command();
  for (const std::string& word : args.typed()) command += " " + word;
  return exit_after(write_config(args.context(), request, command));
}

}  // namespace ostro::cli
