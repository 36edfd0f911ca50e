#include "targets.h"

#include <nlohmann/json.hpp>

#include "mutator.h"
#include "ostro/config/utf8.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/json/tools.h"
#include "ostro/serve/model_for_test.h"
#include "ostro/serve/receipts/check_log.h"
#include "ostro/serve/receipts/check_receipt.h"
#include "ostro/serve/receipts/receipt_log.h"

namespace ostro::fuzz {
namespace {

using namespace serve;

constexpr std::string_view kJsonWords[] = {"\"",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "null",
                                           "true",
                                           "\\",
                                           "\\u",
                                           "\xff",
                                           "\xc3",
                                           "\\ud800",
                                           "\\u0000",
                                           "\xf0\x9f\x98\x80",
                                           "\"a\":",
                                           "\"name\"",
                                           "false",
                                           "<tool_call>",
                                           "</tool_call>",
                                           "</tool",
                                           "\"arguments\"",
                                           "\n",
                                           " ",
                                           "\"f\"",
                                           "{}",
                                           "[]",
                                           "\"receipt\"",
                                           "\"opening\"",
                                           "\"signature\""};

// Receipts as a server gives them, and a log of five.
class Receipts final : public Target {
 public:
  Receipts() {
    const auto maker = ReceiptMaker::open(fs_, "log", {}).value();
    for (int i = 0; i < 5; ++i) {
      AnswerOptions options;
      options.choice.seed = static_cast<uint64_t>(i);
      options.max_tokens = 4 + i;
      const std::vector<int32_t> prompt = {1, 2, 3 + i};
      const std::string nonce = i == 2 ? "n" : "";
      if (!nonce.empty()) options.choice.seed = nonce_seed(nonce, model_.facts.parameters(), prompt, options);
      std::vector<float> log_probs;
      const RunningAnswer answer = make_answer(model_, prompt, options, {.log_probs = true}).value();
      for (const RatedToken& token : answer.made()) log_probs.push_back(token.log_prob);
      honest_.push_back(
          document_text(maker->make(model_, answer.state(), options, nonce, log_probs).value()));
    }
    log_ = *fs_.content("log/receipts.jsonl");
  }

  Outcome run(uint64_t seed) override {
    Mutator m(seed, kJsonWords);
    return m.one_in(4) ? run_log(m) : run_document(m);
  }

 private:
  Outcome run_document(Mutator& m) {
    const std::string text = m.damaged(honest_[m.below(honest_.size())], honest_[m.below(honest_.size())]);
    const auto read = parse_document(text, "r.json");
    if (!read.ok()) return refused(read.error());
    const std::string again = document_text(*read);
    const auto back = parse_document(again, "r.json");
    if (!back.ok()) return {"its own text cannot be read: " + back.error().message()};
    if (document_text(*back) != again) return {"another text after reading its own"};
    const auto check = check_receipt(*read, model_, {});
    if (!check.ok()) return {"it cannot be checked: " + check.error().message()};
    const bool honest = std::find(honest_.begin(), honest_.end(), again) != honest_.end();
    if (honest && check->verdict() != audit::Verdict::kEqual) return {"an honest one is not equal"};
    if (check->verdict() == audit::Verdict::kEqual && !same_claim(*read)) return {"a forged one is equal"};
    if (!config::is_utf8(receipt_check_text(*check))) return {"a verdict that is no text"};
    return {std::nullopt, true};
  }
  // What a receipt claims of its answer is one of the honest ones': the place in the chain and the salt
  // decide nothing of it.
  bool same_claim(const ReceiptDocument& d) const {
    return d.opening && std::any_of(honest_.begin(), honest_.end(), [&](const std::string& text) {
             const ReceiptDocument honest = parse_document(text, "h").value();
             return honest.opening->output == d.opening->output &&
                    honest.opening->prompt == d.opening->prompt;
           });
  }

  Outcome run_log(Mutator& m) {
    const std::string text = m.damaged(log_, log_);
    LogCheckOptions options;
    options.count = 2;
    options.challenge = "c";
    const auto no_model = [](const std::string&, std::optional<int64_t>) {
      return not_found("no model here");
    };
    ReceiptModels none(no_model, no_model);
    const auto check = check_log(text, "receipts.jsonl", options, &none);
    if (!check.ok()) return {std::nullopt, false, check.error().message()};
    if (!config::is_utf8(log_check_text(*check))) return {"a verdict that is no text"};
    if (text.empty() || text == log_) return {std::nullopt, true};
    return {std::nullopt, check->receipts == 5, log_check_text(*check)};
  }
  static Outcome refused(const Error& error) {
    if (error.code() != ErrorCode::kCorrupt && error.code() != ErrorCode::kUnsupported)
      return {"an error of another kind: " + error.message()};
    if (!error.message().starts_with("r.json")) return {"an error without a place: " + error.message()};
    return {std::nullopt, false, error.message()};
  }

  ServedModel model_ = test_model();
  io::MemoryFileSystem fs_;
  std::vector<std::string> honest_;
  std::string log_;
};

// A model's texts: calls in them are objects of known functions, and what was told to a client as content
// stays content.
class Calls final : public Target {
 public:
  Outcome run(uint64_t seed) override {
    Mutator m(seed, kJsonWords);
    static constexpr std::string_view kTexts[] = {
        "Let me see. <tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>",
        "<tool_call>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {\"a\": [1, "
        "\"b\"]}}]</tool_call>",
        "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call> <tool_call>{\"name\": \"f\", "
        "\"arguments\": {\"s\": \"</tool_call>\"}}</tool_call>",
        "{\"name\": \"f\", \"arguments\": {\"x\": \"\\u00e9\"}}"};
    ToolUse use{{"<tool_call>", "</tool_call>"}, {"f", "g"}};
    if (m.one_in(4)) use.format.begin = use.format.end = "";
    const std::string text = m.damaged(std::string(m.pick(kTexts)), m.pick(kTexts));
    const auto found = parse_calls(use, text);
    const std::string content = found ? found->content : text;
    for (size_t length = 0; length <= text.size(); length += 1 + m.below(9)) {
      const size_t told = certain_content(use.format, std::string_view(text).substr(0, length));
      if (told > length) return {"more content than text"};
      if (content.compare(0, told, text, 0, told) != 0 || told > content.size())
        return {"told as content, and none in the end: " + text};
    }
    if (!found) return {std::nullopt, false, "no calls"};
    if (found->calls.empty()) return {"calls without a call"};
    for (const ToolCall& call : found->calls) {
      if (call.name != "f" && call.name != "g") return {"a function that is not there: " + call.name};
      const auto arguments = nlohmann::json::parse(call.arguments, nullptr, false);
      if (!arguments.is_object()) return {"arguments that are no object: " + call.arguments};
    }
    return {std::nullopt, true};
  }
};

}  // namespace

std::unique_ptr<Target> receipts_target() { return std::make_unique<Receipts>(); }
std::unique_ptr<Target> calls_target() { return std::make_unique<Calls>(); }

std::vector<std::string> target_names() { return {"bodies", "http", "receipts", "calls"}; }

std::unique_ptr<Target> make_target(const std::string& name) {
  if (name == "bodies") return bodies_target();
  if (name == "http") return http_target();
  if (name == "receipts") return receipts_target();
  if (name == "calls") return calls_target();
  return nullptr;
}

}  // namespace ostro::fuzz
