#include "ostro/serve/receipts/check_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "ostro/audit/findings_json.h"
#include "ostro/audit/sample/draw.h"
#include "ostro/base/out_of_memory.h"

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

// Computes drawn receipts again.
class Replay {
 public:
  Replay(const LogCheckOptions& options, ReceiptModels& models, LogCheck& out)
      : options_(options), models_(models), out_(out) {}

  // In the order of precision and context, so that each is opened once; what is said is in the log's order.
  void all(const std::vector<ReceiptDocument>& log) {
    const auto of = [&](int64_t number) -> const Receipt& {
      return log[static_cast<size_t>(number)].receipt;
    };
    std::vector<int64_t> order = out_.drawn;
    std::ranges::sort(order, {}, [&](int64_t number) {
      return std::tuple(of(number).model.dtype, of(number).model.context, number);
    });
    for (const int64_t number : order) {
      said_ = &by_number_[number];
      one(of(number));
    }
    for (const auto& [number, said] : by_number_)
      for (const audit::Finding& found : said)
        out_.findings.push_back({found.verdict, fmt::format("receipt {}: {}", number, found.text)});
  }

 private:
  void finding(Verdict verdict, std::string text) { said_->push_back({verdict, std::move(text)}); }

  // A receipt that this machine cannot compute, such as one of a context that memory does not hold, says
  // nothing of the others.
  void one(const Receipt& receipt) {
    const auto cannot = [&](const Error& error) {
      finding(Verdict::kCannotCheck,
              fmt::format(
                  "it cannot be computed again in its context of {} positions{}: {}", receipt.model.context,
                  receipt.model.dtype.empty() ? "" : " and in " + receipt.model.dtype, error.message()));
    };
    try {
      if (const Status done = compared(receipt); !done.ok()) cannot(done.error());
    } catch (const std::bad_alloc& e) {
      cannot(out_of_memory_error(e));
    }
  }

  Status compared(const Receipt& receipt) {
    const auto opened = options_.openings.find(receipt_hash(receipt));
    if (opened == options_.openings.end()) {
      finding(Verdict::kIncomplete, "it was drawn, and its opening is not at hand (--openings FOLDER)");
      return {};
    }
    ASSIGN_OR_RETURN(ServedModel * model, models_.of(receipt));
    const auto named = [](const ModelFacts& facts) {
      return facts.state + (facts.adapter.empty() ? "" : " with the adapter " + facts.adapter) +
             (facts.dtype.empty() ? "" : " in " + facts.dtype);
    };
    if (named(receipt.model) != named(model->facts)) {
      finding(Verdict::kCannotCheck, fmt::format("it is of state {}, and the checkpoint at hand is {}",
                                                 named(receipt.model), named(model->facts)));
      return {};
    }
    ASSIGN_OR_RETURN(const ReceiptCheck check, check_receipt(opened->second, *model, options_.key, &models_));
    for (const audit::Finding& found : check.findings) finding(found.verdict, found.text);
    if (check.findings.empty()) {
      ++out_.replayed;
      out_.tokens += check.output_tokens;
    }
    return {};
  }

  const LogCheckOptions& options_;
  ReceiptModels& models_;
  LogCheck& out_;
  std::map<int64_t, std::vector<audit::Finding>> by_number_;
  std::vector<audit::Finding>* said_ = nullptr;  // of the receipt at hand
};

// What can be said of the drawn receipts without the model.
void look_at_drawn(const std::vector<ReceiptDocument>& all, const LogCheckOptions& options, LogCheck& out) {
  std::set<std::string> states;
  for (const int64_t number : out.drawn) {
    const Receipt& receipt = all[static_cast<size_t>(number)].receipt;
    states.insert(receipt.model.state);
    const auto opened = options.openings.find(receipt_hash(receipt));
    if (opened == options.openings.end()) continue;
    ReceiptCheck check;
    check_opening(opened->second, check);
    for (const audit::Finding& found : check.findings)
      out.findings.push_back({found.verdict, fmt::format("receipt {}: {}", number, found.text)});
  }
  out.findings.push_back(
      {Verdict::kIncomplete,
       fmt::format("{} of {} receipts were drawn, and their answers were not chosen again; --checkpoint K, "
                   "of state {}, and --openings FOLDER do that",
                   out.drawn.size(), out.receipts, fmt::join(states, " or "))});
}

}  // namespace

Result<LogCheck> check_log(const std::string& text, const std::string& where, const LogCheckOptions& options,
                           ReceiptModels* models) {
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
    if (models == nullptr) {
      look_at_drawn(all, options, out);
    } else {
      RETURN_IF_ERROR(models->at_hand());
      Replay(options, *models, out).all(all);
    }
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
