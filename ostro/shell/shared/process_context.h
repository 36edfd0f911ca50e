// process_context: the Context of a process, by its environment variables: the program's, and that of the
// Python module.
#pragma once

#include <functional>
#include <memory>

#include "ostro/context/context.h"

namespace ostro::cli {

// Files of this machine and of S3, and engines as OSTRO_EXECUTOR wishes, each of which goes through `replace`
// if that is not empty. `progress` must outlive the context.
Context process_context(
    models::ModelChoices models, Progress& progress,
    const std::function<std::unique_ptr<runtime::Engine>(std::unique_ptr<runtime::Engine>)>& replace = {});

}  // namespace ostro::cli
