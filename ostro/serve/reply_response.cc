#include "ostro/serve/reply_response.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "ostro/serve/json/reply_parts.h"
#include "ostro/serve/receipts/receipt_json.h"
#include "ostro/serve/token_text.h"

namespace ostro::serve {

using Json = nlohmann::ordered_json;

struct ResponseReply::Parts {
  Json shown, output = Json::array(), more = Json::object();
};

ResponseReply::ResponseReply(const ServedModel& model, const Ask& ask, http::Exchange& exchange)
    : model_(model),
      ask_(ask),
      exchange_(exchange),
      id_(new_id("resp_")),
      message_id_(new_id("msg_")),
      created_(seconds_since_1970()),
      parts_(std::make_unique<Parts>()) {
  parts_->shown = Json::parse(ask.shown_fields);
}
ResponseReply::~ResponseReply() = default;

Json ResponseReply::response(const char* status) const {
  const bool is_cut = status == std::string_view("incomplete");
  const auto prompt_tokens = static_cast<int64_t>(ask_.prompts[0].size());
  Json out = {{"id", id_},
              {"object", "response"},
              {"created_at", created_},
              {"status", status},
              {"error", nullptr},
              {"incomplete_details", is_cut ? Json{{"reason", "max_output_tokens"}} : Json()},
              {"model", model_.facts.name},
              {"output", parts_->output}};
  out.update(parts_->shown);
  out["system_fingerprint"] = fingerprint(model_.facts.parameters());
  out["usage"] = status_ == std::string_view("in_progress")
                     ? Json()
                     : Json{{"input_tokens", prompt_tokens},
                            {"input_tokens_details", {{"cached_tokens", 0}}},
                            {"output_tokens", made_tokens_},
                            {"output_tokens_details", {{"reasoning_tokens", 0}}},
                            {"total_tokens", prompt_tokens + made_tokens_}};
  out.update(parts_->more);
  return out;
}

void ResponseReply::send_event(const char* type, Json fields) {
  Json event = {{"type", type}, {"sequence_number", events_++}};
  event.update(fields);
  exchange_.send(std::string("event: ") + type + "\ndata: " + json_text(event) + "\n\n");
}

void ResponseReply::open(size_t, size_t, uint64_t seed) {
  seed_ = seed;
  if (!ask_.stream) return;
  streaming_ = true;
  exchange_.begin({200, "text/event-stream; charset=utf-8"});
  send_event("response.created", {{"response", response("in_progress")}});
  send_event("response.in_progress", {{"response", response("in_progress")}});
}

void ResponseReply::prompt(std::vector<RatedToken>) {}

void ResponseReply::token(AnswerState& state, RatedToken token) {
  ++made_tokens_;
  rated_.push_back(std::move(token));
  if (!ask_.stream || state.finish() != Finish::kNone) return;
  const std::string_view all = state.text().text();
  const size_t certain = ask_.tools ? std::max(certain_content(ask_.tools->format, all), sent_) : all.size();
  send_text(std::string(all.substr(sent_, certain - sent_)));
  sent_ = certain;
}

Json ResponseReply::message(const std::string& text, const char* status) const {
  Json part = {
      {"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
  if (ask_.rating.log_probs) part["logprobs"] = chat_log_probs(*model_.tokenizer, rated_)["content"];
  const bool begins = status == std::string_view("in_progress");
  return {{"id", message_id_},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", begins ? Json::array() : Json::array({part})}};
}

void ResponseReply::send_text(const std::string& text) {
  if (text.empty()) return;
  if (!std::exchange(has_message_, true)) {
    send_event("response.output_item.added", {{"output_index", 0}, {"item", message("", "in_progress")}});
    send_event("response.content_part.added", {{"item_id", message_id_},
                                               {"output_index", 0},
                                               {"content_index", 0},
                                               {"part",
                                                {{"type", "output_text"},
                                                 {"text", ""},
                                                 {"annotations", Json::array()},
                                                 {"logprobs", Json::array()}}}});
  }
  send_event("response.output_text.delta", {{"item_id", message_id_},
                                            {"output_index", 0},
                                            {"content_index", 0},
                                            {"delta", text},
                                            {"logprobs", Json::array()}});
}

void ResponseReply::close_message(const std::string& text) {
  Json item = message(text, "completed");
  if (ask_.stream) {
    const Json place = {{"item_id", message_id_}, {"output_index", 0}, {"content_index", 0}};
    Json done = place, part = place;
    done["text"] = text;
    done["logprobs"] = item["content"][0]["logprobs"];
    part["part"] = item["content"][0];
    send_event("response.output_text.done", std::move(done));
    send_event("response.content_part.done", std::move(part));
    send_event("response.output_item.done", {{"output_index", 0}, {"item", item}});
  }
  parts_->output.push_back(std::move(item));
}

void ResponseReply::add_call(const ToolCall& call) {
  Json item = {{"id", new_id("fc_")},        {"type", "function_call"}, {"status", "completed"},
               {"call_id", new_id("call_")}, {"name", call.name},       {"arguments", call.arguments}};
  if (ask_.stream) {
    const size_t index = parts_->output.size();
    Json begun = item, place = {{"item_id", item["id"]}, {"output_index", index}};
    begun["status"] = "in_progress";
    begun["arguments"] = "";
    Json delta = place, done = place;
    delta["delta"] = call.arguments;
    done["name"] = call.name;
    done["arguments"] = call.arguments;
    send_event("response.output_item.added", {{"output_index", index}, {"item", std::move(begun)}});
    send_event("response.function_call_arguments.delta", std::move(delta));
    send_event("response.function_call_arguments.done", std::move(done));
    send_event("response.output_item.done", {{"output_index", index}, {"item", item}});
  }
  parts_->output.push_back(std::move(item));
}

void ResponseReply::close(AnswerState& state, const std::optional<ReceiptDocument>& receipt) {
  const std::string text(state.text().text());
  const auto calls = ask_.tools ? parse_calls(*ask_.tools, text) : std::nullopt;
  const std::string content = calls ? calls->content : text;
  if (ask_.stream) send_text(content.substr(std::min(sent_, content.size())));
  // An answer without text and calls is a message, too.
  if (!calls || !content.empty()) {
    if (ask_.stream && !has_message_) {
      has_message_ = true;
      send_event("response.output_item.added", {{"output_index", 0}, {"item", message("", "in_progress")}});
    }
    close_message(content);
  }
  if (calls)
    for (const ToolCall& call : calls->calls) add_call(call);
  status_ = is_cut(state.finish()) ? "incomplete" : "completed";
  if (state.finish() == Finish::kTime) parts_->more["ended_by"] = kEndedByTime;
  parts_->more["seed"] = seed_;
  if (ask_.return_ids) {
    parts_->more["prompt_token_ids"] = state.prompt();
    parts_->more["token_ids"] = state.made();
  }
  if (receipt) parts_->more["receipt"] = document_json(*receipt);
}

void ResponseReply::finish() {
  Json whole = response(status_);
  if (!ask_.stream) return exchange_.answer(json_response(whole));
  send_event(status_ == std::string_view("incomplete") ? "response.incomplete" : "response.completed",
             {{"response", std::move(whole)}});
  exchange_.end();
}

void ResponseReply::fail(const ApiError& error) {
  if (!streaming_) return exchange_.answer(error_response(error));
  Json failed = response("failed");
  failed["error"] = {{"code", error.code.empty() ? "server_error" : error.code}, {"message", error.message}};
  send_event("response.failed", {{"response", std::move(failed)}});
  exchange_.end();
}

}  // namespace ostro::serve
