#include "ostro/dist/reach.h"

#include <fmt/format.h>

#include <charconv>

#include "ostro/base/net/listen.h"

namespace ostro::dist {
namespace {

Status check_ports(const Reach& reach) {
  if (reach.advertised && reach.advertised->ports) {
    const PortRange& told = *reach.advertised->ports;
    if (reach.ports.any())
      return invalid_argument(
          fmt::format("ports {} are advertised, and trainer.worker_ports does not say to which ports of this "
                      "worker they lead; name as many there",
                      ports_text(told)));
    if (told.count() != reach.ports.count())
      return invalid_argument(
          fmt::format("ports {} are advertised, and trainer.worker_ports is {}: {} and {} ports; the n-th of "
                      "one leads to "
                      "the n-th of the other, so name as many",
                      ports_text(told), ports_text(reach.ports), told.count(), reach.ports.count()));
  }
  if (!reach.advertised && is_any_address(reach.bind))
    return invalid_argument(
        fmt::format("a worker that listens at {} has no address to tell the others; bind to one that they "
                    "reach (auto: the one towards the coordinator), or advertise one",
                    reach.bind));
  return {};
}

}  // namespace

Result<AdvertisedHost> parse_advertised(const std::string& text) {
  AdvertisedHost out{text, std::nullopt};
  const bool bracketed = text.starts_with('[');
  const size_t end = bracketed ? text.find(']') : text.find(':');
  const size_t colon = bracketed && end != std::string::npos ? end + 1 : end;
  // An IPv6 address without brackets has no port.
  const bool has_ports = colon < text.size() && (bracketed || text.find(':', colon + 1) == std::string::npos);
  if (has_ports) {
    const auto ports = parse_ports(text.substr(colon + 1));
    if (text[colon] != ':' || !ports.ok())
      return invalid_argument(fmt::format(
          "{}: an advertised host is HOST, HOST:PORT or HOST:FIRST-LAST, as node3:40000-40009; an "
          "IPv6 address with ports stands in brackets",
          text));
    out.ports = *ports;
    out.host = text.substr(0, colon);
  }
  if (bracketed && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty() || out.host.find_first_of(" []\t\n") != std::string::npos)
    return invalid_argument(fmt::format("{}: names no host that others could be told", text));
  return out;
}

Status check_reach(const Reach& reach) {
  if (reach.use == RelayUse::kAlways) {
    if (!reach.advertised) return {};
    return invalid_argument(fmt::format(
        "{} is advertised, and with trainer.relay: always this worker does not listen; leave one out",
        reach.advertised->host));
  }
  const auto listens = listen_at(reach, 1);
  return listens.ok() ? Status() : Status(listens.error());
}

Result<Listener> listen_at(const Reach& reach, int backlog) {
  RETURN_IF_ERROR(check_ports(reach));
  ASSIGN_OR_RETURN(Listener listener, listen_at(reach.bind, backlog, reach.ports));
  if (!reach.advertised) return listener;
  listener.host = reach.advertised->host;
  if (!reach.advertised->ports) return listener;
  int port = 0;
  std::from_chars(listener.port.data(), listener.port.data() + listener.port.size(), port);
  listener.port = std::to_string(reach.advertised->ports->first + port - reach.ports.first);
  return listener;
}

}  // namespace ostro::dist
