#include "ostro/serve/receipts/check_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/audit/findings_json.h"
#include "ostro/audit/sample/draw.h"

namespace ostro::serve {
namespace {

using audit::Verdict;

constexpr const char* kLogShown =
    "the receipts are one chain, and those that were drawn are what this checkpoint says";
constexpr const char* kLogNotShown =
    "that every answer of the server has its receipt here, and what the receipts that were not drawn say";

class LogReader {
 public:
  LogReader(std::string where, const LogCheckOptions& options, LogCheck& out)
      : where_(std::move(where)), options_(options), out_(out) {}

  void finding(Verdict verdict, std::string text) { out_.findings.push_back({verdict, std::move(text)}); }

  // The receipts up to the first line that is none. A last line without its end was being written.
  std::vector<ReceiptDocument> read(const std::string& text) {
    std::vector<ReceiptDocument> all;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      const std::string line_name = fmt::format("{}: line {}", where_, all.size() + 1);
      if (end == std::string::npos) {
        finding(Verdict::kIncomplete, line_name + " has no end: it was being written");
        break;
      }
      auto document = parse_document(std::string_view(text).substr(begin, end - begin), line_name);
      if (!document.ok()) {
        out_.findings.push_back(audit::finding_of(document.error()));
        break;
      }
      link(*document, line_name);
      all.push_back(std::move(*document));
      begin = end + 1;
    }
    if (all.empty() && out_.findings.empty()) finding(Verdict::kIncomplete, where_ + " has no receipt");
    out_.receipts = static_cast<int64_t>(all.size());
    return all;
  }

 private:
  void link(const ReceiptDocument& document, const std::string& line_name) {
    const Receipt& receipt = document.receipt;
    if (receipt.number != number_ || receipt.previous != out_.head)
      finding(Verdict::kDiffers,
              fmt::format(
                  "{} does not follow the one before it: it is number {} after {}, and should be {} after {}",
                  line_name, receipt.number, named(receipt.previous), number_, named(out_.head)));
    number_ = receipt.number + 1;
    out_.head = receipt_hash(receipt);
    ReceiptCheck seal;
    check_seal(document, options_.key, seal);
    for (audit::Finding& found : seal.findings) finding(found.verdict, line_name + ": " + found.text);
    if (document.signature.empty()) ++out_.unsigned_ones;
    if (!seal.key.empty() && std::find(out_.keys.begin(), out_.keys.end(), seal.key) == out_.keys.end())
      out_.keys.push_back(seal.key);
  }
  static std::string named(const std::string& hash) { return hash.empty() ? "none" : hash.substr(0, 12); }

  const std::string where_;
  const LogCheckOptions& options_;
  LogCheck& out_;
  int64_t number_ = 0;
};

// Computes a drawn receipt again.
Status replay(const Receipt& receipt, const LogCheckOptions& options, ReceiptModels& models, LogCheck& out) {
  const auto finding = [&](Verdict verdict, const std::string& text) {
    out.findings.push_back({verdict, fmt::format("receipt {}: {}", receipt.number, text)});
  };
  const auto opened = options.openings.find(receipt_hash(receipt));
  if (opened == options.openings.end()) {
    finding(Verdict::kIncomplete, "it was drawn, and its opening is not at hand (--openings FOLDER)");
    return {};
  }
  ASSIGN_OR_RETURN(ServedModel * model, models.of(receipt));
  const auto named = [](const ModelFacts& facts) {
    return facts.state + (facts.adapter.empty() ? "" : " with the adapter " + facts.adapter) +
           (facts.dtype.empty() ? "" : " in " + facts.dtype);
  };
  if (named(receipt.model) != named(model->facts)) {
    finding(Verdict::kCannotCheck, fmt::format("it is of state {}, and the checkpoint at hand is {}",
                                               named(receipt.model), named(model->facts)));
    return {};
  }
  ASSIGN_OR_RETURN(const ReceiptCheck check, check_receipt(opened->second, *model, options.key, &models));
  for (const audit::Finding& found : check.findings) finding(found.verdict, found.text);
  if (check.findings.empty()) {
    ++out.replayed;
    out.tokens += check.output_tokens;
  }
  return {};
}

}  // namespace

Result<LogCheck> check_log(const std::string& text, const std::string& where, const LogCheckOptions& options,
                           ReceiptModels& models) {
  LogCheck out;
  const std::vector<ReceiptDocument> all = LogReader(where, options, out).read(text);
  if (!options.head.empty() && options.head != out.head)
    out.findings.push_back(
        {Verdict::kDiffers, fmt::format("the last receipt is {}, not {} as given",
                                        out.head.empty() ? "none" : out.head, options.head)});
  const bool is_chain = std::none_of(out.findings.begin(), out.findings.end(),
                                     [](const audit::Finding& f) { return f.verdict == Verdict::kDiffers; });
  if (options.count && is_chain && !all.empty()) {
    ASSIGN_OR_RETURN(out.drawn,
                     audit::drawn_steps(out.head, options.challenge, 0, out.receipts - 1, *options.count));
    for (const int64_t number : out.drawn)
      RETURN_IF_ERROR(replay(all[static_cast<size_t>(number)].receipt, options, models, out));
  }
  audit::sort_worst_first(out.findings);
  return out;
}

std::string log_check_text(const LogCheck& check) {
  std::string out;
  for (const audit::Finding& finding : check.findings) out += audit::finding_text(finding) + "\n";
  if (check.findings.empty())
    out = fmt::format("{}: {} receipts are one chain; {} were drawn, and their {} tokens chosen again\n",
                      audit::verdict_word(Verdict::kEqual), check.receipts, check.drawn.size(), check.tokens);
  if (!check.head.empty()) out += fmt::format("last receipt {}\n", check.head);
  if (!check.drawn.empty()) out += fmt::format("drawn: {}\n", fmt::join(check.drawn, ", "));
  for (const std::string& key : check.keys) out += fmt::format("signed by {}\n", key);
  if (check.unsigned_ones > 0) out += fmt::format("{} are not signed\n", check.unsigned_ones);
  if (!check.findings.empty()) return out;
  if (!check.drawn.empty()) {
    const auto drawn = static_cast<int64_t>(check.drawn.size());
    const int64_t wrong = audit::false_steps_of(check.receipts, 10);
    const double chance = std::floor(1000 * audit::chance_to_find(check.receipts, wrong, drawn) + 1e-9);
    out += fmt::format(
        "a log with one false receipt in a hundred would have been found with a chance of {:.1f} %, if the "
        "hash "
        "of its last receipt was known before the challenge\n",
        (drawn + wrong > check.receipts ? chance : std::min(chance, 999.0)) / 10);
  }
  return out + fmt::format("shown: {}\nnot shown: {}\n", kLogShown, kLogNotShown);
}

std::string log_check_json(const LogCheck& check) {
  const bool equal = check.verdict() == Verdict::kEqual;
  nlohmann::ordered_json out = audit::findings_json(check.verdict(), check.findings);
  out["receipts"] = check.receipts;
  out["head"] = check.head;
  out["keys"] = check.keys;
  out["not_signed"] = check.unsigned_ones;
  out["drawn"] = check.drawn;
  out["replayed"] = check.replayed;
  out["output_tokens"] = check.tokens;
  out["shown"] = equal ? nlohmann::ordered_json::array({kLogShown}) : nlohmann::ordered_json::array();
  out["not_shown"] = {kLogNotShown};
  return audit::json_line(out);
}

}  // namespace ostro::serve
