// VerifyAsked, verify: the forms of `ostro verify`: of a run, of a sample or a leaf of it, of a model, of a
// bundle, of a published lab and of a receipt. Each form refuses the options that do not belong to it, calls
// the room that does the check, and returns what is to be printed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/audit_run.h"
#include "ostro/bundle/check/check_bundle.h"
#include "ostro/context/context.h"

namespace ostro::cli {

// The options of the command line.
struct VerifyAsked {
  std::string run, model;     // run: the path to check, of any kind
  audit::AuditOptions audit;  // for a run or the record of a bundle
  std::optional<int64_t> from, to;
  // For a sample or a leaf.
  std::optional<int64_t> count;
  std::string challenge, leaf, rows;
  bool only_price = false;
  // For a bundle.
  bool as_bundle = false;
  bundle::BundleOptions bundle;
  // For a receipt, or a server's log of them.
  struct {
    std::string path, log, openings, checkpoint, tokenizer;
    std::vector<std::string> adapters;  // NAME=DIR
  } receipt;
  // Of a replay: where to write a statement about it, whose it is, and the key that signs it (empty: none).
  struct {
    std::string file, by, sign;
  } statement;
  bool json = false;
  // Called before each step that is replayed. What it throws ends the check.
  std::function<void()> between_steps = {};

  bool is_spot() const { return count.has_value() || !leaf.empty(); }
};

// Checks that the options do not contradict each other, whatever `run` is. Error: kInvalidArgument.
Status check_asked(const VerifyAsked& asked);

// A result: the verdict first, or what a check would cost, as text or JSON.
struct Verified {
  std::string text;
  int code;  // of the process (exit_code.h)
};

// Chooses the form, by the options and by what lies at `run`, and runs it.
Result<Verified> verify(const Context& context, VerifyAsked asked);

Result<Verified> verify_run(const Context& context, VerifyAsked asked);
// The form of a sample or a leaf, of a run or of the record in a bundle.
Result<Verified> verify_spot(const Context& context, VerifyAsked asked);
// `record`: the run, checkpoint or import from which `model` was made; empty: not at hand.
Result<Verified> verify_model(const Context& context, const VerifyAsked& asked, const std::string& model,
                              const std::string& record);
// The form of a published lab (ostro lab publish).
Result<Verified> verify_publication(const Context& context, const VerifyAsked& asked);
Result<Verified> verify_bundle(const Context& context, const VerifyAsked& asked);
Result<Verified> verify_receipt(const Context& context, const VerifyAsked& asked);
Result<Verified> verify_receipt_log(const Context& context, const VerifyAsked& asked);

// For a replay of the record in bundle `directory`: `run` becomes that record, and the options say what the
// bundle left out of it. Errors: bundle.json cannot be read.
Status use_bundle(io::FileSystem& fs, const std::string& directory, VerifyAsked& asked);
// What such a replay does not look at.
std::string model_not_shown(const std::string& bundle);

// Writes the statement that was asked for, where the verdict is "equal". Returns a line that says so for
// people; empty when none was asked for.
Result<std::string> write_statement(const Context& context, const VerifyAsked& asked,
                                    const audit::Audit& audit);

int exit_code(audit::Verdict verdict);
// The text is made printable.
Verified verified(const std::string& text, int code);

}  // namespace ostro::cli
