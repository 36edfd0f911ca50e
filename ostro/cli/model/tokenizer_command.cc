// ostro tokenizer train | encode | decode
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "ostro/base/machine.h"
#include "ostro/cli/main/commands.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/data/sources/text_source.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/model/id_text.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::cli {
namespace {

// The files that globs, files and directories name, each once.
Result<std::vector<data::SourceFile>> input_files(io::FileSystem& fs,
                                                  const std::vector<std::string>& inputs) {
  ASSIGN_OR_RETURN(const data::FoundSources found,
                   data::find_sources(fs, {inputs, {}}, {.train = "--input"}));
  return found.all();
}

// That a file can be written there, which is better known before training than after it.
Status check_writable(io::FileSystem& fs, const std::string& path) {
  const std::string probe = path + ".probe";
  const auto made = fs.create(probe);
  if (!made.ok())
    return invalid_argument(fmt::format(
        "--out {}: nothing can be written there ({}); name a file in a folder that is there and is yours",
        path, made.error().message()));
  return fs.remove(probe);
}

std::string pattern_names() {
  std::string names;
  for (const tokenizer::KnownPattern& known : tokenizer::known_patterns())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  return names;
}

int train_tokenizer(Args args) {
  std::vector<std::string> inputs, special_tokens;
  int64_t vocab_size = 0, max_distinct_mb = 512;
  std::optional<int64_t> wanted_threads;
  std::string out, pattern = "llama3", text_key = "text";
  args.summary(
      "Trains a byte-level BPE tokenizer. The result depends on the texts, the size, the pattern and\n"
      "the special tokens alone: not on the order of files, threads or machine.");
  args.option(
      "--input", &inputs, "GLOB",
      "files, directories or globs (quote them), read as data.train_urls: a .jsonl, .ndjson or .json (also "
      ".gz, .zst) holds a document a line, a .parquet one a row, a text file is one",
      Args::kRequired);
  args.option("--text_key", &text_key, "NAME",
              "field of a line, or column, that holds the text (default text)");
  args.option("--vocab_size", &vocab_size, "N", "tokens, with the 256 bytes and the special tokens",
              Args::kRequired);
  args.option("--out", &out, "FILE", "the tokenizer.json to write", Args::kRequired);
  args.option(
      "--special_tokens", &special_tokens, "TOKEN",
      "more special tokens, as of a chat template (quote them: '<|user|>' '[INST]'): ids 1, 2, ... behind "
      "<|endoftext|>, or 0, 1, ... when that is one of them");
  args.option("--pattern", &pattern, "NAME",
              "how text is cut into pieces: " + pattern_names() + " (default llama3)");
  args.option("--threads", &wanted_threads, "N",
              "threads for counting (default: OSTRO_THREADS, else one a core); changes only the time");
  args.option(
      "--max_distinct_mb", &max_distinct_mb, "N",
      "fail when the text has more MB of distinct pieces (default 512); each takes about 30 MB of memory");
  if (const auto code = args.parse()) return *code;

  tokenizer::TrainOptions options;
  if (std::count(special_tokens.begin(), special_tokens.end(), options.eos_token) == 0)
    special_tokens.insert(special_tokens.begin(), options.eos_token);
  options.special_tokens = special_tokens;
  const int64_t least = 256 + static_cast<int64_t>(special_tokens.size());
  if (vocab_size < least || vocab_size >= (1 << 24))
    return report_error(
        invalid_argument(fmt::format("--vocab_size {}: use {} (256 bytes and {} special tokens) to 16777215",
                                     vocab_size, least, special_tokens.size())));
  if (wanted_threads && (*wanted_threads < 1 || *wanted_threads > 1024))
    return report_error(invalid_argument(fmt::format("--threads {}: use 1 to 1024", *wanted_threads)));
  const Result<int> threads =
      wanted_threads ? Result<int>(static_cast<int>(*wanted_threads)) : default_threads();
  if (!threads.ok()) return report_error(threads.error());
  if (max_distinct_mb < 1 || max_distinct_mb > 4000)
    return report_error(
        invalid_argument(fmt::format("--max_distinct_mb {}: use 1 to 4000", max_distinct_mb)));
  bool is_known = false;
  for (const tokenizer::KnownPattern& known : tokenizer::known_patterns()) {
    if (known.name != pattern) continue;
    options.splitter = known.splitter;
    is_known = true;
  }
  if (!is_known)
    return report_error(
        invalid_argument(fmt::format("--pattern {}: use one of {}", pattern, pattern_names())));
  io::FileSystem& fs = args.context().fs;
  Result<std::vector<data::SourceFile>> files = input_files(fs, inputs);
  if (!files.ok()) return report_error(files.error());

  options.vocab_size = static_cast<uint32_t>(vocab_size);
  options.threads = *threads;
  options.max_distinct_bytes = static_cast<uint64_t>(max_distinct_mb) * 1'000'000;
  if (const Status writable = check_writable(fs, out); !writable.ok()) return report_error(writable.error());
  const size_t file_count = files->size();
  data::TextProgress read;
  TokenizerProgressLine line;
  options.progress = [&](tokenizer::TrainProgress p) {
    if (p.stage == tokenizer::TrainProgress::Stage::kCounting) {
      p.done = static_cast<uint64_t>(read.bytes_done);
      p.total = static_cast<uint64_t>(read.bytes_total);
    }
    line.draw(p);
  };
  const auto trained =
      tokenizer::train(data::texts_of_sources(fs, std::move(*files), text_key, "--text_key", &read), options);
  line.end();
  if (!trained.ok()) return report_error(trained.error());
  if (const Status saved = tokenizer::save_tokenizer(fs, *trained, out); !saved.ok())
    return report_error(saved.error());
  std::printf("%s: %u tokens from %zu files\n", out.c_str(), trained->vocab_size(), file_count);
  return kExitOk;
}

int encode(Args args) {
  std::string path;
  bool json = false, special = false;
  args.summary("Reads text from standard input and prints token ids: a line of ids for every line of text.");
  args.option("--tokenizer", &path, "T", "tokenizer.json, SentencePiece .model, or a directory with one",
              Args::kRequired);
  args.flag("--json", &json, "all of the input is one document; print a JSON list");
  args.flag("--add_special_tokens", &special, "add the tokens that the tokenizer puts around a document");
  if (const auto code = args.parse()) return *code;

  const auto loaded = tokenizer::load_tokenizer(args.context().fs, path);
  if (!loaded.ok()) return report_error(loaded.error());
  const Result<std::string> text = read_stdin();
  if (!text.ok()) return report_error(text.error());
  const tokenizer::EncodeOptions options{.add_special_tokens = special};
  return exit_after(write_stdout(tokenizer::encode_text(*loaded, *text, json, json, options)));
}

int decode(Args args) {
  std::string path;
  bool skip = false;
  args.summary(
      "Reads token ids from standard input, a document a line (1 2 3 or [1, 2, 3]), and prints each\n"
      "document's text and a newline.");
  args.option("--tokenizer", &path, "T", "tokenizer.json, SentencePiece .model, or a directory with one",
              Args::kRequired);
  args.flag("--skip_special_tokens", &skip, "leave special tokens out");
  if (const auto code = args.parse()) return *code;

  const auto loaded = tokenizer::load_tokenizer(args.context().fs, path);
  if (!loaded.ok()) return report_error(loaded.error());
  const Result<std::string> lines = read_stdin();
  if (!lines.ok()) return report_error(lines.error());
  const Result<std::string> text = tokenizer::decode_lines(*loaded, *lines, skip);
  if (!text.ok()) return report_error(text.error());
  return exit_after(write_stdout(*text));
}

constexpr Command kTokenizerVerbs[] = {
    {"train", "learn a vocabulary from texts", train_tokenizer},
    {"encode", "text on standard input to token ids", encode},
    {"decode", "token ids on standard input to text", decode},
};

}  // namespace

int tokenizer_command(Args args) { return run_verb(std::move(args), kTokenizerVerbs); }

}  // namespace ostro::cli
