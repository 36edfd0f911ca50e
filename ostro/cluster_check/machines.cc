#include "ostro/cluster_check/machines.h"

#include <fmt/format.h>

#include "ostro/base/sha256.h"

namespace ostro::cluster_check {

std::string new_key() {
  const Nonce nonce = new_nonce();
  return sha256_hex(std::string_view(nonce.data(), nonce.size()));
}

Machines::Machines(const Context& context, const CheckRequest& request)
    : context_(context), request_(request) {
  processes_.resize(request.hosts.size());
  for (const cluster::SshHost& host : request.hosts) out_.hosts.emplace_back().name = host.name;
}

void Machines::problem(size_t i, const std::string& text) {
  out_.problems.push_back(fmt::format("{}: {}", out_.hosts[i].name, text));
}

void Machines::note(size_t i, const std::string& text) {
  out_.notes.push_back(fmt::format("{}: {}", out_.hosts[i].name, text));
}

void Machines::start() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    auto process = request_.start(request_.hosts[i]);
    if (process.ok())
      processes_[i] = std::move(*process);
    else
      problem(i, process.error().message());
  }
  for (size_t i = 0; i < processes_.size(); ++i) ask(i, {{"do", "facts"}});
}

void Machines::end() {
  for (auto& process : processes_) process.reset();
}

void Machines::each(const char* what, const std::function<void(size_t)>& use) {
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (context_.stop()) return;
    request_.on_progress(what, static_cast<double>(i) / static_cast<double>(processes_.size()));
    if (processes_[i]) use(i);
  }
}

bool Machines::ask(size_t i, const CheckJson& question) {
  if (!processes_[i]) return false;
  if (const Status asked = processes_[i]->ask(question.dump()); !asked.ok()) {
    problem(i, asked.error().message());
    processes_[i].reset();
    return false;
  }
  return true;
}

std::optional<CheckJson> Machines::answer(size_t i, std::chrono::seconds patience, const std::string& about,
                                          const std::string& as_note) {
  if (!processes_[i]) return std::nullopt;
  const auto line = processes_[i]->answer(patience, context_.stop);
  if (!line.ok()) {
    problem(i, line.error().message());
    processes_[i].reset();
    return std::nullopt;
  }
  CheckJson json = CheckJson::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    problem(
        i, fmt::format("answers with \"{}\": is that program ostro, of this version?", line->substr(0, 200)));
    processes_[i].reset();
    return std::nullopt;
  }
  if (json.contains("error") && !as_note.empty()) {
    note(i, fmt::format("{}{}; {}", about, json.value("error", ""), as_note));
    return std::nullopt;
  }
  if (json.contains("error")) {
    problem(i, about + json.value("error", ""));
    return std::nullopt;
  }
  return json;
}

}  // namespace ostro::cluster_check
