// A model that is read layer by layer against the same model in memory: the same bits, and no byte too many.
#include "ostro/infer/layer_rows.h"

#include <doctest/doctest.h>

#include "ostro/checkpoint/save.h"
#include "ostro/infer/generate.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder_for_test.h"

namespace ostro::infer {
namespace {

using namespace models::test;
using models::Decoder;
using models::DecoderOptions;

const std::vector<std::vector<int32_t>> kPrompts = {
    {4, 9, 2, 17, 3, 3, 8}, {11}, {1, 18, 5, 0, 6, 12, 7, 2, 2, 10, 13, 4, 15, 9, 3, 1, 8, 5}, {0, 0, 4}};

// A model, and a checkpoint of it in cells that cut every tensor in another place.
struct Stored {
  explicit Stored(const DecoderOptions& o, DType compute = DType::f32)
      : functions(models::model_functions<Decoder>(o, kVocab, compute)),
        layers(models::decoder_by_layer(o, kVocab, compute, {}, functions.paths)) {
    model = model_of(o, compute, 3);
    std::vector<checkpoint::Tensor> tensors;
    for_each_leaf(model, [&](const std::string& path, const Array& a) {
      params.push_back(a.buffer());
      checkpoint::TensorSpec spec{"model/" + path, "f32", {}, {}, {}};
      for (const ir::Axis& axis : a.shape().axes) {
        spec.axes.push_back(axis.name);
        spec.shape.push_back(axis.size);
        spec.cell.push_back(axis.name == "layers" ? 2 : (axis.size + 2) / 3);
      }
      tensors.push_back({spec, params.back().bytes(), nullptr});
    });
    checkpoint::SaveOptions options;
    options.max_chunk_bytes = 600;
    const auto saved = checkpoint::save(fs, "root", {}, tensors, options);
    REQUIRE_MESSAGE(saved.ok(), saved.error().message());
    path = saved->path;
  }

  checkpoint::PartReader reader() {
    const auto found = checkpoint::Checkpoint::open(fs, path);
    REQUIRE(found.ok());
    return checkpoint::PartReader::open(fs, *found, functions.paths).value();
  }
  WeightStore store(int64_t keep_bytes) {
    return WeightStore(reader(), functions.shapes, layers, keep_bytes);
  }

  LayerRows::Model as_model() const { return {functions, layers}; }

  // Logits behind the last token, of the model in memory.
  std::vector<float> logits(const std::vector<int32_t>& tokens) {
    const std::vector<float> all = forward_logits(model, tokens);
    return {all.end() - kVocab, all.end()};
  }

  io::MemoryFileSystem fs;
  models::ModelFunctions functions;
  models::LayerFunctions layers;
  Decoder model;
  std::vector<runtime::Buffer> params;
  std::string path;
};

void check_same_bits(const DecoderOptions& o, DType compute, runtime::Engine& engine, int64_t keep_bytes) {
  Stored stored(o, compute);
  WeightStore store = stored.store(keep_bytes);
  const auto g = LayerRows::streamed(stored.as_model(), store, engine, {o.seq_len, 4, 64});
  REQUIRE(g.ok());
  std::vector<std::vector<int32_t>> texts = kPrompts;
  std::vector<RowChunk> chunks;
  for (const auto& text : texts) chunks.push_back({(*g)->open().value(), text, 1});
  for (int step = 0; step < 3; ++step) {
    const auto logits = (*g)->step(chunks);
    REQUIRE_MESSAGE(logits.ok(), logits.error().message());
    const auto rows = logits->as<float>();
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto row = rows.subspan(i * kVocab, kVocab);
      CHECK(std::vector<float>(row.begin(), row.end()) == stored.logits(texts[i]));
      texts[i].push_back(static_cast<int32_t>((7 * i + static_cast<size_t>(step) * 5 + 1) % kVocab));
      chunks[i].tokens = std::span(texts[i]).last(1);
    }
  }
}

TEST_CASE("every family gives the bits of the model in memory") {
  std::vector<DecoderOptions> all = sampled_decoders(sized<size_t>(5, 100, 100));
  all.push_back(small("grok"));
  for (const DecoderOptions& o : all) {
    CAPTURE(o.type());
    check_same_bits(o, DType::f32, interpreter(), 0);
  }
}

TEST_CASE("in bf16, with weights kept, by the compiled engine") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 2, .generated_code = false});
  REQUIRE(engine.ok());
  for (const int64_t keep : {0, 9'000, 30'000, 10'000'000})
    check_same_bits(small("grok"), DType::bf16, **engine, keep);
  check_same_bits(odd_mixture(), DType::bf16, **engine, 20'000);
  check_same_bits(odd_decoder(), DType::bf16, **engine, 0);
  check_same_bits(odd_latent(), DType::bf16, **engine, 20'000);
  DecoderOptions released = small("grok");
  released.rounding = models::Rounding::kReleased;
  check_same_bits(released, DType::bf16, **engine, 20'000);
}

TEST_CASE(
    "a token reads its experts and what every token reads, nothing else; kept weights are not read again") {
  const DecoderOptions o = small("grok");
  Stored stored(o);
  WeightStore store = stored.store(0), keeping = stored.store(100'000'000);
  const int64_t expert = (2 + 1) * o.hidden_dim * o.intermediate_dim * 4, row = o.hidden_dim * 4;
  const int64_t wanted = store.bytes_of_every_token() + o.num_layers * o.num_experts_per_tok * expert + row;
  for (WeightStore* s : {&store, &keeping}) {
    const auto g = LayerRows::streamed(stored.as_model(), *s, interpreter(), {20, 2, 8});
    REQUIRE(g.ok());
    const std::vector<int32_t> text = {5};
    const auto run = [&] {
      const RowChunk chunk{(*g)->open().value(), text, 1};
      REQUIRE((*g)->step({&chunk, 1}).ok());
    };
    run();
    CHECK(s->bytes_read() == wanted);
    run();
    CHECK(s->bytes_read() == (s == &store ? 2 * wanted : wanted));
  }
}

TEST_CASE("generation is that of the model in memory, and of each prompt alone") {
  const DecoderOptions o = small("grok");
  Stored stored(o);
  for (const double temperature : {0.0, 1.0}) {
    const SampleOptions options{.max_new_tokens = 6, .temperature = temperature, .seed = 9, .stops = {7}};
    WeightStore store = stored.store(0);
    const auto g = LayerRows::streamed(stored.as_model(), store, interpreter(), {24, 3, 16});
    const auto made = generate(**g, kPrompts, options);
    REQUIRE(made.ok());
    for (const bool by_layer : {true, false}) {
      const auto resident =
          make_runner(stored.functions, by_layer ? std::optional(stored.layers) : std::nullopt, stored.params,
                      interpreter(), {24, 1, 8});
      for (size_t i = 0; i < kPrompts.size(); ++i)
        CHECK((*made)[i] == generate(**resident, {&kPrompts[i], 1}, options).value()[0]);
    }
  }
}

TEST_CASE("rows of the vocabulary that no token has are never chosen") {
  Stored stored(small("grok"));
  WeightStore store = stored.store(0);
  const auto g = LayerRows::streamed(stored.as_model(), store, interpreter(), {24, 4, 32});
  SampleOptions options{.max_new_tokens = 6, .temperature = 5, .seed = 2};
  const auto beyond = [](const std::vector<std::vector<int32_t>>& made, int64_t tokens) {
    int64_t count = 0;
    for (const auto& one : made)
      for (const int32_t token : one) count += token >= tokens;
    return count;
  };
  const int64_t known = 5;
  CHECK(beyond(generate(**g, kPrompts, options).value(), known) > 0);  // or the check below shows nothing
  options.tokens = known;
  CHECK(beyond(generate(**g, kPrompts, options).value(), known) == 0);
}

TEST_CASE("missing and damaged files are named before anything is read for a token") {
  Stored stored(small("grok"));
  CHECK(stored.reader().check({}).ok());
  int64_t hashed = 0;
  check_ok(stored.reader().check([&](int64_t done) { hashed = done; }));
  CHECK(hashed == stored.reader().bytes());
  const std::string file = stored.path + "/model/layers/moe/down/c.0.0.0.0";
  std::string& content = *stored.fs.content(file);
  content[5] = static_cast<char>(content[5] ^ 1);
  const Status damaged = stored.reader().check({});
  REQUIRE_FALSE(damaged.ok());
  CHECK(damaged.error().message().find("model/layers/moe/down: the bytes of cell 0 ") != std::string::npos);
  content.resize(content.size() - 3);
  const Status cut = stored.reader().check({});
  CHECK(cut.error().message().find(file + ": ") != std::string::npos);
  check_ok(stored.fs.remove(file));
  const Status missing = stored.reader().check({});
  CHECK(missing.error().code() == ErrorCode::kNotFound);
  CHECK(missing.error().message().find(file + " is missing") != std::string::npos);
}

}  // namespace
}  // namespace ostro::infer
