#include <doctest/doctest.h>

#include <map>
#include <set>

#include "ostro/grok/layout/leaves.h"
#include "ostro/grok/layout/names.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::grok {
namespace {

// The number of a layer's first file.
size_t first_file(const std::vector<Leaf>& leaves, int64_t layer) {
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].layer == layer) return i;
  }
  return 0;
}

std::string refused(const std::string& from, const std::string& to) {
  std::string text = shape_to_json(GrokShape());
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  const auto shape = shape_from_json(text.replace(at, from.size(), to), "config.json");
  return shape.ok() ? "read" : shape.error().message();
}

}  // namespace

TEST_CASE("factors that are zero, or become infinite, are refused") {
  for (const char* key : {"embedding_multiplier_scale", "output_multiplier_scale", "attn_output_multiplier",
                          "max_attn_value", "rms_norm_eps"})
    for (const char* value : {"0.0", "1e-310", "-1.0", "1e300", "1e-45"}) {
      const std::string text = shape_to_json(GrokShape());
      const size_t begin = text.find(key), end = text.find_first_of(",\n", begin);
      const std::string error = refused(text.substr(begin, end - begin), std::string(key) + "\": " + value);
      CHECK_MESSAGE(error.find(key) != std::string::npos, error);
      CHECK_MESSAGE(error.find("it must be from 1e-30 to 1e+30") != std::string::npos, error);
    }
}

TEST_CASE("Grok-1 has 770 files of eight sizes") {
  const std::vector<Leaf> leaves = make_leaves(GrokShape());
  CHECK(leaves.size() == 770);
  std::map<int64_t, int> sizes;
  int64_t bytes = 0, parameters = 0;
  for (const Leaf& leaf : leaves) {
    ++sizes[leaf.bytes];
    bytes += leaf.bytes;
    parameters += leaf.tensor.weight.bytes / item_size(leaf.tensor.weight.dtype);
  }
  CHECK(sizes == std::map<int64_t, int>{{24'727, 257},
                                        {196'770, 64},
                                        {6'293'814, 128},
                                        {37'761'334, 64},
                                        {37'847'359, 64},
                                        {1'611'137'347, 128},
                                        {1'611'399'491, 64},
                                        {3'221'225'637, 1}});
  CHECK(bytes == 318'239'886'140);
  CHECK(parameters == 315'684'820'992);
}

TEST_CASE("files are in the order of the layers' numbers as texts") {
  const std::vector<Leaf> leaves = make_leaves(GrokShape());
  const size_t first[] = {2, 14, 146, 278, 410, 542, 674, 734, 746, 758, 26, 38, 50, 62, 74, 86};
  for (int64_t layer = 0; layer < 16; ++layer) CHECK(first_file(leaves, layer) == first[layer]);
  CHECK(first_file(leaves, 63) == 722);
  CHECK(leaves[0].name == "language_model/in_out_embed/embeddings");
  CHECK(leaves[1].name == "language_model/rms_norm/scale");
  const char* names[kLayerParts] = {"moe/linear/w",
                                    "moe/linear_1/w",
                                    "moe/linear_v/w",
                                    "multi_head_attention/key/w",
                                    "multi_head_attention/linear/w",
                                    "multi_head_attention/query/w",
                                    "multi_head_attention/value/w",
                                    "rms_norm/scale",
                                    "rms_norm_1/scale",
                                    "rms_norm_2/scale",
                                    "rms_norm_3/scale",
                                    "router/w"};
  for (size_t i = 0; i < kLayerParts; ++i)
    CHECK(leaves[26 + i].name == fmt::format("transformer/decoder_layer_10/{}", names[i]));
  CHECK(leaves[769].file == "tensor00769_000");
  CHECK(leaf_title(leaves[769]) == "layer 9, router/w");
  CHECK(describe(leaves[27].tensor) == "int8 [8, 32768, 6144] with scales bf16 [8, 8, 6144]");
}

TEST_CASE("the width of an expert follows from the widening factor") {
  CHECK(mlp_width(6144, 8) == 32768);
  CHECK(mlp_width(128, 8) == 688);
}

TEST_CASE("a shape is written and read") {
  GrokShape shape;
  shape.layers = 12;
  shape.matrices = Dtype::kBf16;
  const auto read = shape_from_json(shape_to_json(shape), "config.json");
  REQUIRE_MESSAGE(read.ok(), read.error().message());
  CHECK(*read == shape);
  CHECK(shape_title(GrokShape()) == "Grok-1");
  CHECK(shape_title(shape) == "a Grok of 12 layers");
  io::MemoryFileSystem fs;
  CHECK(*read_shape(fs, "dir") == GrokShape());
}

TEST_CASE("shapes of other models are refused") {
  CHECK(refused("\"model_type\"", "\"hidden_act\": \"silu\", \"model_type\"") ==
        "config.json: \"hidden_act\" is \"silu\"; Grok-1 has gelu");
  CHECK(refused("\"model_type\"", "\"rope_theta\": 100000.0, \"model_type\"") ==
        "config.json: \"rope_theta\" is 100000; Grok-1 has 10000");
  CHECK(refused("\"num_hidden_layers\": 64,", "") == "config.json: \"num_hidden_layers\" is missing");
  CHECK(refused("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7") ==
        "config.json: \"num_attention_heads\" is 48, no multiple of \"num_key_value_heads\", 7");
  CHECK(refused("\"hidden_size\": 6144", "\"hidden_size\": 1000000000") ==
        "config.json: \"hidden_size\" is 1000000000: a tensor of 262144000000000 elements");
  CHECK(refused("\"row_groups\": 8", "\"row_groups\": 7").starts_with("config.json: \"row_groups\" is 7"));
  CHECK(refused("\"num_experts\": 8", "\"num_experts\": 1").ends_with("is 1; at least 2 are supported"));
  CHECK(refused("\"num_experts\"", "\"num_local_experts\"") == "read");
  CHECK(refused("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false") ==
        "config.json: \"tie_word_embeddings\" is false; Grok-1's head is its embedding");
  CHECK(refused("\"model_type\"", "\"router_softcap\": 5.0, \"model_type\"") ==
        "config.json: \"router_softcap\" is 5.0: not a known field of a Grok; remove it if the model "
        "does not "
        "depend on it");
  CHECK(refused("\"model_type\"", "\"use_cache\": true, \"sliding_window\": null, \"model_type\"") == "read");
}

TEST_CASE("names of other programs mean the same tensors in both directions") {
  for (const Naming naming : kNamings) {
    std::set<std::string> names;
    for (const Leaf& leaf : make_leaves({.layers = 12})) {
      const bool split =
          splits_experts(naming) &&
          (leaf.part == Part::kExpertGate || leaf.part == Part::kExpertUp || leaf.part == Part::kExpertDown);
      for (int64_t expert = 0; expert < (split ? 8 : 1); ++expert) {
        const std::string name = tensor_name(naming, leaf.part, leaf.layer, expert);
        CAPTURE(name);
        CHECK(names.insert(name).second);
        const auto found = find_tensor(naming, name);
        REQUIRE(found.has_value());
        CHECK(found->part == leaf.part);
        CHECK(found->layer == leaf.layer);
        CHECK(found->expert == (split ? std::optional(expert) : std::nullopt));
        CHECK(found->is_transposed == (leaf.tensor.weight.shape.size() > 1 && leaf.part != Part::kEmbedding));
        for (const Naming other : kNamings)
          if (other != naming) CHECK_FALSE(find_tensor(other, name).has_value());
      }
    }
    const auto output = find_tensor(naming, output_name(naming));
    REQUIRE(output.has_value());
    CHECK(output->is_output);
  }
  CHECK(tensor_name(Naming::kHaiku, Part::kExpertUp, 10, 3) ==
        "transformer.decoder_layer.10.moe.3.linear_v.weight");
  CHECK(tensor_name(Naming::kTransformers, Part::kPostMoeNorm, 2) == "model.layers.2.post_moe_norm.scale");
  CHECK(tensor_name(Naming::kGguf, Part::kExpertGate, 0) == "blk.0.ffn_gate_exps.weight");
  CHECK(find_tensor(Naming::kGguf, "blk.1.ffn_down.7.weight")->expert == 7);
  CHECK(find_tensor(Naming::kGguf, "blk.1.post_ffw_norm.weight")->part == Part::kPostMoeNorm);
  for (const char* name :
       {"blk.01.attn_q.weight", "blk.-1.attn_q.weight", "blk..attn_q.weight", "blk.1.attn_q.weight2",
        "blk.99999999999999999999.attn_q.weight", "", "model.layers.1.moe_block.experts.linear.weight"}) {
    for (const Naming naming : kNamings) CHECK_FALSE(find_tensor(naming, name).has_value());
  }
}

}  // namespace ostro::grok
