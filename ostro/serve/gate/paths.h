// path_of: what a server answers at a path. Values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ostro::serve {

enum class Action {
  kPage,
  kHealth,
  kReady,
  kMetrics,
  kModels,
  kModel,
  kTokenizerInfo,
  kTokenize,
  kDetokenize,
  kApplyTemplate,
  kCompletion,
  kChat,
  kResponse,
  kEmbedding,
};

struct Path {
  Action action;
  std::string_view path;  // "/v1/models/{id}" stands for all of them
  bool posts;             // it takes POST, otherwise GET and HEAD
};

// Nothing: there is no such path.
std::optional<Path> path_of(std::string_view path);
// "this server has /, /health, ...".
std::string paths_text();

}  // namespace ostro::serve
