// The steps tokenizer and tokens.
#include <fmt/format.h>

#include "ostro/data/sources/text_source.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/prepare/store/build.h"
#include "ostro/prepare/tokenizer/session.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::lab {

Result<std::string> make_tokenizer(const Work& work, const std::string& folder) {
  const Step& step = work.step;
  tokenizer::TrainOptions options;
  options.special_tokens = texts_of(step, "special_tokens");
  if (std::find(options.special_tokens.begin(), options.special_tokens.end(), options.eos_token) ==
      options.special_tokens.end())
    options.special_tokens.insert(options.special_tokens.begin(), options.eos_token);
  const int64_t size = std::stoll(text_of(step, "vocab_size"));
  const int64_t least = 256 + static_cast<int64_t>(options.special_tokens.size());
  if (size < least || size >= (1 << 24))
    return invalid_argument(
        fmt::format("vocab_size is {}: use {} (256 bytes and {} special tokens) to 16777215", size, least,
                    options.special_tokens.size()));
  options.vocab_size = static_cast<uint32_t>(size);
  options.threads = work.services.build.threads;
  options.progress = work.services.build.tokenizer_progress;
  const std::string& pattern = text_of(step, "pattern");
  bool is_known = false;
  std::string known;
  for (const tokenizer::KnownPattern& p : tokenizer::known_patterns()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
    if (p.name != pattern) continue;
    options.splitter = p.splitter;
    is_known = true;
  }
  if (!is_known) return invalid_argument(fmt::format("pattern is {}: use one of {}", pattern, known));
  io::FileSystem& fs = work.context.fs;
  ASSIGN_OR_RETURN(std::vector<data::SourceFile> files, files_of(work, step.inputs.at("from")));
  ASSIGN_OR_RETURN(auto verdicts, verdicts_of(work, step.inputs.at("from")));
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer trained,
                   tokenizer::train(data::texts_of_sources(fs, std::move(files), text_of(step, "text_key"),
                                                           "text_key", nullptr, std::move(verdicts)),
                                    options));
  const std::string path = io::join_path(folder, "tokenizer.json");
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, trained, path));
  return io::file_sha256(fs, path);
}

Result<data::DataOptions> tokens_options(const Work& work, const std::string& folder) {
  data::DataOptions options;
  ASSIGN_OR_RETURN(options.train_urls, urls_of(work, work.step.inputs.at("from")));
  ASSIGN_OR_RETURN(options.validation_urls, urls_of(work, work.step.inputs.at("held_out")));
  options.tokenizer = io::join_path(work.made_by(work.input("tokenizer")).folder, "tokenizer.json");
  if (std::string rows = verdicts_file(work, work.step.inputs.at("from")); !rows.empty())
    options.rows = std::move(rows);
  options.text_key = text_of(work.step, "text_key");
  options.cache_dir = folder;
  RETURN_IF_ERROR(options.validate());
  return options;
}

Result<std::string> make_tokens(const Work& work, const std::string& folder) {
  io::FileSystem& fs = work.context.fs;
  ASSIGN_OR_RETURN(const data::DataOptions options, tokens_options(work, folder));
  ASSIGN_OR_RETURN(const prepare::Session session,
                   prepare::open_session(fs, options, /*seq_len=*/1, "",
                                         prepare::MissingTokenizer::kIsAnError, work.services.build));
  ASSIGN_OR_RETURN(const data::StoreLedger ledger,
                   prepare::build_store(fs, session.options, session.components[0], session.tokenizer,
                                        work.services.build));
  return ledger.hash();
}

}  // namespace ostro::lab
