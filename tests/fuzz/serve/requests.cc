// Targets of the fuzzer that ask a server: bodies of requests, and bytes on a connection.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>

#include "crashers.h"
#include "mutator.h"
#include "ostro/config/utf8.h"
#include "ostro/http/server.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/ask.h"
#include "ostro/serve/engine_thread.h"
#include "ostro/serve/model_for_test.h"
#include "targets.h"

namespace ostro::fuzz {
namespace {

using namespace serve;

constexpr std::string_view kBodyWords[] = {"\"",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "null",
                                           "true",
                                           "false",
                                           "\\ud800",
                                           "\\u0000",
                                           "\xff",
                                           "\xc3",
                                           "\"prompt\"",
                                           "\"messages\"",
                                           "\"input\"",
                                           "\"n\"",
                                           "\"stop\"",
                                           "\"stream\"",
                                           "\"seed\"",
                                           "\"logprobs\"",
                                           "\"echo\"",
                                           "\"tools\"",
                                           "\"content\"",
                                           "\"role\"",
                                           "\"user\"",
                                           "\"assistant\"",
                                           "\"tool_calls\"",
                                           "\"logit_bias\"",
                                           "\"max_tokens\"",
                                           "\"nonce\"",
                                           "\"receipt\"",
                                           "\"chat_template_kwargs\"",
                                           "\"pooling\"",
                                           "\"encoding_format\"",
                                           "\"a\":",
                                           "[]",
                                           "{}"};

constexpr std::string_view kBodies[] = {
    R"({"prompt": [[1, 2], [3]], "max_tokens": 3, "n": 2, "seed": 1, "logprobs": 2, "echo": true, "temperature": 0.5})",
    R"({"prompt": "the cat", "max_tokens": 4, "stop": ["a", "b"], "top_p": 0.5, "top_k": 3, "min_p": 0.1, "stream": true,
        "stream_options": {"include_usage": true}, "logit_bias": {"5": -1.5}, "presence_penalty": 1, "frequency_penalty": -1})",
    R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
        "function": {"name": "f", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "1", "content": "2"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
        "tool_choice": "auto", "chat_template_kwargs": {"quick": {"a": [false, 1.5]}},
        "max_completion_tokens": 3, "logprobs": true, "top_logprobs": 2, "nonce": "x", "receipt": true})",
    R"({"input": [{"type": "message", "role": "user", "content": "hi"}, {"type": "function_call", "call_id": "c", "name": "f",
        "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": "o"}], "instructions": "i",
        "max_output_tokens": 2, "text": {"format": {"type": "text"}}, "include": ["message.output_text.logprobs"], "store": false})",
    R"({"input": ["a", "the cat"], "model": "test", "encoding_format": "base64", "dimensions": 5, "pooling": "mean"})"};

class KeepingExchange final : public http::Exchange {
 public:
  KeepingExchange() : Exchange({}) {}
  void answer(http::Response response) override {
    status = response.status;
    body = std::move(response.body);
    over.set_value();
  }
  void begin(http::Response head) override { status = head.status; }
  void send(std::string_view bytes) override { body += bytes; }
  void end() override { over.set_value(); }
  bool is_gone() const override { return false; }

  int status = 0;
  std::string body;
  std::promise<void> over;
};

ServedModel chatting_model(int64_t context = 64) {
  io::MemoryFileSystem fs;
  check_ok(io::write_file_atomically(
      fs, "chat_template.jinja",
      "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}[{{ m.role }}] {{ "
      "m.content }}"
      "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}"
      "{% if quick is defined %}{{ quick | tojson }}{% endif %}"));
  ServedModel out = test_model(context);
  check_ok(io::write_file_atomically(fs, "tokenizer.json", out.tokenizer->to_json()));
  out.chat = eval::ChatPrompts::load(fs, "tokenizer.json", *out.tokenizer).value();
  out.tool_format = ToolFormat{"<tool_call>", "</tool_call>"};
  return out;
}

class Bodies final : public Target {
 public:
  Outcome run(uint64_t seed) override {
    Mutator m(seed, kBodyWords);
    static constexpr Reader kReaders[] = {parse_completion, parse_completion, parse_chat, parse_response,
                                          parse_embedding};
    const size_t which = m.below(std::size(kBodies));
    std::string text(kBodies[which]);
    Reader reader = kReaders[m.one_in(8) ? m.below(std::size(kReaders)) : which];
    if (m.one_in(16)) {
      const Crasher& crasher = crashers_[m.below(crashers_.size())];
      text = crasher.body;
      reader = kOfCrashers[crasher.reader];
    }
    const Body body(m.damaged(std::move(text), m.pick(kBodies)));
    (void)body.model();
    ParsedAsk parsed = reader(model_, body, {});
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
      if (error->status < 400 || error->message.empty()) return {"an error without a status or a message"};
      if (nlohmann::json::parse(error_json(*error), nullptr, false).is_discarded())
        return {"an error that is no JSON: " + error->message};
      return {std::nullopt, false, error->message};
    }
    Ask& ask = std::get<Ask>(parsed);
    if (const auto wrong = beyond(ask)) return {wrong};
    return answered(std::move(ask));
  }

  // Of a model whose context has room for all of them.
  std::optional<std::string> known() override {
    constexpr int64_t kContext = 8192;
    ServedModel model = chatting_model(kContext);
    EngineThread engine(model, *receipts_, {});
    for (const Crasher& one : crashers_) {
      ParsedAsk parsed = kOfCrashers[one.reader](model, Body(one.body), {});
      const ApiError* error = std::get_if<ApiError>(&parsed);
      const int status = error != nullptr ? error->status : 200;
      if (status != (one.is_refused ? kBadRequest : 200))
        return one.name + ": " + (error != nullptr ? error->message : "it is taken");
      if (error != nullptr) continue;
      if (const Outcome seen = answered(std::move(std::get<Ask>(parsed)), engine); !seen.accepted)
        return one.name + ": " + seen.wrong.value_or(seen.reason);
    }
    return std::nullopt;
  }

 private:
  using Reader = decltype(&parse_completion);
  static constexpr Reader kOfCrashers[] = {parse_completion, parse_chat, parse_response};

  std::optional<std::string> beyond(const Ask& ask) const {
    const AskLimits limits;
    if (ask.prompts.empty()) return "no prompt";
    if (ask.count < 1 || ask.count > limits.answers) return "a number of answers beyond the limit";
    for (const auto& prompt : ask.prompts)
      for (const int32_t id : prompt)
        if (id < 0 || id >= model_.tokens()) return "an id outside";
    return std::nullopt;
  }
  Outcome answered(Ask ask) { return answered(std::move(ask), engine_); }
  static Outcome answered(Ask ask, EngineThread& engine) {
    const bool streams = ask.stream;
    const auto exchange = std::make_shared<KeepingExchange>();
    if (engine.push({exchange, std::make_shared<const Ask>(std::move(ask)), nullptr})) return {"no room"};
    exchange->over.get_future().wait();
    const int status = exchange->status;
    if (status != 200 && status != kBadRequest)
      return {"status " + std::to_string(status) + ": " + exchange->body};
    if (!config::is_utf8(exchange->body)) return {"an answer that is no text"};
    if ((!streams || status != 200) && nlohmann::json::parse(exchange->body, nullptr, false).is_discarded())
      return {"an answer that is no JSON: " + exchange->body};
    return {std::nullopt, status == 200, exchange->body};
  }

  ServedModel model_ = chatting_model(512);
  io::MemoryFileSystem fs_;
  std::unique_ptr<ReceiptMaker> receipts_ = ReceiptMaker::open(fs_, "", {}).value();
  EngineThread engine_{model_, *receipts_, {}};
  const std::vector<Crasher> crashers_ = crashers();
};

constexpr std::string_view kHttpWords[] = {"\r\n",     "\n",
                                           "\r",       " ",
                                           ":",        "HTTP/1.1",
                                           "HTTP/1.0", "HTTP/9.9",
                                           "GET",      "POST",
                                           "HEAD",     "/",
                                           "?",        "%00",
                                           "%",        "%zz",
                                           "=",        "&",
                                           "Host",     "Content-Length",
                                           "chunked",  "Transfer-Encoding",
                                           "0",        "100",
                                           "ffff",     "close",
                                           "Expect",   "100-continue",
                                           "\xff",     "Upgrade",
                                           "..",       "Connection",
                                           "\r\n\r\n", "5\r\nhello\r\n"};

constexpr std::string_view kRequests[] = {
    "GET /a?b=c&d=%20 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST /v1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    "12\r\n\r\n{\"a\": [1, 2]}",
    "POST /v1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
    "chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\nyou\r\n0\r\n\r\n",
    "HEAD / HTTP/1.0\r\n\r\n",
    "POST /v1 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: "
    "close\r\n\r\nabc"};

class Http final : public Target {
 public:
  Outcome run(uint64_t seed) override {
    Mutator m(seed, kHttpWords);
    const std::string text = m.damaged(std::string(m.pick(kRequests)), m.pick(kRequests));
    const std::string heard = said(text, 1 + m.below(text.size() + 1), m.one_in(2));
    if (!heard.empty() && !heard.starts_with("HTTP/1."))
      return {"an answer that is none: " + heard.substr(0, 80)};
    // The server's times are short, so on a busy machine it may end a connection before it has read from it.
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    std::string honest;
    while (honest.empty() && std::chrono::steady_clock::now() < end)
      honest = said("GET /honest HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000, false);
    if (honest.find("/honest") == std::string::npos) return {"the next request is not answered: " + honest};
    return {std::nullopt, heard.find(" 200 ") < 20, heard.substr(0, 20)};
  }

 private:
  // What comes for these bytes, of which the first `first` are sent alone, until the server ends the
  // connection. `leaves`: this side is closed behind them.
  std::string said(const std::string& text, size_t first, bool leaves) {
    const int s = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(server_->port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string out;
    if (::connect(s, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
      const size_t begin = std::min(first, text.size());
      (void)::send(s, text.data(), begin, MSG_NOSIGNAL);
      (void)::send(s, text.data() + begin, text.size() - begin, MSG_NOSIGNAL);
      char buffer[4096];
      if (leaves) ::shutdown(s, SHUT_WR);
      for (ssize_t n; (n = ::recv(s, buffer, sizeof buffer, 0)) > 0;)
        out.append(buffer, static_cast<size_t>(n));
    }
    ::close(s);
    return out;
  }

  std::unique_ptr<http::Server> server_ =
      http::Server::start(http::parse_address("127.0.0.1:0").value(),
                          [](const http::Request& request) {
                            std::string body = request.method + " " + request.path + " " + request.body;
                            for (const auto& [name, value] : request.query) body += name + "=" + value;
                            return http::Response{.body = std::move(body)};
                          },
                          {.header = std::chrono::milliseconds(20),
                           .body_time = std::chrono::milliseconds(20),
                           .connections = 256,
                           .connections_of_address = 256,
                           .body = 4096})
          .value();
};

}  // namespace

std::unique_ptr<Target> bodies_target() { return std::make_unique<Bodies>(); }
std::unique_ptr<Target> http_target() { return std::make_unique<Http>(); }

}  // namespace ostro::fuzz
