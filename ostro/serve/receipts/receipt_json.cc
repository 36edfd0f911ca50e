#include "ostro/serve/receipts/receipt_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "ostro/io/json/file_header.h"
#include "ostro/serve/json/fields.h"
#include "ostro/train/options/options.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;
using io::JsonFields;

constexpr io::FileHeader kHeader{"ostro receipt", 1};
constexpr int64_t kMostTokens = trained::kMostContext;

Result<double> number_of(const JsonFields& fields, const char* key) {
  ASSIGN_OR_RETURN(const JsonFields::Json* value, fields.get(key));
  const double out = value->is_number() ? value->get<double>() : std::nan("");
  if (!std::isfinite(out)) return fields.bad(key, "is not a number");
  return out;
}

template <typename Number>
Result<Number> decimal(const JsonFields& fields, const char* key, const std::string& text) {
  Number out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || text != fmt::format("{}", out))
    return fields.bad(key, "is not a decimal number");
  return out;
}

Result<AnswerOptions> options_of(const JsonFields& fields) {
  AnswerOptions out;
  for (const auto& [key, to] : {std::pair{"temperature", &out.choice.temperature},
                                {"top_p", &out.choice.top_p},
                                {"min_p", &out.choice.min_p},
                                {"presence_penalty", &out.choice.presence_penalty},
                                {"frequency_penalty", &out.choice.frequency_penalty}}) {
    ASSIGN_OR_RETURN(*to, number_of(fields, key));
  }
  ASSIGN_OR_RETURN(out.choice.top_k, fields.integer("top_k", 0, INT32_MAX));
  ASSIGN_OR_RETURN(out.max_tokens, fields.integer("max_tokens", 0, kMostTokens));
  ASSIGN_OR_RETURN(const JsonFields::Json* stops, fields.array("stop"));
  for (const auto& stop : *stops) {
    if (!stop.is_string() || stop.get<std::string>().empty()) return fields.bad("stop", "holds no text");
    out.stop.push_back(stop.get<std::string>());
  }
  ASSIGN_OR_RETURN(const JsonFields::Json* list, fields.array("logit_bias"));
  for (const auto& one : *list) {
    if (!one.is_array() || one.size() != 2 || !one[0].is_number_integer() || !one[1].is_number() ||
        one[0].get<int64_t>() < 0 || one[0].get<int64_t>() > INT32_MAX)
      return fields.bad("logit_bias", "holds what is no pair of an id and a number");
    out.choice.bias.emplace_back(one[0].get<int32_t>(), one[1].get<double>());
  }
  return out;
}

Result<Receipt> receipt_of(const JsonFields& fields) {
  RETURN_IF_ERROR(io::check_header(fields, kHeader));
  Receipt out;
  for (const auto& [key, to] : {std::pair{"numerics", &out.numerics},
                                {"state", &out.model.state},
                                {"forward", &out.model.forward},
                                {"tokenizer", &out.model.tokenizer},
                                {"chat_template", &out.model.chat_template},
                                {"dtype", &out.model.dtype},
                                {"nonce", &out.nonce},
                                {"prompt", &out.prompt},
                                {"output", &out.output},
                                {"finish", &out.finish},
                                {"log_probs", &out.log_probs},
                                {"previous", &out.previous},
                                {"key", &out.key}}) {
    ASSIGN_OR_RETURN(*to, fields.string(key));
  }
  if (fields.has("adapter")) {
    ASSIGN_OR_RETURN(out.model.adapter, fields.string("adapter"));
  }
  if (!out.previous.empty()) RETURN_IF_ERROR(fields.sha256("previous"));
  if (const std::string& dtype = out.model.dtype; !dtype.empty()) {
    const auto precision = train::parse_precision(dtype);
    if (!precision.ok() || train::precision_word(*precision) != dtype)
      return fields.bad("dtype", "is neither f32, bf16, int8, c=int8,a=int8 or the like, nor empty");
  }
  ASSIGN_OR_RETURN(out.model.context,
                   fields.integer("context", trained::kLeastContext, trained::kMostContext));
  ASSIGN_OR_RETURN(const JsonFields options, fields.object("options"));
  ASSIGN_OR_RETURN(out.options, options_of(options));
  ASSIGN_OR_RETURN(const std::string seed, fields.string("seed"));
  ASSIGN_OR_RETURN(out.options.choice.seed, decimal<uint64_t>(fields, "seed", seed));
  ASSIGN_OR_RETURN(out.options.choice.choice, fields.integer("choice", 0, INT32_MAX));
  ASSIGN_OR_RETURN(out.prompt_tokens, fields.integer("prompt_tokens", 1, kMostTokens));
  ASSIGN_OR_RETURN(out.output_tokens, fields.integer("output_tokens", 0, kMostTokens));
  ASSIGN_OR_RETURN(out.number, fields.integer("number", 0, INT64_MAX));
  return out;
}

Result<std::vector<int32_t>> ids_in(const JsonFields& fields, const char* key) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids, fields.integers(key, 0, INT32_MAX));
  return std::vector<int32_t>(ids.begin(), ids.end());
}

Result<Opening> opening_of(const JsonFields& fields) {
  Opening out;
  ASSIGN_OR_RETURN(out.salt, fields.string("salt"));
  ASSIGN_OR_RETURN(out.prompt, ids_in(fields, "prompt_ids"));
  ASSIGN_OR_RETURN(out.output, ids_in(fields, "output_ids"));
  ASSIGN_OR_RETURN(const JsonFields::Json* values, fields.array("log_probs"));
  for (const auto& value : *values) {
    if (!value.is_number()) return fields.bad("log_probs", "holds what is no number");
    out.log_probs.push_back(static_cast<float>(value.get<double>()));
  }
  return out;
}

}  // namespace

Json options_json(const AnswerOptions& options) {
  const infer::ChoiceOptions& c = options.choice;
  Json bias = Json::array();
  for (const auto& [id, value] : c.bias) bias.push_back(Json::array({id, value}));
  return {{"temperature", c.temperature},
          {"top_k", c.top_k},
          {"top_p", c.top_p},
          {"min_p", c.min_p},
          {"presence_penalty", c.presence_penalty},
          {"frequency_penalty", c.frequency_penalty},
          {"logit_bias", bias},
          {"max_tokens", options.max_tokens},
          {"stop", options.stop}};
}

Json receipt_json(const Receipt& r) {
  Json out = {{"format", kHeader.format},
              {"format_version", kHeader.version},
              {"numerics", r.numerics},
              {"state", r.model.state}};
  if (!r.model.adapter.empty()) out["adapter"] = r.model.adapter;
  out.update({{"forward", r.model.forward},
              {"tokenizer", r.model.tokenizer},
              {"chat_template", r.model.chat_template},
              {"dtype", r.model.dtype},
              {"context", r.model.context},
              {"options", options_json(r.options)},
              {"seed", fmt::format("{}", r.options.choice.seed)},
              {"choice", r.options.choice.choice},
              {"nonce", r.nonce},
              {"prompt", r.prompt},
              {"prompt_tokens", r.prompt_tokens},
              {"output", r.output},
              {"output_tokens", r.output_tokens},
              {"finish", r.finish},
              {"log_probs", r.log_probs},
              {"number", r.number},
              {"previous", r.previous},
              {"key", r.key}});
  return out;
}

Json document_json(const ReceiptDocument& document) {
  Json out = {{"receipt", receipt_json(document.receipt)}};
  if (document.opening) {
    std::vector<double> log_probs(document.opening->log_probs.begin(), document.opening->log_probs.end());
    out["opening"] = {{"salt", document.opening->salt},
                      {"prompt_ids", document.opening->prompt},
                      {"output_ids", document.opening->output},
                      {"log_probs", log_probs}};
  }
  if (!document.signature.empty()) {
    out["signature"] = document.signature;
    out["public_key"] = document.public_key;
  }
  return out;
}

// What was read is written again and compared: a receipt has these fields in this order, and no other.
Result<ReceiptDocument> parse_document(std::string_view text, const std::string& where) {
  ASSIGN_OR_RETURN(const nlohmann::json json, io::parse_json(text, where));
  const JsonFields fields(json, where);
  ReceiptDocument out;
  ASSIGN_OR_RETURN(const JsonFields receipt, fields.object("receipt"));
  ASSIGN_OR_RETURN(out.receipt, receipt_of(receipt));
  if (fields.has("opening")) {
    ASSIGN_OR_RETURN(const JsonFields opening, fields.object("opening"));
    ASSIGN_OR_RETURN(out.opening, opening_of(opening));
  }
  if (fields.has("signature")) {
    ASSIGN_OR_RETURN(out.signature, fields.string("signature"));
    ASSIGN_OR_RETURN(out.public_key, fields.string("public_key"));
  }
  if (nlohmann::json::parse(document_text(out)) != json ||
      Json::parse(text)["receipt"].dump() != receipt_text(out.receipt))
    return corrupt(
        fmt::format("{}: has other fields than a receipt has, in another order, or numbers that "
                    "are written in another way",
                    where));
  return out;
}

}  // namespace ostro::serve
