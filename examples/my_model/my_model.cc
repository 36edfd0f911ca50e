// A model that Ostro has never seen: an encoder that sees both sides of a token and guesses hidden ones. One
// block of convolution, attention and MLP is used over and over. Its axes have their own names.
#include "ostro/ostro.h"

using namespace ostro;

struct Options {
  static constexpr const char* kType = "my_model";
  int64_t seq_len = 64, channels = 32, heads = 4, depth = 3;

  void visit_options(config::OptionTable& t) {
    using config::Effect;
    t.add(&seq_len, "seq_len", Effect::kBits, "tokens", "length of a training sequence");
    t.add(&channels, "channels", Effect::kBits, "", "width; a multiple of heads").other("64");
    t.add(&heads, "heads", Effect::kBits, "", "attention heads").other("2");
    t.add(&depth, "depth", Effect::kBits, "", "how often the block is applied");
  }
  Status resolve() const {
    if (heads >= 1 && depth >= 1 && channels >= heads && channels % heads == 0) return {};
    return config::option_error("model.channels", "must be a positive multiple of model.heads");
  }
  config::IntMap leaf_axes() const { return {{"hidden", 4 * channels}}; }
  config::IntMap cell_axes() const { return {{"channels", channels}}; }
  Result<std::string> remat() const { return std::string("none"); }
};

struct MyModel {
  nn::Embedding embedding;  // [vocab, channels], also the head
  nn::Linear convolution, qkv, out, up, down;
  nn::Norm norm;
  Options options;
  OSTRO_FIELDS(embedding, convolution, qkv, out, up, down, norm)

  static MyModel init(const Options& o, int64_t vocab, const Array& key) {
    auto draw = [&](const char* name, const std::vector<Axis>& axes) {
      return nn::trunc_normal(key, std::string("model/") + name, axes, 0.05);
    };
    const Axis channels{"channels", o.channels}, heads{"heads", o.heads},
        width{"width", o.channels / o.heads}, hidden{"hidden", 4 * o.channels};
    MyModel m;
    m.options = o;
    m.embedding.weight = draw("embedding/weight", {{"vocab", vocab}, channels});
    m.convolution = {
        draw("convolution/weight", {{"tap", 3}, channels, {"filters", o.channels}}), {}, {"tap", "channels"}};
    m.qkv = {draw("qkv/weight", {channels, {"part", 3}, heads, width}), {}, {"channels"}};
    m.out = {draw("out/weight", {heads, width, channels}), {}, {"heads", "width"}};
    m.up = {draw("up/weight", {channels, hidden}), {}, {"channels"}};
    m.down = {draw("down/weight", {hidden, channels}), {}, {"hidden"}};
    m.norm.weight = ones({channels});
    m.norm.axes = {"channels"};
    return m;
  }

  // [batch, time, channels] -> the same.
  Array block(const Array& x) const {
    // Three neighbours as slices of the padded sequence, then one product over taps and channels.
    const int64_t length = x.size("time");
    const Array padded = pad(norm(x), "time", 1, 1);
    std::vector<Array> taps;
    for (int64_t i = 0; i < 3; ++i) taps.push_back(slice(padded, "time", i, length));
    Array h = x + gelu_tanh(rename(convolution(stack(taps, "tap")), "filters", "channels"));

    const auto [q, k, v] = unstack<3>(qkv(norm(h)), "part");
    AttentionMask everything;
    everything.causal = false;
    h = h + out(flash_attention(q, rename(k, "time", "key_time"), rename(v, "time", "key_time"), everything,
                                {.query = "time", .key = "key_time", .head_dim = "width"}));
    return nn::cast_like(h + down(gelu_tanh(up(norm(h)))), down.weight);
  }

  models::Loss loss(const models::Batch& batch) const {
    const Array tokens = rename(batch.tokens, "pos", "time");
    // About one token in eight is hidden (shown as token 0) and must be guessed.
    const Array hidden = (tokens * 7 + iota({"time", options.seq_len}) * 5) % 8 == 0;
    Array h = embedding(select(hidden, 0, tokens));
    for (int64_t i = 0; i < options.depth; ++i) h = block(h);
    const Array logits =
        dot(nn::cast_like(norm(h), embedding.weight), embedding.weight, "channels", DType::f32);
    const Array per_token = cross_entropy(logits, tokens, "vocab");
    const Array weight = cast(hidden, DType::f32) * rename(batch.loss_mask, "pos", "time");
    return {rename(per_token, "time", "pos"), rename(weight, "time", "pos")};
  }
};

int main(int argc, char** argv) {
  return cli_main(argc, argv, {std::make_shared<models::ModelOptionsOf<Options, MyModel>>()});
}
