// Logits of a checkpoint, for check_grok_model.py.
//   grok_model_helper K OUT PIECE ID...   f32 [ids, vocab] into OUT, PIECE tokens at a time (0: all at once)
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/trace/jit.h"
#include "ostro/train/programs/programs.h"
#include "ostro/trained/loaded_model.h"

using namespace ostro;
using runtime::Buffer;

namespace {

Array integers(const std::vector<ir::Axis>& axes, const int32_t* values, int64_t count) {
  Buffer buffer = Buffer::empty({ir::DType::i32, axes});
  std::copy(values, values + count, buffer.mutable_as<int32_t>().begin());
  return Array(buffer);
}

Result<std::vector<float>> logits(runtime::Engine& engine, const std::string& where, int64_t piece,
                                  const std::vector<int32_t>& ids) {
  io::FileSystem& fs = io::local_file_system();
  ASSIGN_OR_RETURN(const auto found, checkpoint::find_checkpoints(fs, where));
  ASSIGN_OR_RETURN(const auto manifest, checkpoint::read_manifest(fs, found[0]));
  ASSIGN_OR_RETURN(auto config,
                   train::parse_train_config(manifest.info.config, found[0], models::builtin_models()));
  trained::take_stored_matrices(fs, where, config);
  const int64_t vocab = manifest.tensors[0].shape[0];
  const auto model = config.model_options().evaluation_functions(vocab, train::compute_dtype(config));
  ASSIGN_OR_RETURN(const auto loaded,
                   trained::load_or_init(fs, where, config, model, engine, trained::Trust::kUnchecked));
  const auto step =
      jit([&](const Arrays& parameters, const Array& tokens, const Arrays& cache, const Array& start) {
        const auto [scores, filled] = model.decode.step(parameters, tokens, cache, start);
        Arrays out{scores};
        out.insert(out.end(), filled.begin(), filled.end());
        return out;
      });
  const auto length = static_cast<int64_t>(ids.size());
  Arrays parameters, cache;
  for (const Buffer& value : loaded.values) parameters.emplace_back(value);
  trace_program("cache", {}, [&](const Arrays&) {
    for (const Array& a : model.decode.cache(1, length)) cache.emplace_back(Buffer::zeros(a.shape()));
    return Arrays{};
  });
  std::vector<float> out;
  for (int64_t at = 0; at < length;) {
    const int64_t n = piece > 0 ? std::min(piece, length - at) : length;
    const auto start = static_cast<int32_t>(at);
    const Arrays made = step(parameters, integers({{"batch", 1}, {"pos", n}}, ids.data() + at, n), cache,
                             integers({}, &start, 1));
    const auto scores = made[0].buffer().as<float>();
    out.insert(out.end(), scores.begin(), scores.end());
    cache.assign(made.begin() + 1, made.end());
    at += n;
  }
  return out;
}

int fail(const std::string& message) {
  fmt::print(stderr, "{}\n", message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return fail("usage: grok_model_helper K OUT PIECE ID...");
  std::vector<int32_t> ids;
  for (int i = 4; i < argc; ++i) ids.push_back(std::atoi(argv[i]));
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  if (!engine.ok()) return fail(engine.error().message());
  set_default_engine(engine->get());
  const auto scores = logits(**engine, argv[1], std::atoi(argv[3]), ids);
  if (!scores.ok()) return fail(scores.error().message());
  std::FILE* file = std::fopen(argv[2], "wb");
  if (file == nullptr) return fail(fmt::format("{} cannot be written", argv[2]));
  const size_t written = std::fwrite(scores->data(), sizeof(float), scores->size(), file);
  return std::fclose(file) == 0 && written == scores->size() ? 0 : fail("a write failed");
}
