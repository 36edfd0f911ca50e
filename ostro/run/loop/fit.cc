#include "ostro/run/loop/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ostro/audit/record/traced_programs.h"

namespace ostro::run {
namespace {

using config::Override;

constexpr size_t kMostSuggestions = 4;

std::string gb(int64_t bytes) {
  const double value = static_cast<double>(bytes) * 1e-9;
  return fmt::format("{:.{}f} GB", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

// Plans variants of one configuration.
class Variants {
 public:
  Variants(const train::TrainConfig& config, int64_t vocab, runtime::Engine& engine, int64_t room)
      : text_(config::resolved_yaml(config)), config_(config), vocab_(vocab), engine_(engine), room_(room) {}

  // The bytes that the configuration needs with these changes, if it is one that makes sense and fits.
  std::optional<int64_t> fits(const std::vector<Override>& changes) const {
    auto tree = config::parse_yaml(text_, "");
    if (!tree.ok()) return std::nullopt;
    for (const Override& change : changes)
      if (!config::apply_override(change, &*tree).ok()) return std::nullopt;
    train::TrainConfig changed(config_.model.choices());
    if (!config::read_and_resolve(*tree, &changed).ok()) return std::nullopt;
    const auto need = need_of(changed, vocab_, engine_);
    return need.ok() && need->room() <= room_ ? std::optional(need->room()) : std::nullopt;
  }

  // The value of an integer option; nothing if there is none.
  std::optional<int64_t> value(const std::string& section, const std::string& key) const {
    const auto tree = config::parse_yaml(text_, "");
    const config::Node* node = tree.ok() && tree->find(section) ? tree->find(section)->find(key) : nullptr;
    int64_t value = 0;
    if (node == nullptr || !config::read_value(*node, key, &value).ok()) return std::nullopt;
    return value;
  }

 private:
  std::string text_;
  const train::TrainConfig& config_;
  int64_t vocab_;
  runtime::Engine& engine_;
  int64_t room_;
};

std::string changes_text(const std::vector<Override>& changes) {
  std::vector<std::string> parts;
  for (const Override& c : changes) parts.push_back(fmt::format("{}: {}", c.path, c.value));
  return fmt::format("{}", fmt::join(parts, " and "));
}

// The largest value from 1 to below `now` for which the configuration fits.
std::optional<Override> largest(const Variants& variants, const std::vector<Override>& base,
                                const std::string& path, int64_t now) {
  const auto with = [&](int64_t value) {
    std::vector<Override> changes = base;
    changes.push_back({path, std::to_string(value)});
    return variants.fits(changes).has_value();
  };
  if (now < 2 || !with(1)) return std::nullopt;
  int64_t low = 1, high = now;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (with(middle) ? low : high) = middle;
  }
  return Override{path, std::to_string(low)};
}

// The smallest changes that fit, those of the same bits first.
std::vector<std::string> suggestions(const train::TrainConfig& config, const Variants& variants) {
  std::vector<std::string> out;
  const auto offer = [&](const std::vector<Override>& changes, const char* remark) {
    if (out.size() >= kMostSuggestions) return false;
    const auto bytes = variants.fits(changes);
    if (bytes) out.push_back(fmt::format("{} ({}{})", changes_text(changes), gb(*bytes), remark));
    return bytes.has_value();
  };
  const Override remat{"model.gradient_checkpointing", "true"};
  std::vector<Override> base;
  const bool again = offer({remat}, ", the same bits");
  if (variants.value("model", "num_layers")) base.push_back(remat);
  const int64_t leaf = *config.numerics.leaf_examples;
  if (!again && leaf > 1) {
    std::vector<Override> one = base;
    one.push_back({"numerics.leaf_examples", "1"});
    if (!offer(one, "")) base = one;
  }
  const int64_t seq_len = config.model_options().seq_len();
  for (int64_t shorter = seq_len / 2; shorter >= std::max<int64_t>(64, seq_len / 16); shorter /= 2) {
    std::vector<Override> changes = base;
    changes.push_back({"model.seq_len", std::to_string(shorter)});
    if (offer(changes, "")) break;
  }
  if (const auto layers = variants.value("model", "num_layers"))
    if (const auto fewer = largest(variants, base, "model.num_layers", *layers)) {
      std::vector<Override> changes = base;
      changes.push_back(*fewer);
      offer(changes, "");
    }
  const auto width = variants.value("model", "hidden_dim"),
             inner = variants.value("model", "intermediate_dim");
  for (int64_t k = 2; width && inner && *width / k >= 64; k *= 2) {
    std::vector<Override> changes = base;
    changes.push_back({"model.head_dim", "null"});
    changes.push_back({"model.hidden_dim", std::to_string(*width / k)});
    changes.push_back({"model.intermediate_dim", std::to_string(std::max<int64_t>(1, *inner / k))});
    if (offer(changes, "")) break;
  }
  return out;
}

}  // namespace

Result<train::MemoryNeed> need_of(const train::TrainConfig& config, int64_t vocab, runtime::Engine& engine) {
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, audit::traced_programs(config, vocab));
  return train::memory_need(programs, engine, config, vocab);
}

Status check_fit(const train::TrainConfig& config, const train::MemoryNeed& need, int64_t vocab,
                 runtime::Engine& engine) {
  const AvailableMemory room = engine.memory().available();
  if (room.bytes == 0 || need.room() <= room.bytes) return Status();
  const std::vector<std::string> fits = suggestions(config, Variants(config, vocab, engine, room.bytes));
  return invalid_argument(fmt::format(
      "this run does not fit into memory: it needs {}, and {} can be had ({}). It needs {} for parameters "
      "and the optimizer's arrays, {} for gradients, {} for the values inside a leaf and an update. {}",
      gb(need.room()), gb(room.bytes), room.source, gb(need.state), gb(need.gradients), gb(need.arenas),
      fits.empty() ? "No smaller sequence, leaf, depth or width of this model fits: choose another model"
                   : fmt::format("What fits: {}", fmt::join(fits, "; or "))));
}

}  // namespace ostro::run
