#include "ostro/init/config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ostro/config/node.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::init {
namespace {

using config::format_double;
using config::Node;

constexpr size_t kCommentColumn = 34;

// Text that stays in a comment: paths and typed words may hold any byte.
std::string comment(const std::string& text) {
  std::string out = tokenizer::repair_utf8(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

// "  key: value       # why", in one column where it fits.
std::string line(const std::string& text, const std::string& why) {
  const size_t spaces = text.size() < kCommentColumn ? kCommentColumn - text.size() : 2;
  return why.empty() ? text + "\n" : fmt::format("{}{:{}}# {}\n", text, "", spaces, comment(why));
}

std::string list(const std::string& key, const std::vector<std::string>& items, const std::string& why) {
  if (items.empty()) return line(fmt::format("  {}: []", key), why);
  std::string out = line(fmt::format("  {}:", key), why);
  for (const std::string& item : items)
    out += fmt::format("    - {}\n", config::flow_text(Node::string(item)));
  return out;
}

std::string megabytes(int64_t bytes) {
  return bytes < 1'000'000 ? fmt::format("{:.1f} KB", static_cast<double>(bytes) * 1e-3)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

std::string texts(const Survey& survey) {
  return fmt::format("{}{} of text in {} documents, {} file{}", survey.is_whole ? "" : "about ",
                     megabytes(survey.text_bytes), survey.documents, survey.files.size(),
                     survey.files.size() == 1 ? "" : "s");
}

std::string machine_text(const Machine& machine) {
  return fmt::format(
      "{} core{}{}", machine.cores, machine.cores == 1 ? "" : "s",
      machine.memory.bytes == 0
          ? ""
          : fmt::format(", {:.1f} GB of free memory", static_cast<double>(machine.memory.bytes) * 1e-9));
}

std::string why_text_key(const Survey& survey) {
  return survey.has_rows() ? "the field of a row that holds the text" : "no file has rows";
}

}  // namespace

std::string run_id(const std::string& place) {
  if (io::has_wildcard(place)) return "run";
  std::string name = io::base_name(io::clean_path(io::absolute_path(place)));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  while (name.starts_with('.')) name.erase(0, 1);
  return place == "." || name.empty() ? "run" : name;
}

std::string config_text(const Survey& survey, const HoldOut& held_out, const Sizes& s, const Machine& machine,
                        const RunPlaces& places, const std::string& command) {
  const auto why = [&s](const char* key) {
    const auto found = s.why.find(key);
    return found == s.why.end() ? std::string() : found->second;
  };
  std::string out = fmt::format(
      "# Written by `{}` for {},\n# on a machine with {}. Training gives the same bits on every machine.\n"
      "# docs/reference/config.md says what every key does. Paths are relative to the folder that you train "
      "in.\n",
      comment(command), texts(survey), machine_text(machine));
  out += "data:\n";
  out += line("  tokenizer: null", "trained from the texts at the first start, and kept in cache_dir");
  out += line(fmt::format("  vocab_size: {}", s.vocab_size), why("vocab_size"));
  out += line(fmt::format("  cache_dir: {}", config::flow_text(Node::string(places.cache_dir))),
              "the texts as tokens; delete it when texts change");
  out += list("train_urls", held_out.train_urls, "");
  out +=
      list("validation_urls", held_out.validation_urls, held_out.validation_urls.empty() ? "" : held_out.why);
  out += line(fmt::format("  validation_fraction: {}", format_double(held_out.fraction)),
              held_out.validation_urls.empty() ? held_out.why : "the files above are it");
  if (survey.has_rows())
    out += line(fmt::format("  text_key: {}", config::flow_text(Node::string(survey.text_key))),
                why_text_key(survey));
  out += line(fmt::format("  chunk_cache_mib: {}", s.chunk_cache_mib), why("chunk_cache_mib"));
  out += "model:\n  type: llama\n";
  out += line(fmt::format("  seq_len: {}", s.seq_len), why("seq_len"));
  out += line(fmt::format("  hidden_dim: {}", s.hidden_dim), why("model"));
  out += line(fmt::format("  intermediate_dim: {}", s.intermediate_dim), "8/3 of the width");
  out += line(fmt::format("  num_layers: {}", s.num_layers), "with the width");
  out += line(fmt::format("  num_heads: {}", s.num_heads),
              fmt::format("heads of {}", s.hidden_dim / s.num_heads));
  out += line(
      fmt::format("  num_kv_heads: {}", s.num_kv_heads),
      s.num_kv_heads == s.num_heads ? "one for each head: memory is no concern" : "shared by two heads each");
  out += "optimizer:\n  type: adam\n";
  out += line(fmt::format("  learning_rate: {}", format_double(s.learning_rate)), why("learning_rate"));
  out += line(fmt::format("  weight_decay: {}", format_double(s.weight_decay)), why("weight_decay"));
  out += line("  warmup: 0.05", "a twentieth of the run");
  out += "trainer:\n";
  out += line(fmt::format("  id: {}", config::flow_text(Node::string(places.id))),
              fmt::format("the run is {}/{}", places.log_dir, places.id));
  out += line(fmt::format("  log_dir: {}", config::flow_text(Node::string(places.log_dir))), "");
  out += line(fmt::format("  train_batch_size: {}", s.batch), why("train_batch_size"));
  out += line(fmt::format("  num_train_steps: {}", s.steps), why("num_train_steps"));
  out += line(fmt::format("  steps_per_eval: {}", s.steps_per_eval), why("steps_per_eval"));
  out += line("  max_eval_batches: 100", "more would take longer and tell little");
  out += line(fmt::format("  checkpointer: {{save_interval: 15m, keep: [{{every: {}}}]}}", s.keep_every),
              why("keep"));
  return out;
}

std::string choices_text(const Survey& survey, const HoldOut& held_out, const Sizes& s,
                         const Machine& machine) {
  std::string out = fmt::format("texts: {}; {} to train on\n", texts(survey),
                                megabytes(survey.text_bytes - held_out.held_out_bytes));
  if (survey.left_out_count > 0)
    out += fmt::format("left out: {} files: {}{}\n", survey.left_out_count, fmt::join(survey.left_out, "; "),
                       survey.left_out_count > static_cast<int64_t>(survey.left_out.size()) ? "; ..." : "");
  const auto add = [&](const std::string& what, const std::string& why) {
    out += fmt::format("{}: {}\n", what, why);
  };
  if (survey.has_rows()) add(fmt::format("text_key {}", survey.text_key), why_text_key(survey));
  add(held_out.validation_urls.empty()
          ? fmt::format("validation_fraction {}", format_double(held_out.fraction))
          : fmt::format("validation_urls {}", held_out.validation_urls.front()),
      held_out.why);
  add(fmt::format("vocab_size {}", s.vocab_size), s.why.at("vocab_size"));
  add(fmt::format("seq_len {}", s.seq_len), s.why.at("seq_len"));
  add(fmt::format("num_layers {}, hidden_dim {}", s.num_layers, s.hidden_dim), s.why.at("model"));
  add(fmt::format("train_batch_size {}", s.batch), s.why.at("train_batch_size"));
  add(fmt::format("num_train_steps {}", s.steps), s.why.at("num_train_steps"));
  add(fmt::format("learning_rate {}", format_double(s.learning_rate)), s.why.at("learning_rate"));
  add(fmt::format("weight_decay {}", format_double(s.weight_decay)), s.why.at("weight_decay"));
  add(fmt::format("steps_per_eval {}, checkpoints every {} steps", s.steps_per_eval, s.keep_every),
      s.why.at("steps_per_eval") + ", " + s.why.at("keep"));
  add(fmt::format("chunk_cache_mib {}", s.chunk_cache_mib), s.why.at("chunk_cache_mib"));
  if (s.seconds > 0)
    out += fmt::format(
        "training: about {} (an estimate: {:.2g} TFLOP on {} that did {:.0f} GFLOP/s in a matrix product "
        "just now; other work on the machine makes it longer)\n",
        duration_text(s.seconds), s.flops * 1e-12,
        machine.cores == 1 ? "a core" : fmt::format("{} cores", machine.cores), machine.peak_flops * 1e-9);
  else
    out += fmt::format("training: {:.2g} TFLOP; the interpreter's speed is not measured\n", s.flops * 1e-12);
  return out;
}

}  // namespace ostro::init
