#include "ostro/serve/model/served_model.h"

#include <fmt/format.h>

#include "ostro/base/aligned.h"
#include "ostro/base/machine.h"
#include "ostro/base/sha256.h"
#include "ostro/config/utf8.h"
#include "ostro/infer/generate.h"
#include "ostro/serve/model/adapter_rows.h"
#include "ostro/serve/model/shared_rows.h"
#include "ostro/tokenizer/model/text_ends.h"
#include "ostro/train/programs/programs.h"
#include "ostro/trained/opened_model.h"

namespace ostro::serve {
namespace {

// The last part of a path: the name of a run's folder.
std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// All of it but what `make` makes: the runner.
Result<std::unique_ptr<ServedModel>> served_by(
    const Context& context, std::shared_ptr<runtime::Engine> engine, trained::LoadedModel loaded,
    const std::string& checkpoint, const trained::UseOptions& use,
    const std::function<Status(ServedModel& out, trained::LoadedModel& loaded,
                               const numerics::LeafTable& leaves)>& make) {
  auto out = std::make_unique<ServedModel>();
  out->engine = std::move(engine);
  if (loaded.parameters.name.empty())
    return invalid_argument(
        fmt::format("{}: initial parameters have no checkpoint, so no answer could be checked", checkpoint));
  ASSIGN_OR_RETURN(out->chat, eval::ChatPrompts::load(context.fs, loaded.tokenizer_path, *loaded.tokenizer));
  ASSIGN_OR_RETURN(out->tool_format, load_tool_format(context.fs, loaded.tokenizer_path));
  ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(*loaded.tokenizer));
  out->stops.assign(ends.stops.begin(), ends.stops.end());
  out->tokenizer = loaded.tokenizer;
  const numerics::LeafTable leaves = train::inference_leaf_table(loaded.config);
  out->vocab_leaves = leaves.count("vocab");
  RETURN_IF_ERROR(make(*out, loaded, leaves));
  ModelFacts& facts = out->facts;
  out->checkpoint = loaded.parameters.path;
  facts.name = config::as_utf8(last_part(checkpoint));  // it stands in JSON
  facts.state = loaded.parameters.name;
  ASSIGN_OR_RETURN(facts.forward, out->runner->program_hash());
  facts.tokenizer = loaded.tokenizer->hash();
  if (const std::string identity = out->chat.identity(); !identity.empty())
    facts.chat_template = sha256_hex(identity);
  ASSIGN_OR_RETURN(const train::MixedPrecision mp, train::parse_precision(loaded.config.trainer.mp));
  facts.mp = train::precision_word(mp);
  if (!use.mp.empty()) facts.dtype = facts.mp;
  facts.context = loaded.config.model_options().seq_len();
  facts.width = out->runner->width();
  return out;
}

infer::RowLimits limits_of(const trained::LoadedModel& loaded, int64_t running, int64_t pages) {
  return {.positions = loaded.config.model_options().seq_len(), .sequences = running, .pages = pages};
}

Result<std::unique_ptr<ServedModel>> served_on(const Context& context,
                                               std::shared_ptr<runtime::Engine> engine,
                                               trained::LoadedModel loaded, const std::string& checkpoint,
                                               const trained::UseOptions& use, int64_t running,
                                               int64_t pages) {
  return served_by(
      context, std::move(engine), std::move(loaded), checkpoint, use,
      [&](ServedModel& out, trained::LoadedModel& model, const numerics::LeafTable& leaves) -> Status {
        ASSIGN_OR_RETURN(out.runner, infer::make_runner(model.functions, trained::layers_of(model),
                                                        std::move(model.parameters.values), *out.engine,
                                                        limits_of(model, running, pages), leaves));
        out.settling = std::make_unique<infer::SettleLater>(*out.runner);
        return {};
      });
}

// A model whose sequences go through `rows`, with this adapter of them. `program`: of the model alone.
Result<std::unique_ptr<ServedModel>> served_by_rows(
    const Context& context, std::shared_ptr<runtime::Engine> engine, trained::LoadedModel loaded,
    const std::string& checkpoint, const trained::UseOptions& use,
    const std::shared_ptr<infer::LayerRows>& rows, int32_t adapter, const std::string& program) {
  return served_by(context, std::move(engine), std::move(loaded), checkpoint, use,
                   [&](ServedModel& out, trained::LoadedModel&, const numerics::LeafTable&) -> Status {
                     out.runner = std::make_unique<AdapterRows>(rows, adapter, program);
                     out.rows = rows;
                     return {};
                   });
}

// The base, then it with each adapter, on this engine: first those of a group, then the others alone.
Result<std::vector<std::unique_ptr<ServedModel>>> with_adapters_on(
    const Context& context, const std::shared_ptr<runtime::Engine>& engine, trained::LoadedModel base,
    const std::string& checkpoint, const AdapterOptions& options, const std::vector<NamedAdapter>& adapters,
    int64_t running, int64_t pages) {
  const trained::UseOptions& use = options.use;
  const std::string state = base.parameters.name;
  std::vector<trained::LoadedModel> with;
  std::vector<std::string> hashes;
  std::vector<RowGroup> groups;
  if (!adapters.empty()) {
    for (const NamedAdapter& one : adapters) {
      ASSIGN_OR_RETURN(trained::LoadedModel loaded, with_adapter(context, one, base, options));
      keep_adapter_alone(loaded);
      hashes.push_back(adapter_hash(loaded));
      with.push_back(std::move(loaded));
    }
    RETURN_IF_ERROR(share_parameters(base, with, engine->memory()));
    ASSIGN_OR_RETURN(groups, row_groups(base, with));
  }
  std::vector<std::unique_ptr<ServedModel>> out(1 + with.size());
  for (const RowGroup& group : groups) {
    if (group.with.size() + (group.base ? 1 : 0) < 2) continue;
    std::vector<trained::LoadedModel*> members;
    for (const size_t i : group.with) members.push_back(&with[i]);
    ASSIGN_OR_RETURN(const auto rows, shared_rows(members, *engine, limits_of(*members[0], running, pages)));
    const auto served = [&](trained::LoadedModel& model, int32_t adapter, const std::string& program) {
      return served_by_rows(context, engine, std::move(model), checkpoint, use, rows, adapter, program);
    };
    if (group.base) {
      ASSIGN_OR_RETURN(out[0], served(base, infer::LayerRows::kNoAdapter, *group.base));
    }
    for (size_t k = 0; k < group.with.size(); ++k) {
      ASSIGN_OR_RETURN(out[1 + group.with[k]], served(*members[k], static_cast<int32_t>(k), group.program));
    }
  }
  const auto alone = [&](trained::LoadedModel& model) {
    return served_on(context, engine, std::move(model), checkpoint, use, running, pages);
  };
  if (out[0] == nullptr) {
    ASSIGN_OR_RETURN(out[0], alone(base));
  }
  for (size_t i = 0; i < with.size(); ++i) {
    std::unique_ptr<ServedModel>& one = out[1 + i];
    if (one == nullptr) {
      ASSIGN_OR_RETURN(one, alone(with[i]));
    }
    one->facts.name += ":" + adapters[i].name;
    one->facts.state = state;
    one->facts.adapter = std::move(hashes[i]);
  }
  return out;
}

}  // namespace

Result<std::vector<std::unique_ptr<ServedModel>>> load_with_adapters(
    const Context& context, const std::string& checkpoint, const std::string& tokenizer, trained::Trust trust,
    const trained::UseOptions& use, const std::vector<NamedAdapter>& adapters, int64_t running,
    int64_t pages) {
  ASSIGN_OR_RETURN(auto made, context.engine());  // one that cannot be made is told before anything is read
  const std::shared_ptr<runtime::Engine> engine = std::move(made);
  trained::UseOptions of_base = use;
  of_base.as_read = true;
  ASSIGN_OR_RETURN(trained::LoadedModel base,
                   trained::load_model(context.fs, checkpoint, tokenizer, context.models, trust, of_base));
  release_kept_memory();  // of what was read piece by piece
  return with_adapters_on(context, engine, std::move(base), checkpoint, {tokenizer, trust, use}, adapters,
                          running, pages);
}

Result<std::unique_ptr<ServedModel>> load_streamed(const Context& context, const std::string& checkpoint,
                                                   const std::string& tokenizer, trained::Trust trust,
                                                   const trained::UseOptions& use,
                                                   std::optional<int64_t> keep_bytes, int64_t running,
                                                   int64_t pages) {
  ASSIGN_OR_RETURN(auto engine, context.engine());
  ASSIGN_OR_RETURN(trained::OpenedModel opened, trained::open_model(
                                                    context.fs, checkpoint, tokenizer, context.models, trust,
                                                    [&](const trained::OpenedModel& one) {
                                                      return trained::check_weights(one.reader,
                                                                                    context.progress);
                                                    },
                                                    use));
  return served_by(
      context, std::move(engine), std::move(opened.model), checkpoint, use,
      [&](ServedModel& out, trained::LoadedModel& model, const numerics::LeafTable& leaves) -> Status {
        out.store = std::make_shared<infer::WeightStore>(std::move(opened.reader), model.functions.shapes,
                                                         opened.layers,
                                                         keep_bytes.value_or(available_memory().bytes / 2));
        ASSIGN_OR_RETURN(out.runner,
                         infer::LayerRows::streamed({model.functions, opened.layers, leaves}, *out.store,
                                                    *out.engine, limits_of(model, running, pages)));
        return {};
      });
}

Result<std::vector<std::unique_ptr<ServedModel>>> served_with_adapters(
    const Context& context, trained::LoadedModel loaded, const std::string& checkpoint,
    const AdapterOptions& options, const std::vector<NamedAdapter>& adapters, int64_t running,
    int64_t pages) {
  ASSIGN_OR_RETURN(auto engine, context.engine());
  return with_adapters_on(context, std::move(engine), std::move(loaded), checkpoint, options, adapters,
                          running, pages);
}

}  // namespace ostro::serve
