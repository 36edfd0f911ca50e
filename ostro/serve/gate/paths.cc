#include "ostro/serve/gate/paths.h"

#include <array>

namespace ostro::serve {
namespace {

constexpr std::array kPaths = {
    Path{Action::kCompletion, "/v1/completions", true},
    Path{Action::kChat, "/v1/chat/completions", true},
    Path{Action::kResponse, "/v1/responses", true},
    Path{Action::kEmbedding, "/v1/embeddings", true},
    Path{Action::kModels, "/v1/models", false},
    Path{Action::kModel, "/v1/models/{id}", false},
    Path{Action::kTokenize, "/tokenize", true},
    Path{Action::kDetokenize, "/detokenize", true},
    Path{Action::kTokenizerInfo, "/tokenizer_info", false},
    Path{Action::kApplyTemplate, "/apply_template", true},
    Path{Action::kMetrics, "/metrics", false},
    Path{Action::kHealth, "/health", false},
    Path{Action::kReady, "/ready", false},
    Path{Action::kPage, "/", false},
};
constexpr std::string_view kOneModel = "/v1/models/";

}  // namespace

std::optional<Path> path_of(std::string_view path) {
  for (const Path& one : kPaths)
    if (one.path == path ||
        (one.action == Action::kModel && path.starts_with(kOneModel) && path.size() > kOneModel.size()))
      return one;
  return std::nullopt;
}

std::string paths_text() {
  std::string out = "this server has ";
  for (const Path& one : kPaths) out += std::string(one.path) + (&one == &kPaths.back() ? "" : ", ");
  return out;
}

}  // namespace ostro::serve
