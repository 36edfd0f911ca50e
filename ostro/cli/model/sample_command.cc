// ostro sample
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/cli/main/commands.h"
#include "ostro/eval/score/chat_prompts.h"
#include "ostro/infer/generate.h"
#include "ostro/io/read/line_reader.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/tokenizer/model/text_ends.h"
#include "ostro/trained/sample_model.h"

namespace ostro::cli {
namespace {

// Stands for no prompt, because an empty prompt begins a new document.
constexpr const char* kNoPrompt = "\x01";

// Tokens of an answer where --max_new_tokens is not given: as many as ostro.Model.generate makes.
constexpr int64_t kMaxNewTokens = 256;

struct Request {
  std::string checkpoint, prompt = kNoPrompt, batch, tokenizer;
  infer::SampleOptions options;
  bool json = false, unchecked = false, stream = false, chat = false;
  std::optional<int64_t> keep_bytes;
  trained::UseOptions use;
};

// The lines of the file --batch, or the prompt.
Result<std::vector<std::string>> prompts_of(io::FileSystem& fs, const Request& request) {
  if (request.batch.empty()) return std::vector<std::string>{request.prompt};
  ASSIGN_OR_RETURN(io::LineReader lines, io::LineReader::open(fs, request.batch));
  std::vector<std::string> out;
  for (std::string_view line;;) {
    ASSIGN_OR_RETURN(const bool more, lines.next(line));
    if (!more) break;
    out.emplace_back(line);
  }
  if (out.empty()) return invalid_argument(fmt::format("--batch {}: no line, so no prompt", request.batch));
  return out;
}

// The template writes the special tokens itself, also the one at the beginning.
Result<std::vector<int32_t>> chat_ids(const eval::ChatPrompts& chat, const tokenizer::Tokenizer& tokenizer,
                                      const std::string& message) {
  ASSIGN_OR_RETURN(const std::string text, chat.of_user(message));
  const std::vector<uint32_t> ids = tokenizer.encode(text);
  if (ids.empty()) return invalid_argument("the chat template makes an empty prompt of the message");
  return std::vector<int32_t>(ids.begin(), ids.end());
}

// Prints the new text of the one prompt of a command as its tokens are made. What a token adds to the text
// can depend on those before it (a space at the beginning is dropped by some tokenizers), so the whole is
// decoded each time and what is new is printed.
class TextPrinter {
 public:
  static Result<TextPrinter> create(const tokenizer::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
    TextPrinter out(tokenizer);
    out.so_far_.assign(ids.begin(), ids.end());
    ASSIGN_OR_RETURN(const std::string text,
                     tokenizer.decode_bytes(out.so_far_, /*skip_special_tokens=*/true));
    out.printed_ = text.size();
    return out;
  }

  // False when the reader has closed standard output, or writing failed.
  bool print(int32_t token) {
    so_far_.push_back(static_cast<uint32_t>(token));
    const auto text = tokenizer_->decode_bytes(so_far_, /*skip_special_tokens=*/true);
    written_ = text.ok() ? write_stdout(std::string_view(*text).substr(std::min(printed_, text->size())))
                         : Status(text.error());
    if (text.ok()) printed_ = text->size();
    return written_.ok() && !stdout_closed();
  }
  const Status& written() const { return written_; }

 private:
  explicit TextPrinter(const tokenizer::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  const tokenizer::Tokenizer* tokenizer_;
  std::vector<uint32_t> so_far_;
  size_t printed_ = 0;
  Status written_;
};

std::string gigabytes(int64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9); }

// What a model that is read layer by layer has read and made, on standard error: a line that is redrawn where
// nothing else is written meanwhile, and one at the end.
class StreamLine {
 public:
  explicit StreamLine(bool draws) : draws_(draws) {}

  void show(const trained::StreamCounts& c) {
    if (c.over) return end(c);
    if (draws_ && output_.is_due(false))
      output_.show(fmt::format("{} tokens, layer {} of {}; {} read, {:.3g} tokens/s", c.tokens, c.layer,
                               c.layers, gigabytes(c.bytes_read), c.tokens_per_second));
  }

 private:
  void end(const trained::StreamCounts& c) {
    if (draws_) output_.end();
    fmt::print(stderr,
               "{}{} tokens in {} sweeps over {} layers; {} bytes read, {} of weights kept, {:.3g} tokens/s, "
               "{:.2f} GB/s in a sweep, hashes checked at {:.2f} GB/s\n",
               draws_ ? "" : "\n", c.tokens, c.sweeps, c.layers, c.bytes_read, gigabytes(c.bytes_kept),
               c.tokens_per_second, c.sweep_speed / 1e9, c.hash_speed / 1e9);
  }

  bool draws_;
  ProgressOutput output_ = ProgressOutput::standard_error();
};

Status write_json(const trained::SampleModel& model, const std::string& prompt,
                  const std::vector<int32_t>& ids, const std::vector<int32_t>& made) {
  ASSIGN_OR_RETURN(const std::string text,
                   model.tokenizer->decode(std::vector<uint32_t>(made.begin(), made.end()), true));
  nlohmann::ordered_json out = {{"prompt", prompt}, {"prompt_ids", ids}, {"ids", made}, {"text", text}};
  if (!model.other_mp.empty()) out["mp"] = model.other_mp;
  // An argument need not be UTF-8.
  return write_stdout(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Status sample(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const std::vector<std::string> prompts, prompts_of(context.fs, request));
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  const bool as_text = !request.json && request.batch.empty();
  StreamLine line(!as_text);
  trained::SampleModel model;
  const trained::Trust trust = trained::trust(request.unchecked);
  ASSIGN_OR_RETURN(
      model,
      request.stream
          ? trained::open_streamed(context, request.checkpoint, request.tokenizer, trust, request.use,
                                   request.keep_bytes, [&](const trained::StreamCounts& c) { line.show(c); })
          : trained::load_resident(context, request.checkpoint, request.tokenizer, trust, request.use));
  const tokenizer::Tokenizer& tokenizer = *model.tokenizer;
  eval::ChatPrompts chat;
  if (request.chat) {
    ASSIGN_OR_RETURN(chat, eval::ChatPrompts::load(context.fs, model.tokenizer_path, tokenizer));
  }
  std::vector<std::vector<int32_t>> ids;
  int64_t longest = 0;
  for (const std::string& prompt : prompts) {
    ASSIGN_OR_RETURN(std::vector<int32_t> one, request.chat ? chat_ids(chat, tokenizer, prompt)
                                                            : tokenizer::prompt_ids(tokenizer, prompt));
    const auto length = static_cast<int64_t>(one.size());
    if (length >= model.context)
      return invalid_argument(fmt::format(
          "{} has {} tokens; the model's context is {}",
          request.batch.empty() ? "--prompt"
                                : fmt::format("--batch {}: line {}", request.batch, ids.size() + 1),
          length, model.context));
    longest = std::max(longest, length);
    ids.push_back(std::move(one));
  }
  const int64_t room =
      std::max<int64_t>(2, longest + std::min(model.context - longest, request.options.max_new_tokens));
  infer::SampleOptions options = request.options;
  options.tokens = tokenizer.vocab_size();
  ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(tokenizer));
  options.stops.assign(ends.stops.begin(), ends.stops.end());

  ASSIGN_OR_RETURN(TextPrinter printer, TextPrinter::create(tokenizer, ids[0]));
  if (as_text && !request.chat) RETURN_IF_ERROR(write_stdout(prompts[0]));
  ASSIGN_OR_RETURN(const auto made,
                   model.generate(*engine, ids, options, room,
                                  as_text ? [&](int32_t token) { return printer.print(token); }
                                          : std::function<bool(int32_t)>()));
  RETURN_IF_ERROR(printer.written());
  if (stdout_closed()) return {};
  for (size_t i = 0; i < made.size(); ++i) {
    const bool ended = !made[i].empty() && is_stop(options, made[i].back());
    if (!ended && static_cast<int64_t>(made[i].size()) < options.max_new_tokens)
      fmt::print(stderr, "{}(stopped: the model's context of {} tokens is full)\n", as_text ? "\n" : "",
                 model.context);
    if (!as_text) RETURN_IF_ERROR(write_json(model, prompts[i], ids[i], made[i]));
  }
  return as_text ? write_stdout("\n") : Status();
}

}  // namespace

int sample_command(Args args) {
  Request request;
  request.options.max_new_tokens = kMaxNewTokens;
  int64_t seed = 0;
  args.summary(
      "Continues a text, until a token that ends one or the number of tokens. The same seed gives the same "
      "text.");
  args.option("--checkpoint", &request.checkpoint, "K", trained::kWhereHelp, Args::kRequired);
  args.option("--prompt", &request.prompt, "S", "the text to continue; empty: a new document");
  args.option("--batch", &request.batch, "FILE",
              "instead of --prompt: each line of the file is a prompt; prints a JSON object for each");
  args.flag("--chat", &request.chat,
            "each prompt is a user's message: the model's chat template makes the prompt of it");
  args.option(
      "--max_new_tokens", &request.options.max_new_tokens, "N",
      fmt::format("tokens to add at most (default {}); fewer where the model's context is full before",
                  kMaxNewTokens));
  args.option("--temperature", &request.options.temperature, "t",
              "0: always the most likely token; 1: as the model's probabilities");
  args.option("--seed", &seed, "s", "of the random choices");
  args.option("--tokenizer", &request.tokenizer, "T",
              "tokenizer.json, when the checkpoint is not in its run");
  args.option("--mp", &request.use.mp, "P", trained::kUseMpHelp);
  args.option("--seq_len", &request.use.seq_len, "N", trained::kUseSeqLenHelp);
  args.flag("--unchecked", &request.unchecked, trained::kUncheckedHelp);
  args.flag(
      "--stream_weights", &request.stream,
      "the weights stay in the checkpoint and are read layer by layer, of a mixture only the experts that "
      "are used: for a model larger than memory. The prompts of --batch share what is read");
  args.option(
      "--keep_bytes", &request.keep_bytes, "BYTES",
      "--stream_weights: weights of at most so many bytes stay in memory (default: half of what is free)");
  args.flag("--json", &request.json, "print one JSON object with token ids, at the end");
  args.device();
  if (const auto code = args.parse()) return *code;
  if ((request.prompt == kNoPrompt) == request.batch.empty())
    return report_error(invalid_argument("name a text with --prompt, or a file of prompts with --batch"));
  if (request.keep_bytes && (!request.stream || *request.keep_bytes < 0))
    return report_error(invalid_argument(
        fmt::format("--keep_bytes {}: use 0 or more, together with --stream_weights", *request.keep_bytes)));
  if (request.options.max_new_tokens < 0)
    return report_error(
        invalid_argument(fmt::format("--max_new_tokens {}: use 0 or more", request.options.max_new_tokens)));
  if (!(request.options.temperature >= 0))
    return report_error(
        invalid_argument(fmt::format("--temperature {}: use 0 or more", request.options.temperature)));
  request.options.seed = static_cast<uint64_t>(seed);
  return exit_after(sample(args.context(), request));
}

}  // namespace ostro::cli
