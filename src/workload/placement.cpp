// SPDX-License-Identifier: BSD-2-Clause
// Where a block is to come from: sets of NUMA domains, ranges of physical addresses.

#include <array>

#include "workload/parser.hpp"
#include "workload/runner.hpp"

namespace dtmalloc::workload {
namespace {

using Set = Placement::Set;

struct SetName {
  std::string_view name;
  Set set;
  bool numbered;
};
constexpr std::array<SetName, 6> kSets{{{"rr", Set::roundrobin, false},
                                        {"ft", Set::firsttouch, false},
                                        {"il", Set::interleave, false},
                                        {"pref", Set::prefer, true},
                                        {"fixed", Set::fixed, true},
                                        {"mask", Set::mask, true}}};
constexpr const char* kExpected = "rr ft il pref:N fixed:N mask:0x3 empty";

}  // namespace

void Parser::domain_set(Placement& placement) {
  skip_blanks();
  const char* start = place_;
  while (place_ < end_ && (next_is_word() || *place_ == ':' || (*place_ >= '0' && *place_ <= '9')))
    ++place_;
  const std::string_view text(start, static_cast<std::size_t>(place_ - start));
  if (text == "empty") {
    placement.set = Set::mask;
    return;
  }
  const std::size_t colon = text.find(':');
  for (const SetName& known : kSets) {
    if (known.name != text.substr(0, colon) || known.numbered != (colon != text.npos)) continue;
    placement.set = known.set;
    if (!known.numbered) return;
    const auto number = parse_count(text.substr(colon + 1));
    const std::uint64_t limit = known.set == Set::mask ? 1u << kMaxDomains : kMaxDomains;
    if (!number || *number >= limit) {
      fail("WL_NUMBER", text, "\"" + std::string(text.substr(colon + 1)) + "\" is no such number",
           known.set == Set::mask ? "a mask of domains 0 to 7" : "a domain, 0 to 7");
    }
    placement.number = static_cast<std::uint32_t>(*number);
    return;
  }
  if (text.empty()) fail_here("WL_SYNTAX", "a set of domains is missing", kExpected);
  std::vector<std::string> names{"empty"};
  for (const SetName& known : kSets) names.emplace_back(known.name);
  fail("WL_DOMAIN_SET", text, "unknown set of domains " + std::string(text), kExpected,
       nearest_names(text.substr(0, colon), names));
}

void Parser::address_range(Placement& placement) {
  while (true) {
    skip_blanks();
    const std::string_view key = peek_word();
    if (key.empty() || key == "cpu") return;
    std::optional<std::uint64_t>* slot = key == "low"        ? &placement.low
                                         : key == "high"     ? &placement.high
                                         : key == "align"    ? &placement.align
                                         : key == "boundary" ? &placement.boundary
                                                             : nullptr;
    if (slot == nullptr) {
      static const std::vector<std::string> kKeys{"low", "high", "align", "boundary"};
      fail("WL_UNKNOWN_ATTRIBUTE", key, "unknown attribute " + std::string(key),
           "low= high= align= boundary=", nearest_names(key, kKeys));
    }
    if (slot->has_value()) fail("WL_REDECLARED", key, std::string(key) + " is set twice");
    place_ += key.size();
    if (!eat('=')) fail_here("WL_SYNTAX", "an attribute lacks its value", "\"=\"");
    skip_blanks();
    *slot = static_cast<std::uint64_t>(number(Context::size));
  }
}

std::string print_domain_set(const Placement& placement) {
  if (placement.set == Set::mask) {
    if (placement.number == 0) return "empty";
    static constexpr char kHex[] = "0123456789abcdef";
    std::string digits;
    for (std::uint32_t rest = placement.number; rest != 0; rest >>= 4)
      digits.insert(digits.begin(), kHex[rest & 15]);
    return "mask:0x" + digits;
  }
  for (const SetName& known : kSets)
    if (known.set == placement.set)
      return std::string(known.name) +
             (known.numbered ? ':' + std::to_string(placement.number) : "");
  return {};
}

domainset to_domainset(const Placement& placement) {
  switch (placement.set) {
    case Set::firsttouch:
      return *DOMAINSET_FT();
    case Set::interleave:
      return *DOMAINSET_IL();
    case Set::prefer:
      return *DOMAINSET_PREF(placement.number);
    case Set::fixed:
      return *DOMAINSET_FIXED(placement.number);
    case Set::mask:
      return make_domainset(placement.number, DOMAINSET_POLICY_ROUNDROBIN);
    default:
      return *DOMAINSET_RR();
  }
}

}  // namespace dtmalloc::workload
