#include "ostro/hf/export.h"

#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "ostro/hf/model_files.h"
#include "ostro/hf/tiny_model_for_test.h"
#include "ostro/hf/weights.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/models/model_functions.h"

namespace ostro::hf {
namespace {

using runtime::Buffer;

models::DecoderOptions options() {
  models::DecoderOptions o;
  o.seq_len = 16, o.hidden_dim = 6, o.intermediate_dim = 5, o.num_layers = 2;
  o.num_heads = 6, o.num_kv_heads = 2, o.head_dim = 4;
  return o;
}

// Each element is its own position.
Buffer numbered(const ir::Shape& shape) {
  Buffer b = Buffer::empty(shape);
  std::iota(b.mutable_as<float>().begin(), b.mutable_as<float>().end(), 0.0F);
  return b;
}

const io::SafetensorsEntry& find(const NamedWeights& weights, const std::string& name) {
  for (const io::SafetensorsEntry& e : weights.entries())
    if (e.name == name) return e;
  FAIL("no weight " << name);
  return weights.entries().front();
}

std::vector<float> floats(const io::SafetensorsEntry& entry) {
  std::vector<float> out(entry.bytes.size() / sizeof(float));
  std::memcpy(out.data(), entry.bytes.data(), entry.bytes.size());
  return out;
}

struct Model {
  models::ModelFunctions functions;
  std::vector<Buffer> values;

  explicit Model(const models::DecoderOptions& o)
      : functions(models::model_functions<models::Decoder>(o, 260, ir::DType::f32)) {
    for (const ir::Shape& shape : functions.shapes) values.push_back(numbered(shape));
  }
  const ir::Shape& shape(const std::string& path) const {
    for (size_t i = 0; i < functions.paths.size(); ++i)
      if (functions.paths[i] == path) return functions.shapes[i];
    FAIL("no parameter " << path);
    return functions.shapes.front();
  }
};

TEST_CASE("fused weights are split as the table of docs says: query head = kv_head * group + g") {
  const models::DecoderOptions o = options();
  const Model m(o);
  const auto weights = NamedWeights::create(o, m.functions.paths, m.values);
  REQUIRE(weights.ok());
  CHECK(weights->entries().size() == 3 + 2 * 9);
  CHECK(find(*weights, "lm_head.weight").shape == std::vector<int64_t>{260, 6});

  const int64_t group = 3, slots = group + 2, head_dim = 4, embed = 6, kv_heads = 2, layer = 1;
  // Position of [layer, e, kv, slot, d] in layers/attention/qkv/weight.
  const auto qkv = [&](int64_t e, int64_t kv, int64_t slot, int64_t d) {
    return static_cast<float>((((layer * embed + e) * kv_heads + kv) * slots + slot) * head_dim + d);
  };
  const auto& q = find(*weights, "model.layers.1.self_attn.q_proj.weight");
  const auto& k = find(*weights, "model.layers.1.self_attn.k_proj.weight");
  const auto& v = find(*weights, "model.layers.1.self_attn.v_proj.weight");
  CHECK(q.shape == std::vector<int64_t>{24, 6});
  CHECK(k.shape == std::vector<int64_t>{8, 6});
  const auto query = floats(q), key = floats(k), value = floats(v);
  for (int64_t head = 0; head < 6; ++head)
    for (int64_t d = 0; d < head_dim; ++d)
      for (int64_t e = 0; e < embed; ++e) {
        const auto at = static_cast<size_t>((head * head_dim + d) * embed + e);
        REQUIRE(query[at] == qkv(e, head / group, head % group, d));
        if (head >= kv_heads) continue;
        REQUIRE(key[at] == qkv(e, head, group, d));
        REQUIRE(value[at] == qkv(e, head, group + 1, d));
      }

  const auto output = floats(find(*weights, "model.layers.1.self_attn.o_proj.weight"));
  for (int64_t e = 0; e < embed; ++e)
    for (int64_t column = 0; column < 24; ++column)
      REQUIRE(output[static_cast<size_t>(e * 24 + column)] ==
              static_cast<float>((layer * 24 + column) * embed + e));

  const auto up = floats(find(*weights, "model.layers.1.mlp.up_proj.weight"));
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t e = 0; e < embed; ++e)
      REQUIRE(up[static_cast<size_t>(row * embed + e)] ==
              static_cast<float>(((layer * embed + e) * 2 + 1) * 5 + row));
}

TEST_CASE("every element of every parameter is exported once, tied or not") {
  for (const bool tied : {false, true}) {
    models::DecoderOptions o = options();
    o.tie_word_embeddings = tied;
    Model m(o);
    const auto weights = NamedWeights::create(o, m.functions.paths, m.values);
    REQUIRE(weights.ok());
    size_t exported = 0, held = 0;
    for (const io::SafetensorsEntry& e : weights->entries()) {
      exported += e.bytes.size();
      CHECK((tied && e.name == "lm_head.weight") == false);
    }
    for (const Buffer& b : m.values) held += b.bytes().size();
    CHECK(exported == held);
    m.functions.paths.back() += "x";
    CHECK(NamedWeights::create(o, m.functions.paths, m.values).ok() == false);
  }
}

TEST_CASE(
    "an exported directory has every file, sharded when it is large; config.json has both forms of rope") {
  models::DecoderOptions o = options();
  o.rope = models::RopeLlama3Options{};
  o.activation_function = models::Activation::kGeluTanh;
  const Model m(o);
  const auto weights = NamedWeights::create(o, m.functions.paths, m.values);
  REQUIRE(weights.ok());
  io::MemoryFileSystem fs;
  const tokenizer::Tokenizer tokenizer = tiny_tokenizer();
  for (const int64_t limit : {int64_t{4000}, kMaxFileBytes}) {
    check_ok(export_model(fs, "out", {o, 260}, tokenizer, weights->entries(), limit));
    const auto reader = io::SafetensorsReader::open_directory(fs, "out");
    REQUIRE(reader.ok());
    CHECK(reader->tensors().size() == weights->entries().size());
    for (const io::SafetensorsEntry& e : weights->entries()) {
      REQUIRE(reader->find(e.name) != nullptr);
      CHECK(reader->find(e.name)->shape == e.shape);
      std::vector<std::byte> bytes(e.bytes.size());
      check_ok(reader->read(e.name, bytes));
      CHECK(std::equal(bytes.begin(), bytes.end(), e.bytes.begin()));
    }
    for (const char* name :
         {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
      CHECK(fs.exists(std::string("out/") + name).value());
  }
  const auto config = nlohmann::json::parse(config_json({o, 260}, tokenizer).value());
  CHECK(config["model_type"] == "llama");
  CHECK(config["architectures"] == nlohmann::json::array({"LlamaForCausalLM"}));
  CHECK(config["hidden_act"] == "gelu_new");
  CHECK(config["rope_parameters"]["rope_theta"] == 500000.0);
  CHECK(config["rope_theta"] == 500000.0);
  CHECK(config["rope_scaling"]["rope_type"] == "llama3");
  CHECK(config["rope_scaling"]["factor"] == 8.0);
  CHECK(config["rope_scaling"].contains("rope_theta") == false);
  CHECK(config["eos_token_id"] == *tokenizer.eos_id());
  CHECK(config["vocab_size"] == 260);
  const auto plain = nlohmann::json::parse(config_json({options(), 260}, tokenizer).value());
  CHECK(plain["rope_scaling"].is_null());
  CHECK(plain["rope_parameters"]["rope_type"] == "default");
  CHECK(plain["head_dim"] == 4);
}

TEST_CASE("a tokenizer that Qwen2Tokenizer would replace names a class that takes it as it is") {
  const tokenizer::Tokenizer other = tiny_tokenizer();
  const auto named = [](const char* family, const tokenizer::Tokenizer& t) {
    const TokenizerConfig config = tokenizer_config(*hf_family(family).value(), t, 16);
    CHECK(nlohmann::json::parse(config.json).contains("auto_map") == config.names_plain_tokenizer);
    return config.names_plain_tokenizer;
  };
  CHECK(named("qwen2", other));
  CHECK_FALSE(named("qwen3", other));
  CHECK_FALSE(named("llama", other));
  auto json = nlohmann::json::parse(other.to_json());
  json["normalizer"] = {{"type", "NFC"}};
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] =
      std::string(tokenizer::pattern_of(tokenizer::Splitter::kQwen2));
  CHECK_FALSE(named("qwen2", tokenizer::Tokenizer::from_json(json.dump(), "t").value()));
}

TEST_CASE("a SentencePiece model goes out as it came, without a tokenizer.json that would hide it") {
  // A .model by hand: field 1 of ModelProto is a piece {1: text, 2: score, 3: type}, field 2 the trainer's
  // options.
  const auto field = [](int number, const std::string& bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
  };
  std::string model;
  for (const auto& [text, type] : {std::pair("<unk>", 2), {"<s>", 3}, {"</s>", 3}, {"\u2581a", 1}, {"b", 1}})
    model += field(1, field(1, text) + std::string("\x15\0\0\0\0\x18", 6) + static_cast<char>(type));
  model += field(2, "\x18\2");
  auto plain = tokenizer::Tokenizer::from_sentencepiece(model, "m.model");
  REQUIRE_MESSAGE(plain.ok(), (plain.ok() ? "" : plain.error().message()));
  const auto made = plain->with_added_tokens({{.id = 5, .content = "<|im_end|>", .special = true}});
  REQUIRE(made.ok());
  io::MemoryFileSystem fs;
  check_ok(export_tokenizer(fs, "out", *hf_family("llama").value(), **made, 16));
  CHECK(*fs.read_file("out/tokenizer.model") == model);
  CHECK_FALSE(fs.exists("out/tokenizer.json").value());
  const auto config = nlohmann::json::parse(*fs.read_file("out/tokenizer_config.json"));
  CHECK(config["tokenizer_class"] == "LlamaTokenizer");
  CHECK(config["added_tokens_decoder"]["5"]["content"] == "<|im_end|>");
}

}  // namespace
}  // namespace ostro::hf
