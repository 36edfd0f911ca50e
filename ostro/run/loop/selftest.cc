#include "ostro/run/loop/selftest.h"

#include <fmt/format.h>

#include "ostro/base/check.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/chain.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/numerics/threefry.h"
#include "ostro/run/loop/run.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::run {
namespace {

constexpr uint64_t kSeed = 20;
constexpr int kDocuments = 48;

// Sentences of made-up words; words with low numbers are more frequent. The text depends only on `number`.
std::string document(int number) {
  static constexpr const char* kSyllables[] = {"ba", "ro",  "ti", "na", "ke", "lo",  "mus", "dri",
                                               "fa", "sen", "ol", "gu", "pe", "qui", "sta", "vor"};
  const numerics::Key key = numerics::fold_in(numerics::key_from_seed(kSeed), static_cast<uint32_t>(number));
  std::string text;
  for (uint64_t word = 0; word < 160; ++word) {
    const uint32_t bits = numerics::random_bits(key, word);
    // The product of two uniform numbers is small most often, so low ranks are frequent.
    uint32_t rank = ((bits & 0xff) * (bits >> 8 & 0xff)) >> 8;
    do text += kSyllables[rank % 16];
    while ((rank /= 16) > 0);
    const bool ends = (bits >> 16 & 7) == 0;
    text += ends ? ".\n" : (bits >> 19 & 15) == 0 ? ", " : " ";
  }
  return text;
}

train::TrainConfig base_config() {
  train::TrainConfig c;
  c.data.tokenizer = "/selftest/tokenizer.json";
  c.data.cache_dir = "/selftest/cache";
  c.data.train_urls = {"/selftest/corpus"};
  c.data.validation_fraction = 0.1;
  c.trainer.log_dir = "/selftest/runs";
  c.trainer.train_batch_size = 12;
  c.trainer.num_train_steps = 8;
  c.trainer.steps_per_eval = 0;
  c.trainer.tracker = {};
  c.trainer.checkpointer.save_interval = std::nullopt;
  c.trainer.checkpointer.keep = {train::KeepOptions{4, std::nullopt}};
  c.numerics.leaf_examples = 2;
  c.numerics.cells = {{"embed", 3}};
  return c;
}

models::DecoderOptions& llama(train::TrainConfig& c) {
  auto* wrapped =
      dynamic_cast<models::ModelOptionsOf<models::DecoderOptions, models::Decoder>*>(&c.model_options());
  OSTRO_CHECK(wrapped != nullptr, "the first of the built-in models is {}, not Llama",
              c.model_options().type());
  models::DecoderOptions& o = wrapped->options;
  o.seq_len = 44;
  o.hidden_dim = 48;
  o.intermediate_dim = 80;
  o.num_layers = 2;
  o.num_heads = 4;
  o.num_kv_heads = 2;
  return o;
}

// The configurations whose products are of floats.
std::vector<train::TrainConfig> float_configs() {
  train::TrainConfig f32 = base_config();
  f32.trainer.id = "f32";
  f32.trainer.mp = "p=f32,c=f32";
  llama(f32);
  train::TrainConfig bf16 = base_config();
  bf16.trainer.id = "bf16";
  bf16.trainer.mp = "p=f32,c=bfloat16";
  bf16.numerics.leaves = {{"kv_heads", 2}, {"mlp", 2}, {"vocab", 3}, {"pos", 2}};
  models::DecoderOptions& o = llama(bf16);
  o.tie_word_embeddings = true;
  o.z_loss_weight = 1e-4;
  return {f32, bf16};
}

// Every kind of integer product sums over two blocks, of which the second is short: over 300 features of the
// MLP, over the vocabulary, and over the 264 tokens of a leaf.
train::TrainConfig integer_config() {
  train::TrainConfig c = base_config();
  c.trainer.id = "int8";
  c.trainer.mp = "p=f32,c=int8";
  c.numerics.leaf_examples = 6;
  llama(c).intermediate_dim = 300;
  return c;
}

// The corpus and the tokenizer trained on it.
Status make_files(io::FileSystem& fs) {
  RETURN_IF_ERROR(fs.make_dirs("/selftest/corpus"));
  for (int i = 0; i < kDocuments; ++i)
    RETURN_IF_ERROR(fs.write_file(fmt::format("/selftest/corpus/{:02}.txt", i), document(i)));
  int next = 0;
  const tokenizer::DocumentSource source = [&next](std::string& text) -> Result<bool> {
    if (next == kDocuments) return false;
    text = document(next++);
    return true;
  };
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer trained, tokenizer::train(source, {.vocab_size = 320}));
  return tokenizer::save_tokenizer(fs, trained, "/selftest/tokenizer.json");
}

// Trains each configuration on the files; the hash of what their chains say.
Result<std::string> hash_of_runs(io::FileSystem& fs, runtime::Engine& engine, int64_t workers,
                                 std::vector<train::TrainConfig> configs) {
  std::string text;
  for (train::TrainConfig& config : configs) {
    RETURN_IF_ERROR(config.resolve());
    const std::string directory = train::run_directory(config);
    {
      ASSIGN_OR_RETURN(const auto run, Run::open(config, {fs, engine, workers, {}, {}}));
      RETURN_IF_ERROR(run->train({}));
    }
    ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, directory + "/" + chain::kChainFile));
    text += chain.genesis().tokenizer_hash + "\n" + chain.genesis().data_hash + "\n";
    for (size_t i = 1; i < chain.links.size(); ++i) {
      ASSIGN_OR_RETURN(const std::string line, chain::entry_json(chain.links[i].entry));
      text += line + "\n";
    }
  }
  return sha256_hex(text);
}

}  // namespace

SelftestHashes known_selftest_hashes() { return {kSelftestHash, kSelftestIntegersHash}; }

Result<SelftestHashes> selftest_hashes(runtime::Engine& engine, int64_t workers) {
  io::MemoryFileSystem fs;
  RETURN_IF_ERROR(make_files(fs));
  SelftestHashes hashes;
  ASSIGN_OR_RETURN(hashes.floats, hash_of_runs(fs, engine, workers, float_configs()));
  ASSIGN_OR_RETURN(hashes.integers, hash_of_runs(fs, engine, workers, {integer_config()}));
  return hashes;
}

}  // namespace ostro::run
