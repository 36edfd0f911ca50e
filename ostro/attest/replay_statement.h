// ReplayStatement: that steps of a run were replayed, by whom, and all were equal: a line of canonical JSON
// (docs/reference/formats/replay_statement.md), signed or not. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/audit_run.h"
#include "ostro/bundle/parts/signature.h"
#include "ostro/chain/chain.h"

namespace ostro::attest {

struct ReplayStatement {
  std::string run_hash;
  int64_t first = 0, last = 0;  // the steps of the run's chain
  std::vector<int64_t> steps;   // that were drawn, replayed and compared, ascending; empty: from..to
  int64_t from = 0, to = 0;     // a range of them, where `steps` is empty
  std::string challenge = {};   // that drew `steps`
  std::string by, time;         // the name that was given; UTC, as the writer's clock says
  std::string public_key = {};  // PEM; empty: not signed
  std::string signature = {};   // hexadecimal

  // Whether all steps of the run's chain were replayed.
  bool is_whole() const {
    return steps.empty() ? from == first && to == last : std::ssize(steps) == last - first + 1;
  }
  // Who says so, and what was done again, for people.
  std::string who() const;
  std::string verified() const;
};

// The statement about a finished audit whose verdict is "equal". Errors: it replayed no step; a name or
// challenge that is empty or too long.
Result<ReplayStatement> statement_of(const audit::Audit& audit, const std::string& by);

// The text, a line, signed by `key` unless that is null.
std::string statement_text(ReplayStatement statement, const bundle::SigningKey* key);

// Reads a text, of which there is one form, and checks its signature, if it has one. Errors: kCorrupt, with
// `where`.
Result<ReplayStatement> read_statement(const std::string& text, const std::string& where);

// Whether the statement is about the run of this chain, and about the steps that it has: what it says of them
// is its writer's word only. Errors: kCorrupt, with `where` and both values.
Status check_is_of(const ReplayStatement& statement, const chain::Chain& chain, const std::string& where);

}  // namespace ostro::attest
