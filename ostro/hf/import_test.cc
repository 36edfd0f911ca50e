#include "ostro/hf/import.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "ostro/checkpoint/restore.h"
#include "ostro/hf/elements.h"
#include "ostro/hf/export.h"
#include "ostro/hf/tiny_model_for_test.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/numerics/arrays.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

models::DecoderOptions small(std::string_view type) {
  models::DecoderOptions o(type);
  o.seq_len = o.max_position_embeddings = 16, o.hidden_dim = 12, o.intermediate_dim = 10, o.num_layers = 3;
  o.num_heads = 3, o.num_kv_heads = o.family->shows("num_kv_heads") ? 1 : 3;
  if (o.family->shows("partial_rotary_factor")) o.partial_rotary_factor = 0.5;
  if (o.family->shows("n_group")) o.shared_intermediate_dim = 20;  // two shared experts
  check_ok(o.resolve());
  return o;
}

// An exported directory "in".
struct Directory {
  io::MemoryFileSystem fs;
  TinyModel model;

  explicit Directory(std::string_view type = "llama", int64_t max_file_bytes = kMaxFileBytes,
                     const char* dtype = "F32")
      : model(small(type)) {
    const auto weights = NamedWeights::create(model.options, model.functions.paths, model.values, dtype);
    REQUIRE(weights.ok());
    check_ok(
        export_model(fs, "in", {model.options, 260}, tiny_tokenizer(), weights->entries(), max_file_bytes));
  }
  void write(const std::string& path, std::string_view text) {
    check_ok(io::write_file_atomically(fs, path, text));
  }
  std::string read(const std::string& path) { return fs.read_file(path).value(); }
  void set(const char* key, const Json& value) {
    Json config = Json::parse(read("in/config.json"));
    config[key] = value;
    write("in/config.json", config.dump());
  }
  Result<Source> open() { return open_source(fs, "in", ""); }
  std::string refusal() {
    const auto source = open();
    REQUIRE(!source.ok());
    return source.error().message();
  }
  // Replaces the header of model.safetensors and what follows it.
  void rewrite(const std::function<void(Json& header, std::string& data)>& change) {
    const std::string file = read("in/model.safetensors");
    uint64_t size = 0;
    std::memcpy(&size, file.data(), 8);
    Json header = Json::parse(file.substr(8, size));
    std::string data = file.substr(8 + size);
    change(header, data);
    const std::string text = header.dump();
    size = text.size();
    write("in/model.safetensors", std::string(reinterpret_cast<const char*>(&size), 8) + text + data);
  }
};

bool says(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (message.find(word) == std::string::npos) {
      MESSAGE(message);
      return false;
    }
  return true;
}

TEST_CASE("an export is imported with the same bits, every family, in one file or several") {
  for (const HfFamily& family : hf_families())
    for (const int64_t limit : {kMaxFileBytes, int64_t{3000}}) {
      CAPTURE(family.type);
      Directory d(family.type, limit);
      const auto source = d.open();
      if (!source.ok()) FAIL(source.error().message());
      CHECK(source->dtype == "F32");
      const auto saved = import_weights(d.fs, *source, "out", {.config = "c"});
      if (!saved.ok()) FAIL(saved.error().message());
      const auto found = checkpoint::Checkpoint::open(d.fs, saved->path);
      REQUIRE(found.ok());
      REQUIRE(found->manifest().tensors.size() == d.model.values.size());
      for (size_t k = 0; k < d.model.values.size(); ++k) {
        std::vector<std::byte> bytes(d.model.values[k].bytes().size());
        check_ok(found->read(static_cast<int64_t>(k), bytes));
        CAPTURE(found->manifest().tensors[k].path);
        CHECK(std::equal(bytes.begin(), bytes.end(), d.model.values[k].bytes().begin()));
      }
    }
}

TEST_CASE("a parameter stays bf16 if all its tensors are") {
  Directory d("llama", kMaxFileBytes, "BF16");
  const char* const kWide = "model.layers.1.self_attn.k_proj.weight";
  d.rewrite([&](Json& header, std::string& data) {  // one of them in f32, behind the others
    const auto range = header[kWide]["data_offsets"].get<std::vector<size_t>>();
    const std::string narrow = data.substr(range[0], range[1] - range[0]);
    std::vector<float> values(narrow.size() / 2);
    elements_to_f32("BF16", std::as_bytes(std::span(narrow)), values);
    header[kWide]["dtype"] = "F32";
    header[kWide]["data_offsets"] = {data.size(), data.size() + 4 * values.size()};
    data.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    data.erase(range[0], narrow.size());
    for (auto& [name, value] : header.items())
      if (value.contains("data_offsets") && value["data_offsets"][0] > range[0])
        for (auto& offset : value["data_offsets"]) offset = offset.get<size_t>() - narrow.size();
  });
  const auto source = d.open();
  if (!source.ok()) FAIL(source.error().message());
  const auto saved = import_weights(d.fs, *source, "out", {.config = "c"});
  if (!saved.ok()) FAIL(saved.error().message());
  const auto found = checkpoint::Checkpoint::open(d.fs, saved->path);
  REQUIRE(found.ok());
  for (size_t k = 0; k < d.model.values.size(); ++k) {
    const checkpoint::TensorSpec& spec = found->manifest().tensors[k];
    CAPTURE(spec.path);
    CHECK(spec.dtype == (spec.path.ends_with("attention/qkv/weight") ? "f32" : "bf16"));
    std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
    check_ok(found->read(static_cast<int64_t>(k), bytes));
    const std::span<const float> whole = d.model.values[k].as<float>();
    std::vector<std::byte> rounded(2 * whole.size()), wide(4 * whole.size());
    numerics::narrow(whole, rounded);
    numerics::widen(rounded, wide);
    CHECK(bytes == (spec.dtype == "bf16" ? rounded : wide));
  }
}

TEST_CASE("bf16 and f16 are read exactly; rounding is to the nearest, ties to even") {
  for (const char* dtype : {"BF16", "F16"}) {
    std::vector<std::byte> all(2 * 65536), again(all.size());
    for (uint32_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      std::memcpy(all.data() + 2 * i, &bits, 2);
    }
    std::vector<float> values(65536);
    elements_to_f32(dtype, all, values);
    elements_from_f32(dtype, values, again);
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] == values[i]) REQUIRE(std::memcmp(&all[2 * i], &again[2 * i], 2) == 0);
  }
  const auto half = [](float value) {
    uint16_t bits = 0;
    elements_from_f32("F16", std::span(&value, 1), std::as_writable_bytes(std::span(&bits, 1)));
    return bits;
  };
  CHECK(half(1.0F) == 0x3c00);
  CHECK(half(1.0F + 0x1p-11F) == 0x3c00);    // a tie, to even
  CHECK(half(1.0F + 0x1.8p-10F) == 0x3c02);  // a tie, to even
  CHECK(half(65504.0F) == 0x7bff);
  CHECK(half(65520.0F) == 0x7c00);  // infinite
  CHECK(half(65519.0F) == 0x7bff);
  CHECK(half(0x1p-24F) == 1);
  CHECK(half(0x1p-25F) == 0);  // a tie, to even
  CHECK(half(0x1.8p-25F) == 1);
  CHECK(half(-0.0F) == 0x8000);
}

TEST_CASE("bad directories: one error that names file, tensor and both values") {
  const std::string q = "model.layers.1.self_attn.q_proj.weight";
  {
    Directory d;
    d.rewrite([&](Json& header, std::string&) {
      header["other.weight"] = header[q];
      header.erase(q);
    });
    CHECK(says(d.refusal(), {"no tensor model.layers.1.self_attn.q_proj.weight", "in"}));
  }
  {
    Directory d;
    d.rewrite([&](Json& header, std::string& data) {
      const auto at = static_cast<int64_t>(data.size());
      header["model.layers.1.extra.weight"] = {
          {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {at, at + 4}}};
      data += "abcd";
    });
    CHECK(says(d.refusal(),
               {"in/model.safetensors", "model.layers.1.extra.weight [1]", "not a weight of a llama"}));
  }
  {
    Directory d;
    d.rewrite([&](Json& header, std::string&) { header[q]["shape"] = {6, 24}; });
    CHECK(says(d.refusal(), {"in/model.safetensors", q.c_str(), "[6, 24]", "[12, 12]"}));
  }
  {
    Directory d;
    d.rewrite([&](Json& header, std::string&) { header[q]["dtype"] = "I32"; });
    CHECK(says(d.refusal(), {"in/model.safetensors", q.c_str(), "I32"}));
  }
  {
    Directory d;
    d.rewrite([&](Json&, std::string& data) { data.resize(data.size() - 100); });
    CHECK(says(d.refusal(), {"in/model.safetensors", "tensor ", "the file has", "cut short"}));
  }
  {
    Directory d;
    d.rewrite([&](Json& header, std::string&) {
      header[q]["data_offsets"] = header["model.layers.0.self_attn.q_proj.weight"]["data_offsets"];
    });
    CHECK(says(d.refusal(), {"in/model.safetensors", "overlaps"}));
  }
  {
    Directory d;
    d.set("num_hidden_layers", 2);
    CHECK(says(d.refusal(), {"model.layers.2.", "not a weight"}));
  }
  {
    Directory d;
    d.set("vocab_size", 259);
    CHECK(says(d.refusal(), {"\"vocab_size\" 259", "260"}));
    d.set("vocab_size", 264);  // rows without tokens are fine, but the tensor must have them
    CHECK(says(d.refusal(), {"in/model.safetensors", "[260, ", "[264, "}));
  }
  {
    Directory d("llama", 3000);
    Json index = Json::parse(d.read("in/model.safetensors.index.json"));
    index["weight_map"][q] = "../model.safetensors";
    d.write("in/model.safetensors.index.json", index.dump());
    CHECK(says(d.refusal(), {"model.safetensors.index.json", q.c_str(), "beside the index"}));
  }
  {
    Directory d;
    check_ok(d.fs.remove("in/model.safetensors"));
    CHECK(says(d.refusal(), {"in", "neither"}));
    d.write("in/pytorch_model.bin", "pickle");
    CHECK(says(d.refusal(), {"pytorch_model.bin", "pickled", "any program"}));
  }
  {
    Directory d;
    d.set("tie_word_embeddings", true);
    CHECK(says(d.refusal(), {"lm_head.weight", "differs from model.embed_tokens.weight"}));
  }
  {
    Directory d;
    check_ok(d.fs.remove("in/config.json"));
    CHECK(says(d.refusal(), {"in/config.json"}));
  }
  {
    Directory d;
    const std::string config = d.read("in/config.json");
    d.write("in/config.json", R"({"hidden_size": 8, )" + config.substr(1));
    CHECK(says(d.refusal(), {"in/config.json", "has the key \"hidden_size\" twice"}));
  }
}

TEST_CASE("a value that is infinite or no number is not imported; one that a type cannot hold not exported") {
  const auto element = [](std::string& data, const Json& header, const char* tensor, size_t i) {
    return data.data() + header[tensor]["data_offsets"][0].get<size_t>() + 4 * i;
  };
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Directory d;
    d.rewrite([&](Json& header, std::string& data) {
      std::memcpy(element(data, header, "model.layers.1.self_attn.k_proj.weight", 17), &bad, 4);
    });
    const auto source = d.open();
    REQUIRE(source.ok());
    const auto saved = import_weights(d.fs, *source, "out", {.config = "c"});
    REQUIRE(!saved.ok());
    CHECK(says(saved.error().message(), {"in/model.safetensors", "model.layers.1.self_attn.k_proj.weight",
                                         "element 17 ", "infinite"}));
  }
  TinyModel model(small("llama"));
  model.values[2].mutable_as<float>()[3] = 65520.0F;  // rounds to 65536
  const auto narrow = [&](const char* dtype) {
    const auto weights = NamedWeights::create(model.options, model.functions.paths, model.values, dtype);
    return weights.ok() ? "" : weights.error().message();
  };
  // In one pass, whatever stands before it.
  std::vector<float> values(size_t{1} << 20, std::numeric_limits<float>::quiet_NaN());
  CHECK(!first_unfit("F16", values));
  values.back() = 65520.0F;
  CHECK(first_unfit("F16", values) == values.size() - 1);
  CHECK(!first_unfit("BF16", values));
  CHECK(narrow("F32") == "");
  CHECK(narrow("BF16") == "");
  CHECK(says(narrow("F16"), {"tensor ", "65520", "F16 cannot hold"}));
}

TEST_CASE("a head that is the embedding again, buffers and names without their beginning are fine") {
  Directory d("gpt2");
  d.rewrite([&](Json& header, std::string& data) {
    Json renamed = Json::object();
    for (const auto& [name, value] : header.items())
      renamed[name.starts_with("transformer.") ? name.substr(12) : name] = value;
    const auto range = renamed["wte.weight"]["data_offsets"].get<std::vector<size_t>>();
    const size_t at = data.size();
    data += data.substr(range[0], range[1] - range[0]);
    renamed["lm_head.weight"] = renamed["wte.weight"];
    renamed["lm_head.weight"]["data_offsets"] = {at, data.size()};
    renamed["h.0.attn.bias"] = {
        {"dtype", "U8"}, {"shape", {4}}, {"data_offsets", {data.size(), data.size() + 4}}};
    data += "mask";
    header = renamed;
  });
  const auto source = d.open();
  if (!source.ok()) FAIL(source.error().message());
  CHECK(source->parameters() > 0);
}

TEST_CASE("an import that fails leaves no checkpoint") {
  Directory d;
  auto source = d.open();
  REQUIRE(source.ok());
  check_ok(d.fs.truncate("in/model.safetensors", 5000));
  CHECK(!import_weights(d.fs, *source, "out", {}).ok());
  CHECK(checkpoint::list_checkpoints(d.fs, "out").value().empty());
  CHECK(!d.fs.exists("out/step-00000000.tmp").value());
}

}  // namespace
}  // namespace ostro::hf
