#include "ostro/cli/data/data_prove_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/audit/verdict.h"
#include "ostro/base/one_line.h"
#include "ostro/chain/canonical.h"
#include "ostro/io/files/path.h"
#include "ostro/leaf_audit/check_proof.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

std::string row_count(const batches::DataProof& proof) {
  return fmt::format("{} row{}", proof.rows.size(), proof.rows.size() == 1 ? "" : "s");
}

// The rows of a proof without a batch, one by one as far as they are few, and what the proof leaves open.
std::string shown_rows(const batches::DataProof& proof) {
  constexpr size_t kFew = 8;
  std::string out;
  for (size_t i = 0; i < std::min(proof.rows.size(), kFew); ++i) {
    const batches::ProvenRow& row = proof.rows[i];
    out += fmt::format("shown: {}:{}{} has the {} tokens of the proof; {}\n",
                       data::split_name(row.proof.split), row.proof.row,
                       row.component.empty() ? "" : " of " + one_line(row.component), row.ids.size(),
                       row.proof.split == data::Split::kTrain ? "a training row"
                                                              : "a held-out row, on which no step trains");
    out += fmt::format("not shown: that its text came from {}, document {}, as the proof says\n",
                       one_line(row.file), row.document);
  }
  if (proof.rows.size() > kFew) out += fmt::format("and {} rows more\n", proof.rows.size() - kFew);
  return out + "not shown: that a step used it; that a row is not there\n";
}

// What is said below the verdict of a proof that holds.
std::string shown(const ProofToCheck& asked, const batches::DataProof& proof) {
  if (!proof.batch) return shown_rows(proof);
  const batches::ProvenBatch& batch = *proof.batch;
  if (asked.run.empty())
    return fmt::format(
        "not shown: that the rows make sequences of step {}; --run RUN compares them with the chain\n",
        batch.step);
  std::string out = fmt::format(
      "shown: these sequences are those of step {}, made of training rows of the components whose places "
      "they have\n"
      "not shown: that the order of the data puts these rows into this step; that needs the token store\n",
      batch.step);
  if (batch.leaf >= 0)
    out += fmt::format(
        "not shown: that leaf_path leads to the step's root; `ostro verify {0} --leaf {1}:{2} --rows {3}` "
        "replays the leaf\n",
        asked.run, batch.step, batch.leaf, asked.proof);
  return out;
}

// Error: kCorrupt says what does not hold.
Status compare(const ProofToCheck& asked, const batches::DataProof& proof, const Context& context) {
  if (!asked.root.empty()) {
    ASSIGN_OR_RETURN(const auto roots, batches::roots_of_proof(proof));
    for (const auto& [component, root] : roots)
      if (root != asked.root)
        return corrupt(fmt::format("the rows{} lead to the root {}, not {} as given",
                                   component.empty() ? "" : " of " + component, root, asked.root));
    return {};
  }
  if (!proof.batch) {
    ASSIGN_OR_RETURN(const chain::Chain chain,
                     chain::read_chain(context.fs, io::join_path(asked.run, chain::kChainFile)));
    return leaf_audit::check_rows(proof, chain);
  }
  ASSIGN_OR_RETURN(const auto run, audit::open_recorded(context.fs, asked.run, context.models,
                                                        /*stored_programs=*/true));
  const leaf_audit::ProofCheck check = leaf_audit::check_proof(proof, run);
  RETURN_IF_ERROR(check.proof);
  return check.record;
}

}  // namespace

std::string proof_contents(const batches::DataProof& proof) {
  std::string out = row_count(proof);
  if (proof.batch)
    out += fmt::format(", which make {} of {} sequences of step {}", proof.batch->sequences.size(),
                       proof.batch->digests.size(), proof.batch->step);
  if (proof.batch && proof.batch->leaf >= 0) out += fmt::format(" (leaf {})", proof.batch->leaf);
  return out;
}

int check_data_proof(const ProofToCheck& asked, const Context& context) {
  if (asked.run.empty() == asked.root.empty())
    return report_error(invalid_argument("--check: goes with --root H or --run RUN, one of them"));
  if (!asked.root.empty() && !chain::is_lower_hex(asked.root, 64))
    return report_error(invalid_argument(fmt::format("--root {}: use the 64 digits of a root", asked.root)));
  const auto text = context.fs.read_file(asked.proof);
  const auto proof = text.ok() ? batches::parse_proof(*text, asked.proof) : text.error();
  const Status holds = proof.ok() ? compare(asked, *proof, context) : Status(proof.error());
  std::string out;
  int code = kExitOk;
  if (holds.ok()) {
    const bool of_steps = proof->batch && !asked.run.empty();
    out =
        fmt::format("equal: {} {} in the data of {}\n", of_steps ? proof_contents(*proof) : row_count(*proof),
                    proof->rows.size() == 1 ? "is" : "are",
                    asked.run.empty() ? "the root " + asked.root : asked.run) +
        shown(asked, *proof);
  } else {
    const audit::Finding finding = audit::finding_of(holds.error());
    out = audit::finding_text(finding) + "\n";
    code = finding.verdict == audit::Verdict::kDiffers ? kExitFailed : kExitCannotCheck;
  }
  const Status written = write_stdout(out);
  return written.ok() ? code : report_error(written.error());
}

}  // namespace ostro::cli
