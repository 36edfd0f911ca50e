// check_log: whether a server's receipts.jsonl is one chain whose signatures hold, and whether receipts that
// a challenge draws from it are what the checkpoint at hand says (docs/reference/verdicts.md).
//
// A receipt's tokens are in its opening, which only the client that asked has. So a drawn receipt is computed
// again where its opening was brought, and is otherwise a finding that says so. Without a model the numbers
// are drawn and openings compared with their hashes; that no answer was chosen again is then a finding, too.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/serve/receipts/check_receipt.h"

namespace ostro::serve {

struct LogCheckOptions {
  std::optional<int64_t> count;  // receipts to draw; nothing: none
  std::string challenge;
  std::string head;                                 // the last receipt's hash, if it was published; or empty
  std::optional<bundle::PublicKey> key;             // that must have signed all
  std::map<std::string, ReceiptDocument> openings;  // documents of clients, by the hash of the receipt
};

struct LogCheck {
  std::vector<audit::Finding> findings;  // the worst first
  int64_t receipts = 0, unsigned_ones = 0;
  std::vector<std::string> keys;  // fingerprints of those that signed, in order of their first receipt
  std::string head;               // hash of the last receipt
  std::vector<int64_t> drawn;     // numbers, ascending
  int64_t replayed = 0, tokens = 0;

  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// `text`: the file; `where`: its name in findings. `models`: null without a checkpoint. Errors: a challenge
// or a number that draws nothing; a checkpoint that cannot be opened at all (ReceiptModels::at_hand). A
// receipt whose model cannot be opened or run, since memory does not hold its context, is a finding.
Result<LogCheck> check_log(const std::string& text, const std::string& where, const LogCheckOptions& options,
                           ReceiptModels* models);

// As receipt_check_text and receipt_check_json.
std::string log_check_text(const LogCheck& check);
std::string log_check_json(const LogCheck& check);

}  // namespace ostro::serve
