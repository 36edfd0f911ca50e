// ostro data baseline
#include <fmt/core.h>

#include "ostro/batches/loader/data_set.h"
#include "ostro/cli/main/commands.h"
#include "ostro/corpus_check/baseline.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/prepare/tokenizer/trained_tokenizer.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

Status run(io::FileSystem& fs, const train::TrainConfig& config, const std::string& text_file, bool json) {
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer, prepare::open_tokenizer(fs, config.data));
  ASSIGN_OR_RETURN(const auto stores, batches::DataSet::open(fs, config.data, tokenizer));
  if (stores->parts().size() > 1)
    return invalid_argument("data.components names several data sets; leave one, whose baseline is wanted");
  const auto& store = stores->parts()[0].store;
  ASSIGN_OR_RETURN(const corpus_check::Baseline b, corpus_check::unigram_baseline(*store));
  if (!text_file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, corpus_check::held_out_text(*store, tokenizer));
    RETURN_IF_ERROR(io::write_file_atomically(fs, text_file, text));
  }
  return write_stdout(
      json ? fmt::format("{{\"tokens\": {}, \"bytes\": {}, \"train_tokens_per_byte\": {:.6f}, "
                         "\"unigram_bits_per_token\": {:.6f}, "
                         "\"unigram_bits_per_byte\": {:.6f}, \"uniform_bits_per_byte\": {:.6f}}}\n",
                         b.tokens, b.bytes, b.train_tokens_per_byte, b.bits_per_token, b.bits_per_byte,
                         b.uniform_bits_per_byte)
           : fmt::format("held out           {} tokens, {} bytes of text\n"
                         "all tokens alike   {:.4f} bits per byte\n"
                         "unigram entropy    {:.4f} bits per byte\n",
                         b.tokens, b.bytes, b.uniform_bits_per_byte, b.bits_per_byte));
}

}  // namespace

int data_baseline_command(Args args) {
  std::string text_file;
  bool json = false;
  args.summary(
      "Prints what the held-out text costs without a model: each of its tokens coded by its share among the\n"
      "training tokens. A trained model's bits per byte should lie well below.");
  args.option("--held_out_text", &text_file, "FILE",
              "also write the held-out text, for compressors to try on");
  args.flag("--json", &json, "one line of JSON");
  args.config();
  if (const auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  return exit_after(run(args.context().fs, *config, text_file, json));
}

}  // namespace ostro::cli
