#include "ostro/convert/import/import_model.h"

#include <doctest/doctest.h>

#include "ostro/convert/export_model.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::convert {
namespace {

// Without an engine: what is refused is refused before one is made.
struct World {
  io::MemoryFileSystem fs;
  NoProgress progress;
  Context context{.fs = fs,
                  .models = models::builtin_models(),
                  .engine = [] { return Result<std::unique_ptr<runtime::Engine>>(unsupported("no engine")); },
                  .engine_for_a_moment =
                      [] { return Result<std::unique_ptr<runtime::Engine>>(unsupported("no engine")); },
                  .progress = progress};

  std::string refusal(const ImportRequest& request) {
    const auto made = import_model(context, request);
    REQUIRE(!made.ok());
    CHECK(made.error().code() == ErrorCode::kInvalidArgument);
    return made.error().message();
  }
  std::string refusal(const ExportRequest& request) {
    const auto made = export_model(context, request);
    REQUIRE(!made.ok());
    CHECK(made.error().code() == ErrorCode::kInvalidArgument);
    return made.error().message();
  }
};

TEST_CASE("import: options of another importer are refused by name") {
  World world;
  ImportRequest request;
  request.grok.out = "out";
  CHECK(world.refusal(request).starts_with("--from: say hf, peft or grok"));
  request.from = "gguf";
  CHECK(world.refusal(request) == "DIR: say which directory to read");
  request.grok.directory = "in";
  CHECK(world.refusal(request) == "--from gguf: use hf, peft or grok");
  request.from = "hf";
  request.grok.layers = "0:2";
  CHECK(world.refusal(request).find("are for --from grok only") != std::string::npos);
  request.grok.layers.clear();
  request.upcycle.checkpoint = "run";
  CHECK(world.refusal(request).starts_with("--checkpoint is for --upcycle N and --from peft"));
  request.upcycle.checkpoint.clear();
  request.upcycle.seed = 1;
  CHECK(world.refusal(request).starts_with("--num_experts_per_tok and --seed are for --upcycle N"));
  request.upcycle.seed = 0;
  request.from = "peft";
  CHECK(world.refusal(request) == "--from peft: say of which base the adapter is, with --checkpoint K");
  request.experts = 4;
  CHECK(world.refusal(request).starts_with("--upcycle makes a mixture of --checkpoint; leave out DIR"));
  request.from.clear();
  request.grok.directory.clear();
  CHECK(world.refusal(request) == "--upcycle: say of which dense model with --checkpoint K");
}

TEST_CASE("import: a request that makes sense gets as far as the directory") {
  World world;
  ImportRequest request;
  request.from = "hf";
  request.grok.directory = "in";
  request.grok.out = "out";
  const auto made = import_model(world.context, request);
  REQUIRE(!made.ok());
  CHECK(made.error().code() == ErrorCode::kNotFound);
  CHECK(made.error().message().find("in/config.json") != std::string::npos);
}

TEST_CASE("export: options that do not belong together are refused") {
  World world;
  const auto refused = [&](const std::string& to, const auto& change) {
    ExportRequest request;
    request.to = to;
    change(request);
    return world.refusal(request);
  };
  CHECK(refused("gguf", [](ExportRequest&) {}) == "--to gguf: use hf, peft or grok");
  CHECK(refused("grok", [](auto& r) { r.merge_lora = true; }) == "--merge_lora: only with --to hf");
  CHECK(refused("hf", [](auto& r) { r.base = "b"; }) == "--base: only with --to peft");
  CHECK(refused("peft", [](auto& r) { r.dtype = "f32"; }).starts_with("--dtype, --shard_size: an adapter"));
  CHECK(refused("grok", [](auto& r) { r.shard_bytes = 1; }).starts_with("--shard_size: only with --to hf"));
  CHECK(refused("hf", [](auto& r) { r.dtype = "int8"; }) == "--dtype int8: use f32, bf16 or f16");
  CHECK(refused("hf", [](auto& r) { r.shard_bytes = 0; }) == "--shard_size 0: use 1 or more");
}

}  // namespace
}  // namespace ostro::convert
