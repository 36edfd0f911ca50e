#include "bench/bench_model.h"

#include <optional>
#include <utility>
#include <variant>

#include "ostro/io/files/local_file_system.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/nn/adapters.h"
#include "ostro/train/programs/run_model.h"

namespace ostro::bench {

using runtime::Buffer;

namespace {

// In a print's place stands a constant, and with it the pass over the parameters goes.
void leave_prints_out(ir::Block& block) {
  for (ir::Op& op : block.ops) {
    if (op.kind != ir::OpKind::fingerprint) continue;
    const ir::Shape& shape = block.shape(op.results[0]);
    op.kind = ir::OpKind::constant;
    op.operands.clear();
    op.attrs = ir::shape_attrs(shape.axes);
    op.attrs.set("dtype", std::string(ir::dtype_name(shape.dtype)));
    op.attrs.set("value", 0.0);
  }
}

Result<optim::OptimizerOptions> optimizer_of(const std::string& name) {
  if (name == "muon_bf16") {
    optim::MuonOptions muon;
    muon.newton_schulz_dtype = optim::NewtonSchulzDtype::kBf16;
    return optim::OptimizerOptions(muon);
  }
  std::optional<optim::OptimizerOptions> found;
  const auto consider = [&](auto options) {
    if (name == options.kType) found = std::move(options);
  };
  [&]<typename... Ts>(std::variant<Ts...>*) {
    (consider(Ts{}), ...);
  }(static_cast<optim::OptimizerOptions*>(nullptr));
  if (!found) return invalid_argument("--optimizer " + name + ": there is no optimizer of this type");
  return *found;
}

// The file has the weights of a mixture: a decoder, of no other family.
bool is_mixture(const io::SafetensorsReader& file) { return file.metadata().contains("experts"); }

}  // namespace

Result<Buffer> Model::read(const std::string& name, const ir::Shape& shape) const {
  Buffer b = Buffer::empty(shape);
  RETURN_IF_ERROR(file.read(name, b.mutable_bytes()));
  return b;
}

Result<train::State> Model::state(runtime::Engine& engine) const {
  const bool in_file = config.model_options().type() == "llama" || is_mixture(file);
  const bool adapted = train::lora_spec(config.adapter).has_value();
  train::State state;
  if (!in_file || adapted) {
    ASSIGN_OR_RETURN(state, train::initial_state(programs, engine, config.trainer.seed));
  }
  if (!in_file) return state;
  state.params.resize(functions.paths.size());
  for (size_t i = 0; i < functions.paths.size(); ++i) {
    if (nn::is_adapter(functions.paths[i])) continue;
    ASSIGN_OR_RETURN(state.params[i], read(functions.paths[i], functions.shapes[i]));
  }
  const train::StateArrays arrays = train::state_arrays(programs);
  for (size_t i = arrays.n + state.optimizer.size(); i < arrays.size(); ++i)
    state.optimizer.push_back(Buffer::zeros(arrays.shapes[i]));
  return state;
}

Result<Model> open_model(const ModelChoice& choice) {
  ASSIGN_OR_RETURN(auto file, io::SafetensorsReader::open(io::local_file_system(), choice.start));
  const auto number = [&](const char* key) { return std::stoll(file.metadata().at(key)); };
  train::TrainConfig c;
  const bool mixture = is_mixture(file);
  const std::string family = mixture ? "decoder" : choice.family;
  if (models::find_family(family) == nullptr)
    return invalid_argument("--family " + family + ": there is no family of decoders of this name");
  c.model.choose(family);
  auto& model =
      dynamic_cast<models::ModelOptionsOf<models::DecoderOptions, models::Decoder>&>(c.model_options())
          .options;
  model.seq_len = number("seq");
  model.hidden_dim = number("H");
  model.num_layers = number("L");
  model.num_heads = number("heads");
  const bool latent = model.kv_lora_rank > 0;  // each head has keys of its own
  model.num_kv_heads = latent ? model.num_heads : number("kv");
  // As many operations for a token as a Llama has: without a gate a matrix less, and several experts.
  const int64_t ffn = model.gated_mlp ? number("ffn") : number("ffn") * 3 / 2;
  const int64_t shared = model.shared_intermediate_dim > 0 ? 1 : 0;
  model.intermediate_dim = model.num_experts > 0 ? ffn / (model.num_experts_per_tok + shared) : ffn;
  model.shared_intermediate_dim = shared * model.intermediate_dim;
  model.dense_intermediate_dim = ffn;
  if (mixture) {  // ffn is each expert's
    model.num_experts = number("experts");
    model.num_experts_per_tok = number("top_k");
    model.norm_topk_prob = true;
  }
  if (choice.rank > 0) {
    train::LoraOptions lora;
    lora.rank = choice.rank;
    c.adapter = lora;
  }
  c.data.train_urls = {"none"};
  c.trainer.train_batch_size = number("batch");
  c.trainer.num_train_steps = 1000;
  c.trainer.mp = choice.dtype == "f32"    ? "f32"
                 : choice.dtype == "bf16" ? "p=f32,c=bfloat16"
                 : choice.dtype == "int8" ? "p=f32,c=int8"
                                          : "p=f32,c=int8,a=int8";
  if (choice.leaf_examples > 0) c.numerics.leaf_examples = choice.leaf_examples;
  ASSIGN_OR_RETURN(c.optimizer, optimizer_of(choice.optimizer));
  std::visit(
      [](optim::CommonOptions& o) {
        o.learning_rate = 3e-4;
        o.lr_schedule = optim::LrSchedule::kConstant;
        o.warmup = 0;
        o.weight_decay_modules = std::vector<std::string>{"*"};
      },
      c.optimizer);
  RETURN_IF_ERROR(c.resolve());

  models::ModelFunctions functions = train::run_model(c, number("V"));
  ASSIGN_OR_RETURN(train::CanonicalPrograms programs, train::make_programs(c, functions));
  if (!choice.prints) leave_prints_out(programs.update.body);
  return Model{std::move(file), std::move(c), std::move(programs), std::move(functions)};
}

}  // namespace ostro::bench
