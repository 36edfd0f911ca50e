#include "ostro/eval/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/config/options.h"
#include "ostro/numerics/fp_env.h"

namespace ostro::eval {
namespace {

using Json = nlohmann::ordered_json;

// A request.
struct Request {
  enum class Kind { kContinuation, kText, kPrompt, kChat } kind = Kind::kContinuation;
  Json id;  // null: none
  ContinuationRequest continuation;
  std::string text;
  int64_t stride = 0;
  GenerationRequest generation;
  std::string messages, tools;  // JSON texts; "": none
  bool add_generation_prompt = true;
};

// Reads the keys of an object; nothing_else() is an error for a key that was not read.
class Keys {
 public:
  explicit Keys(const Json& object) : object_(object) {}

  bool has(const char* key) {
    known_.emplace_back(key);
    return object_.contains(key);
  }
  template <typename T>
  Status take(const char* key, bool (Json::*is_type)() const noexcept, const char* type, T& out) {
    if (!has(key)) return {};
    const Json& value = object_[key];
    if (!(value.*is_type)())
      return invalid_argument(fmt::format("\"{}\" is {}, not {}", key, value.dump(), type));
    out = value.get<T>();
    return {};
  }
  Status take_texts(const char* key, std::vector<std::string>& out) {
    if (!has(key)) return {};
    const Json& value = object_[key];
    if (!value.is_array())
      return invalid_argument(fmt::format("\"{}\" is {}, not a list of strings", key, value.dump()));
    for (const Json& item : value) {
      if (!item.is_string())
        return invalid_argument(fmt::format("\"{}\" holds {}, not a string", key, item.dump()));
      out.push_back(item.get<std::string>());
    }
    return {};
  }
  Status nothing_else() const {
    for (const auto& [key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        return invalid_argument(
            fmt::format("unknown key \"{}\"; the nearest is \"{}\"", key, config::nearest_name(key, known_)));
    return {};
  }

 private:
  const Json& object_;
  std::vector<std::string> known_;
};

Status read_request(const Json& json, Request& out) {
  Keys keys(json);
  if (keys.has("id")) out.id = json["id"];
  if (keys.has("continuation")) {
    out.kind = Request::Kind::kContinuation;
    RETURN_IF_ERROR(keys.take("continuation", &Json::is_string, "a string", out.continuation.continuation));
    const bool has_context = keys.has("context");
    RETURN_IF_ERROR(keys.nothing_else());
    if (!has_context) return invalid_argument("\"context\" is missing; it may be \"\"");
    RETURN_IF_ERROR(keys.take("context", &Json::is_string, "a string", out.continuation.context));
  } else if (keys.has("text")) {
    out.kind = Request::Kind::kText;
    RETURN_IF_ERROR(keys.take("text", &Json::is_string, "a string", out.text));
    RETURN_IF_ERROR(keys.take("stride", &Json::is_number_integer, "an integer", out.stride));
  } else if (keys.has("chat")) {
    out.kind = Request::Kind::kChat;
    out.messages = json["chat"].dump();
    if (keys.has("tools")) out.tools = json["tools"].dump();
    RETURN_IF_ERROR(
        keys.take("add_generation_prompt", &Json::is_boolean, "true or false", out.add_generation_prompt));
  } else if (keys.has("prompt") || keys.has("messages")) {
    out.kind = Request::Kind::kPrompt;
    GenerationRequest& g = out.generation;
    int64_t seed = 0;
    if (json.contains("prompt")) {
      RETURN_IF_ERROR(keys.take("prompt", &Json::is_string, "a string", g.prompt));
    } else {
      out.messages = json["messages"].dump();
      if (keys.has("tools")) out.tools = json["tools"].dump();
    }
    RETURN_IF_ERROR(keys.take_texts("until", g.until));
    RETURN_IF_ERROR(keys.take("max_tokens", &Json::is_number_integer, "an integer", g.max_tokens));
    RETURN_IF_ERROR(keys.take("temperature", &Json::is_number, "a number", g.temperature));
    RETURN_IF_ERROR(keys.take("seed", &Json::is_number_integer, "an integer", seed));
    g.seed = static_cast<uint64_t>(seed);
  } else {
    (void)keys.has("context");
    RETURN_IF_ERROR(keys.nothing_else());
    return invalid_argument(
        "a request has \"context\" and \"continuation\", or \"text\", or \"prompt\", or \"messages\", or "
        "\"chat\"");
  }
  return keys.nothing_else();
}

Json error_json(const Json& id, const std::string& message) {
  Json out = Json::object();
  if (!id.is_null()) out["id"] = id;
  out["error"] = message;
  return out;
}

class Batch {
 public:
  Batch(TextModel& model, const std::vector<std::string>& lines) : model_(model), answers_(lines.size()) {
    for (size_t i = 0; i < lines.size(); ++i) {
      requests_.emplace_back();
      const Json json = Json::parse(lines[i], nullptr, /*allow_exceptions=*/false);
      if (!json.is_object()) {
        fail(i, "not a JSON object in UTF-8");
        continue;
      }
      if (const Status read = read_request(json, requests_[i]); !read.ok()) fail(i, read.error().message());
    }
  }

  std::vector<std::string> run(int64_t& failed) {
    continuations();
    texts();
    for (const size_t i : of_kind(Request::Kind::kChat)) {
      const Request& r = requests_[i];
      const auto text = model_.chat().of_messages(r.messages, r.tools, r.add_generation_prompt);
      if (!text.ok()) fail(i, text.error().message());
      if (text.ok()) answer(i, {{"text", *text}});
    }
    for (const size_t i : of_kind(Request::Kind::kPrompt)) {
      const auto made = generated(requests_[i]);
      if (!made.ok()) fail(i, made.error().message());
      if (made.ok())
        answer(
            i,
            {{"text", made->text}, {"tokens", made->tokens}, {"stopped_by", stop_reason_name(made->reason)}});
    }
    failed += failed_;
    std::vector<std::string> out;
    for (const Json& answer : answers_) out.push_back(answer.dump());
    return out;
  }

 private:
  void fail(size_t i, const std::string& message) {
    answers_[i] = error_json(requests_[i].id, message);
    ++failed_;
  }
  void answer(size_t i, const Json& fields) {
    answers_[i] = Json::object();
    if (!requests_[i].id.is_null()) answers_[i]["id"] = requests_[i].id;
    answers_[i].update(fields);
    if (!model_.other_mp().empty()) answers_[i]["mp"] = model_.other_mp();
  }
  Result<GeneratedText> generated(Request& request) {
    if (!request.messages.empty()) {
      ASSIGN_OR_RETURN(request.generation.prompt,
                       model_.chat().of_messages(request.messages, request.tools, true));
    }
    return model_.generate(request.generation);
  }
  // The requests of this kind that are not answered yet.
  std::vector<size_t> of_kind(Request::Kind kind) const {
    std::vector<size_t> out;
    for (size_t i = 0; i < requests_.size(); ++i)
      if (answers_[i].is_null() && requests_[i].kind == kind) out.push_back(i);
    return out;
  }

  // Asks for all requests in one call. If one of them cannot be answered, asks for each alone, so that the
  // others are answered.
  template <typename Ask>
  void together(const std::vector<size_t>& which, const Ask& ask) {
    if (which.empty()) return;
    const Status all = ask(which);
    if (all.ok()) return;
    for (const size_t i : which)
      if (const Status one = which.size() == 1 ? all : ask({i}); !one.ok()) fail(i, one.error().message());
  }

  void continuations() {
    together(of_kind(Request::Kind::kContinuation), [&](const std::vector<size_t>& which) -> Status {
      std::vector<ContinuationRequest> asked;
      for (const size_t i : which) asked.push_back(requests_[i].continuation);
      ASSIGN_OR_RETURN(const auto scores, model_.continuations(asked, model_.knows_greedy()));
      for (size_t k = 0; k < which.size(); ++k)
        answer(which[k], {{"log_prob", scores[k].log_prob},
                          {"greedy", scores[k].greedy ? Json(*scores[k].greedy) : Json()},
                          {"tokens", scores[k].tokens}});
      return {};
    });
  }

  void texts() {
    std::vector<int64_t> strides;
    for (const size_t i : of_kind(Request::Kind::kText)) strides.push_back(requests_[i].stride);
    std::sort(strides.begin(), strides.end());
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    for (const int64_t stride : strides) {
      std::vector<size_t> with_stride;
      for (const size_t i : of_kind(Request::Kind::kText))
        if (requests_[i].stride == stride) with_stride.push_back(i);
      together(with_stride, [&](const std::vector<size_t>& which) -> Status {
        std::vector<std::string> asked;
        for (const size_t i : which) asked.push_back(requests_[i].text);
        ASSIGN_OR_RETURN(const auto scores, model_.texts(asked, stride));
        for (size_t k = 0; k < which.size(); ++k)
          answer(
              which[k],
              {{"log_prob", scores[k].log_prob}, {"tokens", scores[k].tokens}, {"bytes", scores[k].bytes}});
        return {};
      });
    }
  }

  TextModel& model_;
  std::vector<Request> requests_;
  std::vector<Json> answers_;
  int64_t failed_ = 0;
};

}  // namespace

std::vector<std::string> answer_requests(TextModel& model, const std::vector<std::string>& lines,
                                         int64_t& failed) {
  const numerics::HostArithmetic guard;
  return Batch(model, lines).run(failed);
}

}  // namespace ostro::eval
