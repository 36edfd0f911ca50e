// ostro data prove
#include <fmt/format.h>

#include <cstdio>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/base/one_line.h"
#include "ostro/batches/proof/make_proof.h"
#include "ostro/cli/data/data_prove_check.h"
#include "ostro/cli/main/commands.h"
#include "ostro/data/options/choose_component.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/leaf_audit/leaf_proof.h"
#include "ostro/prepare/tokenizer/trained_tokenizer.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/train/step/run_data.h"

namespace ostro::cli {
namespace {

struct ProofRequest {
  std::string run, cache, component, row, document, leaf, out;
  std::optional<int64_t> step;
};

// "train:5" or "a/b.jsonl:7": what stands before the last colon, and the number behind it.
Result<std::pair<std::string, int64_t>> name_and_number(const char* option, const std::string& text) {
  const size_t colon = text.rfind(':');
  int64_t number = 0;
  char end = 0;
  if (colon != std::string::npos && colon > 0 &&
      std::sscanf(text.c_str() + colon + 1, "%ld%c", &number, &end) == 1 && number >= 0)
    return std::pair{text.substr(0, colon), number};
  return invalid_argument(fmt::format("{} {}: use a name, a colon and a number, e.g. train:5", option, text));
}

// The stores of the run, or of the configuration.
Result<std::shared_ptr<const batches::DataSet>> open_stores(const ProofRequest& request, const Args& args) {
  io::FileSystem& fs = args.context().fs;
  if (request.run.empty()) {
    ASSIGN_OR_RETURN(const train::TrainConfig config, args.load_config());
    ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer, prepare::open_tokenizer(fs, config.data));
    return batches::DataSet::open(fs, config.data, tokenizer);
  }
  ASSIGN_OR_RETURN(const auto run,
                   audit::open_recorded(fs, request.run, args.context().models, /*stored_programs=*/true));
  ASSIGN_OR_RETURN(const train::DataAccess data,
                   train::open_run_data(fs, request.run, run.newest(), run.chain, request.cache));
  return data.stores;
}

// A row that is named by its place or its document.
Result<batches::DataProof> prove_one(const ProofRequest& request, const Args& args) {
  ASSIGN_OR_RETURN(const auto stores, open_stores(request, args));
  std::vector<data::Component> all;
  for (const batches::DataSet::Part& part : stores->parts()) all.push_back(part.component);
  ASSIGN_OR_RETURN(const auto named, data::named_components(all, request.component));
  ASSIGN_OR_RETURN(const data::Component component, data::only_component(named));
  size_t index = 0;
  while (stores->parts()[index].component.name != component.name) ++index;
  batches::FoundRow found;
  if (!request.document.empty()) {
    ASSIGN_OR_RETURN(const auto document, name_and_number("--document", request.document));
    ASSIGN_OR_RETURN(found,
                     batches::row_of_document(stores->parts()[index], document.first, document.second));
  } else {
    ASSIGN_OR_RETURN(const auto row, name_and_number("--row", request.row));
    if (row.first != "train" && row.first != "validation")
      return invalid_argument(fmt::format("--row {}: use train:N or validation:N", request.row));
    found = {row.first == "train" ? data::Split::kTrain : data::Split::kValidation, row.second};
  }
  return batches::prove_rows(*stores, index, found.split, std::span(&found.row, 1));
}

Result<batches::DataProof> make(const ProofRequest& request, const Args& args) {
  if (!request.step && request.leaf.empty()) return prove_one(request, args);
  if (request.run.empty())
    return invalid_argument("--step and --leaf: go with --run RUN, whose steps are meant");
  io::FileSystem& fs = args.context().fs;
  int64_t step = request.step.value_or(0), leaf = -1;
  if (!request.leaf.empty()) {
    char end = 0;
    if (std::sscanf(request.leaf.c_str(), "%ld:%ld%c", &step, &leaf, &end) != 2 || leaf < 0)
      return invalid_argument(fmt::format("--leaf {}: use STEP:LEAF, e.g. 41:3", request.leaf));
  }
  return leaf_audit::prove_step(fs, request.run, request.cache, args.context().models, step, leaf);
}

Status write(const ProofRequest& request, const Args& args) {
  ASSIGN_OR_RETURN(const batches::DataProof proof, make(request, args));
  ASSIGN_OR_RETURN(const auto roots, batches::roots_of_proof(proof));
  RETURN_IF_ERROR(io::write_file_atomically(args.context().fs, request.out, batches::proof_text(proof)));
  std::string text = fmt::format("{}: {}\n", request.out, proof_contents(proof));
  for (const auto& [component, root] : roots)
    text += fmt::format("root{}{}  {}\n", component.empty() ? "" : " of ", component, root);
  for (const batches::ProvenRow& row : proof.rows)
    text += fmt::format("{}:{}  {} tokens  {}, document {}\n", data::split_name(row.proof.split),
                        row.proof.row, row.ids.size(), one_line(row.file), row.document);
  return write_stdout(text);
}

}  // namespace

int data_prove_command(Args args) {
  ProofRequest request;
  ProofToCheck to_check;
  args.summary(
      "Writes a proof that rows are in the data of a run: somebody who has the proof and the run's record, "
      "and neither the\n"
      "token store nor the texts, checks it with --check. The stores are those of --config, or of --run.");
  args.option("--row", &request.row, "SPLIT:N", "a row: train:N or validation:N, from 0");
  args.option("--document", &request.document, "FILE:N",
              "the row of a document: source file, or the end of its path, and number in it, from 1");
  args.option("--step", &request.step, "N", "with --run: all rows of the batch of step N of the chain");
  args.option("--leaf", &request.leaf, "STEP:LEAF",
              "with --run: the rows of a leaf, and the leaf's path; for ostro verify --leaf --rows");
  args.option("--component", &request.component, "NAME", "of the row; needed where there are several");
  args.option("--run", &request.run, "RUN", "run directory");
  args.option("--cache", &request.cache, "DIR", "with --run: the token store, when it is elsewhere now");
  args.option("--out", &request.out, "FILE", "where the proof goes");
  args.option("--check", &to_check.proof, "PROOF",
              "checks a proof; exit code 1: it does not hold, 4: a file cannot be read");
  args.option("--root", &to_check.root, "H", "with --check: the root of the store that must have the rows");
  args.config(!Args::kRequired);
  if (const auto code = args.parse()) return *code;
  if (!to_check.proof.empty()) {
    to_check.run = request.run;
    return check_data_proof(to_check, args.context());
  }
  const int asked =
      !request.row.empty() + !request.document.empty() + request.step.has_value() + !request.leaf.empty();
  if (asked != 1 || request.out.empty())
    return report_error(
        invalid_argument("use --out FILE and one of --row, --document, --step and --leaf; or --check PROOF"));
  if (request.run.empty() && !args.has_config())
    return report_error(invalid_argument("name a configuration (--config FILE) or a run (--run RUN)"));
  return exit_after(write(request, args));
}

}  // namespace ostro::cli
