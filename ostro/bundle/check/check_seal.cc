#include <fmt/core.h>

#include <optional>

#include "ostro/bundle/check/checks.h"
#include "ostro/bundle/parts/signature.h"
#include "ostro/bundle/parts/time_token.h"

namespace ostro::bundle {
namespace {

using audit::Verdict;

// A file that a bundle may have; nothing where it has not. An unreadable one is a finding.
std::optional<std::string> optional_file(BundleCheck& check, const std::string& path) {
  auto text = check.context.fs.read_file(check.path(path), kMostSealBytes);
  if (text.ok()) return std::move(*text);
  if (text.error().code() != ErrorCode::kNotFound) check.find(text.error());
  return std::nullopt;
}

// The key that the bundle is to be checked with; nothing when there is none, which was then told.
std::optional<PublicKey> key_of(BundleCheck& check, const std::optional<PublicKey>& wanted,
                                const std::optional<std::string>& its_own) {
  if (!its_own) return wanted;
  auto key = PublicKey::parse(*its_own, check.path(check.name + ".pub"));
  if (!key.ok()) {
    check.find(key.error());
    return wanted;
  }
  if (wanted && !(*wanted == *key))
    check.find(Verdict::kDiffers, fmt::format("the {} was signed by the key {}, not by {} as given (--key)",
                                              check.noun, key->fingerprint(), wanted->fingerprint()));
  return wanted ? wanted : std::optional(std::move(*key));
}

void check_signature(BundleCheck& check, const std::optional<PublicKey>& wanted) {
  const auto signature = optional_file(check, check.name + ".sig");
  const std::optional<PublicKey> key = key_of(check, wanted, optional_file(check, check.name + ".pub"));
  if (!signature) {
    if (key)
      check.find(Verdict::kDiffers,
                 fmt::format("{} is missing: {} is not signed", check.path(check.name + ".sig"), check.name));
    else
      check.leave(fmt::format("who published it: {} is not signed", check.name));
    return;
  }
  if (!key) {
    check.find(Verdict::kCannotCheck, fmt::format("{}: there is no key to check it with; name it with --key",
                                                  check.path(check.name + ".sig")));
    return;
  }
  if (!key->has_signed(check.text, *signature)) {
    check.find(Verdict::kDiffers,
               fmt::format("{} is not the signature of this {} by the key {}: one of them was changed",
                           check.path(check.name + ".sig"), check.name, key->fingerprint()));
    return;
  }
  check.audit.key = key->fingerprint();
  check.show(fmt::format("{} was signed by the key {}{}", check.name, key->fingerprint(),
                         wanted ? ", as given" : ""));
  if (!wanted)
    check.leave(
        "whose key that is: compare it with the publisher's (--key PUBLISHER.pem). Any forger can sign with "
        "a key of his own");
}

void check_time(BundleCheck& check, const std::string& authority) {
  if (const auto request = optional_file(check, check.name + ".tsq");
      request && *request != time_request(check.text))
    check.find(Verdict::kDiffers,
               fmt::format("{} is not the request for this {}", check.path(check.name + ".tsq"), check.name));
  const auto answer = optional_file(check, check.name + ".tsr");
  if (!answer) {
    if (!authority.empty())
      check.find(Verdict::kIncomplete, fmt::format("{} is missing: there is no time stamp to check",
                                                   check.path(check.name + ".tsr")));
    check.leave(fmt::format("when it was published: there is no time stamp ({}.tsr)", check.name));
    return;
  }
  const auto token = read_time_answer(*answer, check.text, authority, check.path(check.name + ".tsr"));
  if (!token.ok()) return check.find(token.error());
  check.audit.time = token->time;
  check.show(fmt::format("{} says that this {} existed at {}", token->service, check.name, token->time));
  if (!token->trusted)
    check.leave(
        "that this service is what it says: its certificate was compared with none (--time_ca CA.pem)");
}

}  // namespace

Status check_seal(BundleCheck& check) {
  std::optional<PublicKey> wanted;
  std::string authority;
  if (!check.options.key.empty()) {
    ASSIGN_OR_RETURN(const std::string pem, check.context.fs.read_file(check.options.key, kMostSealBytes));
    auto key = PublicKey::parse(pem, check.options.key);
    if (!key.ok()) return invalid_argument("--key: " + key.error().message());
    wanted = std::move(*key);
  }
  if (!check.options.time_authority.empty()) {
    ASSIGN_OR_RETURN(authority, check.context.fs.read_file(check.options.time_authority, kMostSealBytes));
    if (authority.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
      return invalid_argument(
          fmt::format("--time_ca {}: holds no certificate (PEM)", check.options.time_authority));
  }
  check_signature(check, wanted);
  check_time(check, authority);
  return {};
}

}  // namespace ostro::bundle
