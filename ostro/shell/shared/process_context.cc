#include "ostro/shell/shared/process_context.h"

#include "ostro/engines/engines.h"
#include "ostro/objects/s3/routing_file_system.h"

namespace ostro::cli {
namespace {

using Replace = std::function<std::unique_ptr<runtime::Engine>(std::unique_ptr<runtime::Engine>)>;

// Makes the engine that OSTRO_EXECUTOR wishes, on that device, or what `replace` gives for it.
MakeEngine engine_maker(bool generated_code, const Replace& replace, const std::string& device) {
  return [generated_code, replace, device]() -> Result<std::unique_ptr<runtime::Engine>> {
    ASSIGN_OR_RETURN(engines::Wish wish, engines::wish_from_environment());
    wish.generated_code = generated_code;
    ASSIGN_OR_RETURN(wish, engines::on_device(wish, device));
    ASSIGN_OR_RETURN(std::unique_ptr<runtime::Engine> engine, engines::make(wish));
    return replace ? replace(std::move(engine)) : std::move(engine);
  };
}

}  // namespace

Context process_context(models::ModelChoices models, Progress& progress, const Replace& replace) {
  return {.fs = objects::default_file_system(),
          .models = std::move(models),
          .engine = engine_maker(true, replace, "cpu"),
          .engine_for_a_moment = engine_maker(false, replace, "cpu"),
          .progress = progress,
          .engine_on = [replace](const std::string& device) { return engine_maker(true, replace, device); }};
}

}  // namespace ostro::cli
