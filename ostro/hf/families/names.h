// FamilyNames: the names of a family's tensors, as tables of which tensor is which weight of ours. A row
// serves both directions.
#pragma once

#include <string_view>
#include <vector>

namespace ostro::hf {

// A weight of ours, or a part of one, with its bias if the model has it.
enum class Role {
  kEmbedding,
  kPositions,
  kFinalNorm,
  kHead,
  // Of a layer.
  kAttentionNorm,
  kAttentionPostNorm,
  kMlpNorm,
  kMlpPostNorm,
  kQNorm,
  kKNorm,
  kQ,
  kK,
  kV,
  kQkv,         // the rows of q, then of k, then of v
  kQkvOfHeads,  // of each head: the rows of q, k, v; as many key heads as query heads
  kQkvOfKinds,  // as kQkv, with as many key heads as query heads
  // Of latent attention. A model whose queries have no short vector has kQ instead of kQA, kQANorm and kQB.
  kQA,
  kQANorm,
  kQB,
  kKvA,
  kKvANorm,
  kKvB,
  kO,
  kGate,
  kUpOfGate,  // beside a gate
  kGateUp,    // the rows of the gate, then of up
  kUp,        // without a gate
  kDown,
  // Of a mixture. Names of an expert's tensors have '*' for its number.
  kRouter,
  kRouterBias,  // the row's name is the tensor's
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedWeight,  // its sigmoid is the weight of the shared part
};

// Roles that a model lacks (a head that is tied, norms) are passed over.
struct NameRow {
  std::string_view name;  // without ".weight" and ".bias"; of a layer: what follows its number and a dot
  Role role;
  bool columns = false;  // the tensor is [in, out] (GPT-2's Conv1D), not [out, in]
};

struct FamilyNames {
  std::string_view base;    // a prefix of names that a file may leave out: "model."
  std::string_view layers;  // before the number of a layer: "model.layers."
  std::vector<NameRow> before, layer, behind;
  // Tensors that files have and models do not need, as globs: "*.rotary_emb.inv_freq".
  std::vector<std::string_view> buffers = {"*.rotary_emb.inv_freq"};
};

// Names that many families share: "model.layers.0.self_attn.q_proj", a norm before attention and MLP.
FamilyNames llama_names();
// llama_names() with these rows of a layer.
FamilyNames names_with_layer(std::vector<NameRow> layer);
// llama_names() with a mixture: below "mlp", a router "gate" and experts with gate_proj, up_proj, down_proj.
FamilyNames mixture_names();

}  // namespace ostro::hf
