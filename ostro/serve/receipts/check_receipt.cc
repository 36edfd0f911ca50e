#include "ostro/serve/receipts/check_receipt.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "ostro/audit/findings_json.h"
#include "ostro/base/hex_digits.h"
#include "ostro/chain/version.h"

namespace ostro::serve {
namespace {

using audit::Verdict;

constexpr const char* kShown =
    "this checkpoint gives this answer to this prompt, with these options and this seed";
constexpr const char* kNotShown = "when it was made, and what else was said";

class Check {
 public:
  Check(const ReceiptDocument& document, ServedModel& model) : receipt_(document.receipt), model_(model) {}

  void differs(std::string text) { out_.findings.push_back({Verdict::kDiffers, std::move(text)}); }
  void cannot(std::string text) { out_.findings.push_back({Verdict::kCannotCheck, std::move(text)}); }
  void incomplete(std::string text) { out_.findings.push_back({Verdict::kIncomplete, std::move(text)}); }
  bool goes_on() const {
    return std::none_of(out_.findings.begin(), out_.findings.end(),
                        [](const audit::Finding& f) { return f.verdict == Verdict::kDiffers; });
  }

  void seal(const ReceiptDocument& document, const std::optional<bundle::PublicKey>& key) {
    check_seal(document, key, out_);
  }
  void opening(const ReceiptDocument& document) { check_opening(document, out_); }

  void model(ReceiptModels* others) {
    if (receipt_.numerics != chain::kNumericsVersion)
      cannot(fmt::format("the receipt is of numerics version {}, this program has {}", receipt_.numerics,
                         chain::kNumericsVersion));
    const ModelFacts& here = model_.facts;
    const auto same = [&](const char* what, const std::string& there, const std::string& at_hand) {
      if (there != at_hand)
        differs(fmt::format("{} is {} in the receipt, {} here", what, there.empty() ? "none" : there,
                            at_hand.empty() ? "none" : at_hand));
    };
    same("the checkpoint's state", receipt_.model.state, here.state);
    same("the adapter", receipt_.model.adapter, here.adapter);
    same("the tokenizer", receipt_.model.tokenizer, here.tokenizer);
    same("the chat template", receipt_.model.chat_template, here.chat_template);
    same("the context", std::to_string(receipt_.model.context), std::to_string(here.context));
    if (receipt_.model.forward == here.forward) return;
    const bool same_context = receipt_.model.context == here.context;
    const auto context =
        others == nullptr || !same_context ? std::nullopt : others->context_of_program(receipt_);
    if (context)
      return differs(fmt::format("the context is {} in the receipt, and its forward program is that of {}",
                                 here.context, *context));
    const std::string word = others == nullptr ? "" : others->precision_of_program(receipt_, here.mp);
    if (!word.empty())
      differs(fmt::format("the precision is {} in the receipt, and its forward program is that of {}",
                          here.mp, word));
    else
      cannot(
          fmt::format("the forward program is {} in the receipt, and this program traces {}; the version "
                      "that served can tell",
                      receipt_.model.forward, here.forward));
  }

  Status answer(const Opening& opening) {
    const auto outside = [&](const std::vector<int32_t>& ids) {
      return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return id >= model_.tokens(); });
    };
    if (outside(opening.prompt) || outside(opening.output)) {
      differs(fmt::format("a token is outside of the model's ids, 0 to {}", model_.tokens() - 1));
      return {};
    }
    const size_t before = opening.prompt.size();
    std::vector<int32_t> all = opening.prompt;
    all.insert(all.end(), opening.output.begin(), opening.output.end());
    if (static_cast<int64_t>(all.size()) > model_.facts.context) {
      differs(fmt::format("prompt and output have {} tokens, the model's context {}", all.size(),
                          model_.facts.context));
      return {};
    }
    for (const auto& [id, bias] : receipt_.options.choice.bias)
      if (id >= model_.tokens()) {
        differs(fmt::format("a bias is of id {}; the model's are 0 to {}", id, model_.tokens() - 1));
        return {};
      }
    ASSIGN_OR_RETURN(AnswerState state, AnswerState::create(model_, opening.prompt, receipt_.options));
    ASSIGN_OR_RETURN(const runtime::Buffer rows, infer::logits_of(*model_.runner, all, before - 1));
    const auto vocab = static_cast<size_t>(rows.shape().axes.back().size);
    for (size_t i = 0; i < opening.output.size(); ++i) {
      if (state.finish() != Finish::kNone) {
        differs(fmt::format("the answer ends after {} tokens ({}); the receipt has {}", i,
                            finish_word(state.finish()), opening.output.size()));
        return {};
      }
      const auto row = rows.as<float>().subspan(i * vocab, vocab);
      if (const int32_t chosen = state.choose(row); chosen != opening.output[i]) {
        differs(
            fmt::format("at token {} of the answer: it is {} in the receipt, this checkpoint chooses {} "
                        "with the receipt's options and seed",
                        i, opening.output[i], chosen));
        return {};
      }
      const float log_prob = rated(model_, row, opening.output[i], {.log_probs = true}).log_prob;
      if (std::bit_cast<uint32_t>(log_prob) != std::bit_cast<uint32_t>(opening.log_probs[i])) {
        differs(
            fmt::format("at token {} of the answer: its log-probability is {} in the receipt, {} computed", i,
                        opening.log_probs[i], log_prob));
        return {};
      }
      RETURN_IF_ERROR(state.add(opening.output[i]));
    }
    // An answer that would have gone on may have been ended by the server's limit of time.
    if (receipt_.finish == finish_word(Finish::kTime) && !opening.output.empty()) state.cut();
    if (finish_word(state.finish()) != receipt_.finish)
      differs(fmt::format("the answer ends by \"{}\" in the receipt; its tokens and options give \"{}\"",
                          receipt_.finish, finish_word(state.finish())));
    out_.prompt_tokens = static_cast<int64_t>(before);
    out_.output_tokens = static_cast<int64_t>(opening.output.size());
    return {};
  }

  ReceiptCheck result() {
    audit::sort_worst_first(out_.findings);
    return std::move(out_);
  }

 private:
  const Receipt& receipt_;
  ServedModel& model_;
  ReceiptCheck out_;
};

std::string equal_text(const ReceiptCheck& check) {
  return fmt::format("{} tokens chosen again after a prompt of {}, with the bits of their log-probabilities",
                     check.output_tokens, check.prompt_tokens);
}

}  // namespace

void check_seal(const ReceiptDocument& document, const std::optional<bundle::PublicKey>& key,
                ReceiptCheck& out) {
  const Receipt& receipt = document.receipt;
  const auto differs = [&](std::string text) {
    out.findings.push_back({Verdict::kDiffers, std::move(text)});
  };
  if (document.signature.empty()) {
    if (!receipt.key.empty()) differs("the receipt names a key that signs it, and has no signature");
    if (key && receipt.key.empty()) differs("the receipt is not signed; --key names who should have");
    return;
  }
  const auto own = bundle::PublicKey::parse(document.public_key, "\"public_key\" of the receipt");
  const auto signature = from_hex_digits(document.signature);
  if (!own.ok()) return differs(own.error().message());
  if (own->fingerprint() != receipt.key)
    return differs(fmt::format("the public key has the fingerprint {}, the receipt names {}",
                               own->fingerprint(), receipt.key));
  if (!signature || !own->has_signed(receipt_text(receipt), *signature))
    return differs("the signature is not one of this receipt");
  if (key && !(*key == *own))
    return differs(fmt::format("the receipt is signed by {}, not by {} (--key)", own->fingerprint(),
                               key->fingerprint()));
  out.key = own->fingerprint();
}

void check_opening(const ReceiptDocument& document, ReceiptCheck& out) {
  const Receipt& receipt = document.receipt;
  const Opening& opening = *document.opening;
  const auto differs = [&](std::string text) {
    out.findings.push_back({Verdict::kDiffers, std::move(text)});
  };
  const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  if (ids_hash("prompt", opening.salt, opening.prompt) != receipt.prompt ||
      count(opening.prompt) != receipt.prompt_tokens)
    differs("the prompt of the opening is not the one whose hash the receipt has");
  if (ids_hash("output", opening.salt, opening.output) != receipt.output ||
      count(opening.output) != receipt.output_tokens)
    differs("the output of the opening is not the one whose hash the receipt has");
  if (log_probs_hash(opening.log_probs) != receipt.log_probs ||
      count(opening.log_probs) != receipt.output_tokens)
    differs("the log-probabilities of the opening are not those whose hash the receipt has");
  if (receipt.nonce.empty()) return;
  const uint64_t seed =
      nonce_seed(receipt.nonce, receipt.model.parameters(), opening.prompt, receipt.options);
  if (seed != receipt.options.choice.seed)
    differs(fmt::format("the seed is {}; the nonce gives {}", receipt.options.choice.seed, seed));
}

Result<ReceiptCheck> check_receipt(const ReceiptDocument& document, ServedModel& model,
                                   const std::optional<bundle::PublicKey>& key, ReceiptModels* others) {
  Check check(document, model);
  check.seal(document, key);
  check.model(others);
  if (!document.opening) {
    check.incomplete("the receipt has no opening; the client that asked for the answer has it");
    return check.result();
  }
  check.opening(document);
  if (check.goes_on()) RETURN_IF_ERROR(check.answer(*document.opening));
  return check.result();
}

std::string receipt_check_text(const ReceiptCheck& check) {
  std::string out;
  for (const audit::Finding& finding : check.findings) out += audit::finding_text(finding) + "\n";
  if (!check.findings.empty()) return out;
  out = fmt::format("{}: {}\n", audit::verdict_word(Verdict::kEqual), equal_text(check));
  out += check.key.empty() ? "not signed\n" : fmt::format("signed by {}\n", check.key);
  return out + fmt::format("shown: {}\nnot shown: {}\n", kShown, kNotShown);
}

std::string receipt_check_json(const ReceiptCheck& check) {
  nlohmann::ordered_json out = audit::findings_json(check.verdict(), check.findings);
  out["prompt_tokens"] = check.prompt_tokens;
  out["output_tokens"] = check.output_tokens;
  out["key"] = check.key;
  out["shown"] = check.verdict() == Verdict::kEqual ? nlohmann::ordered_json::array({kShown})
                                                    : nlohmann::ordered_json::array();
  out["not_shown"] = {kNotShown};
  return audit::json_line(out);
}

}  // namespace ostro::serve
