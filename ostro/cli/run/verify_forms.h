// VerifyAsked and the forms of `ostro verify`: of a run, of a sample or a leaf of it, of a model, of a
// bundle and of a receipt. Each form checks the options that it has no use for, asks a room, prints, and
// returns the exit code.
#pragma once

#include <optional>
#include <string>

#include "ostro/audit/audit_run.h"
#include "ostro/bundle/check/check_bundle.h"
#include "ostro/context/context.h"

namespace ostro::cli {

// The options of the command line.
struct VerifyAsked {
  std::string run, model;     // run: what is checked
  audit::AuditOptions audit;  // of a replay and of a record
  std::optional<int64_t> from, to;
  // Of a sample or a leaf.
  std::optional<int64_t> count;
  std::string challenge, leaf, rows;
  bool only_price = false;
  // Of a bundle.
  bool as_bundle = false;
  bundle::BundleOptions bundle;
  // Of a receipt.
  struct {
    std::string path, checkpoint, tokenizer;
  } receipt;
  bool json = false;

  bool is_spot() const { return count.has_value() || !leaf.empty(); }
};

// Whether the options say one thing, whatever `run` is.
Status check_asked(const VerifyAsked& asked);

// Finds out which form is asked for, by the options and by what `run` is.
int verify(const Context& context, VerifyAsked asked);

int verify_run(const Context& context, VerifyAsked asked);
// Of a run, or of the record in a bundle.
int verify_spot(const Context& context, VerifyAsked asked);
// `record`: the run, checkpoint or import that `model` was made of; empty: not at hand.
int verify_model(const Context& context, const VerifyAsked& asked, const std::string& model,
                 const std::string& record);
int verify_bundle(const Context& context, const VerifyAsked& asked);
// For a replay of the record in bundle `directory`: `run` becomes that record, and the options say what the
// bundle left out of it. Errors: bundle.json cannot be read.
Status use_bundle(io::FileSystem& fs, const std::string& directory, VerifyAsked& asked);
// What such a replay does not look at.
std::string model_not_shown(const std::string& bundle);
int verify_receipt(const Context& context, const VerifyAsked& asked);

int exit_code(audit::Verdict verdict);
// Prints the result of a form. Returns `code`, or that of an error of writing.
int print_verdict(const std::string& text, int code);

}  // namespace ostro::cli
