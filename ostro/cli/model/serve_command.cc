// ostro serve
#include <fmt/core.h>

#include <chrono>

#include "ostro/cli/main/commands.h"
#include "ostro/io/files/leased_region.h"
#include "ostro/io/files/path.h"
#include "ostro/run/notice/signals.h"
#include "ostro/serve/follow/follow.h"
#include "ostro/serve/model_server.h"
#include "ostro/serve/options/opened_options.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/shared/waits.h"

namespace ostro::cli {
namespace {

struct ServeAsked {
  std::string checkpoint, tokenizer;
  serve::ServeOptions options;
  int64_t drain = 30;
  int64_t waiting_seconds = 600, running_seconds = 3600;
  double step_ms = 50, key_share = 75;
  std::vector<std::string> adapters;
  std::optional<int64_t> keep_bytes;
  bool stream = false, unchecked = false, follow = false, share_prefixes = false;
  trained::UseOptions use;
};

std::string where(const http::Address& address, int port) {
  const std::string text = http::address_text(address, port);
  return address.is_unix() ? text : "http://" + text + "/v1";
}

// Weights that are still the files of their checkpoint become memory of the process, in huge pages, when the
// first answers are out.
class Settling {
 public:
  void look() {
    if (is_done_ || std::chrono::steady_clock::now() < at_) return;
    io::settle_regions();
    is_done_ = true;
  }

 private:
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool is_done_ = false;
};

// Until a signal comes. A server that cannot listen, sign or keep receipts is told before a model is loaded.
Status serve_model(const Context& context, const ServeAsked& request) {
  ASSIGN_OR_RETURN(const auto adapters, serve::parse_adapters(request.adapters, "--adapter"));
  ASSIGN_OR_RETURN(const http::Address address, http::parse_address_or_path(request.options.listen));
  ASSIGN_OR_RETURN(serve::OpenedOptions opened, serve::open_options(context.fs, request.options));
  const run::StopSignals signals;
  serve::ServerLimits limits;
  limits.waiting = static_cast<size_t>(request.options.waiting);
  limits.step_seconds = request.step_ms / 1000;
  limits.share_prefixes = request.share_prefixes;
  limits.key_share = request.key_share;
  limits.times = {std::chrono::seconds(request.waiting_seconds),
                  std::chrono::seconds(request.running_seconds)};
  std::unique_ptr<serve::ModelServer> server;
  {
    const Waits for_its_threads;
    ASSIGN_OR_RETURN(server, serve::ModelServer::start(address, std::move(opened.keys), limits));
  }
  const auto load = [&]() -> Result<std::vector<std::unique_ptr<serve::ServedModel>>> {
    if (request.stream) {
      std::vector<std::unique_ptr<serve::ServedModel>> out;
      ASSIGN_OR_RETURN(
          auto one, serve::load_streamed(context, request.checkpoint, request.tokenizer,
                                         trained::trust(request.unchecked), request.use, request.keep_bytes,
                                         request.options.running, request.options.cache_pages));
      out.push_back(std::move(one));
      return out;
    }
    return serve::load_with_adapters(context, request.checkpoint, request.tokenizer,
                                     trained::trust(request.unchecked), request.use, adapters,
                                     request.options.running, request.options.cache_pages);
  };
  ASSIGN_OR_RETURN(auto models, load());
  const serve::ModelFacts facts = models[0]->facts;
  std::optional<serve::Follower> follower;
  if (request.follow) {
    const auto serve_newest = [&](const serve::ServedCheckpoint& served) -> Result<serve::ServedCheckpoint> {
      ASSIGN_OR_RETURN(auto next, load());
      serve::ServedCheckpoint out{io::base_name(next[0]->checkpoint), next[0]->facts.state};
      if (out.state != served.state) RETURN_IF_ERROR(server->replace(std::move(next)));
      return out;
    };
    ASSIGN_OR_RETURN(
        follower, serve::Follower::create(context.fs, request.checkpoint,
                                          {io::base_name(models[0]->checkpoint), facts.state}, serve_newest));
  }
  RETURN_IF_ERROR(server->serve(std::move(models), std::move(opened.receipts)));
  RETURN_IF_ERROR(write_stdout(
      fmt::format("{} serves {}, state {}\n", where(address, server->port()), facts.name, facts.state)));
  // A thread of the engine may get the signal; then no wait here ends by it.
  Waits waits;
  Settling settling;
  while (!signals.stop_requested()) {
    waits.for_time(std::chrono::milliseconds(200));
    settling.look();
    if (follower && follower->look()) settling = {};
    server->drop_earlier();
  }
  if (!server->drain(std::chrono::seconds(request.drain)))
    return io_error(
        fmt::format("--drain {}: requests were not answered in this time, and were ended", request.drain));
  return {};
}

}  // namespace

int serve_command(Args args) {
  ServeAsked request;
  args.summary(
      "Answers OpenAI's API over HTTP with a trained model, until Ctrl-C or SIGTERM. What a request gets is "
      "a\n"
      "function of checkpoint, request and seed; a receipt (\"receipt\": true) lets anyone check it with\n"
      "ostro verify --receipt. docs/guide/serve.md has the fields of requests.");
  args.positional("MODEL", &request.checkpoint, trained::kWhereHelp);
  args.option("--listen", &request.options.listen, "HOST:PORT",
              "where to listen (default 127.0.0.1:8080; port 0: one that is free), or unix:PATH; an address "
              "that other\nmachines reach needs --api_keys");
  args.option("--api_keys", &request.options.api_keys, "FILE",
              "requests have to bring one of these keys; FILE has their hashes, and is read again for each");
  args.option("--tokenizer", &request.tokenizer, "T",
              "tokenizer.json, when the checkpoint is not in its run");
  args.option("--mp", &request.use.mp, "P", trained::kUseMpHelp);
  args.option("--seq_len", &request.use.seq_len, "N", trained::kUseSeqLenHelp);
  args.option(
      "--adapter", &request.adapters, "NAME=DIR",
      "also serve the model with this adapter (LoRA), as MODEL:NAME: a directory of PEFT's, or a run "
      "or checkpoint\nthat trained one on this model; may be repeated. The model and adapters of one shape "
      "share --running,\n--cache_pages and --waiting");
  args.flag(
      "--stream_weights", &request.stream,
      "the weights stay in the checkpoint and are read layer by layer, of a mixture only the experts that "
      "are used:\nfor a model larger than memory. Answers that are made at the same time share what is read");
  args.option(
      "--keep_bytes", &request.keep_bytes, "BYTES",
      "--stream_weights: weights of at most so many bytes stay in memory (default: half of what is free)");
  args.flag("--unchecked", &request.unchecked, trained::kUncheckedHelp);
  args.option(
      "--receipts", &request.options.receipts, "FOLDER",
      "keep the receipts that are given in FOLDER/receipts.jsonl, each with the hash of the one before");
  args.option("--sign", &request.options.sign, "KEY", "sign receipts with this private key of Ed25519 (PEM)");
  args.option("--running", &request.options.running, "N",
              "answers that the model makes at the same time (default 16)");
  args.option(
      "--cache_pages", &request.options.cache_pages, "N",
      "memory of keys and values, in pages of 128 positions, of all answers and of beginnings that are "
      "kept\n(default: each answer has room for a whole context)");
  args.flag("--share_prefixes", &request.share_prefixes,
            "kept beginnings serve requests of every key; without it, those of the key that asked first");
  args.option(
      "--step_ms", &request.step_ms, "MS",
      "how long a step of the model may take that reads prompts while answers go on; it may always take "
      "four times as long as one of 16 rows; no answer depends on it (default 50)");
  args.flag("--follow", &request.follow,
            "MODEL is a run that goes on: serve each new checkpoint. A request stays with the one that it "
            "began with");
  args.option("--waiting", &request.options.waiting, "N",
              "requests that may wait for the model; more get 429 (default 64)");
  args.option("--waiting_seconds", &request.waiting_seconds, "SECONDS",
              "how long a request may wait until its first answer begins; then it gets 503 (default 600)");
  args.option("--running_seconds", &request.running_seconds, "SECONDS",
              "how long a request may run; then its answers end with what they have (default 3600)");
  args.option("--key_share", &request.key_share, "PERCENT",
              "of --waiting and of --running, what one of several keys may have (default 75)");
  args.option("--drain", &request.drain, "SECONDS",
              "at the end, how long requests that run may go on (default 30)");
  args.device();
  if (const auto code = args.parse()) return *code;
  if (const Status allowed = serve::check_options(request.options); !allowed.ok())
    return report_error(allowed.error());
  if (request.keep_bytes && (!request.stream || *request.keep_bytes < 0))
    return report_error(invalid_argument(
        fmt::format("--keep_bytes {}: use 0 or more, together with --stream_weights", *request.keep_bytes)));
  if (request.stream && !request.adapters.empty())
    return report_error(
        invalid_argument("--adapter: shares parameters that are in memory, and --stream_weights leaves them "
                         "in the checkpoint; "
                         "leave one of them out"));
  if (request.follow && !request.adapters.empty())
    return report_error(invalid_argument(
        "--adapter: is of one state of the model, and --follow serves others; leave one of them out"));
  if (!(request.step_ms > 0))
    return report_error(invalid_argument(fmt::format("--step_ms {}: use more than 0", request.step_ms)));
  constexpr int64_t kMostDays = 30, kMostTime = kMostDays * 86'400;
  for (const auto& [name, seconds] : {std::pair("--waiting_seconds", request.waiting_seconds),
                                      std::pair("--running_seconds", request.running_seconds)})
    if (seconds < 1 || seconds > kMostTime)
      return report_error(
          invalid_argument(fmt::format("{} {}: use 1 to {} ({} days)", name, seconds, kMostTime, kMostDays)));
  if (!(request.key_share > 0 && request.key_share <= 100))
    return report_error(
        invalid_argument(fmt::format("--key_share {}: use a percent above 0, up to 100", request.key_share)));
  constexpr int64_t kMostSeconds = 86'400;
  if (request.drain < 0 || request.drain > kMostSeconds)
    return report_error(
        invalid_argument(fmt::format("--drain {}: use 0 to {}", request.drain, kMostSeconds)));
  return exit_after(serve_model(args.context(), request));
}

}  // namespace ostro::cli
