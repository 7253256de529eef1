// SPDX-License-Identifier: BSD-2-Clause
// Stability attributes.
#include "dtrace/dif/attributes.hpp"

#include <algorithm>
#include <cctype>

namespace dtmalloc::dtrace {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// The value, up to `last`, whose text this is.
template <typename Enum>
bool parse_word(std::string_view text, Enum last, Enum* value) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    *value = static_cast<Enum>(i);
    if (same_word(text, to_string(*value))) return true;
  }
  return false;
}

}  // namespace

Attribute least(const Attribute& a, const Attribute& b) {
  return {std::min(a.name, b.name), std::min(a.data, b.data), std::min(a.dependency, b.dependency)};
}

bool is_below(const Attribute& attribute, const Attribute& minimum) {
  return attribute.name < minimum.name || attribute.data < minimum.data ||
         attribute.dependency < minimum.dependency;
}

std::string to_string(const Attribute& attribute) {
  std::string text(to_string(attribute.name));
  text += '/';
  text += to_string(attribute.data);
  text += '/';
  text += to_string(attribute.dependency);
  return text;
}

std::optional<Attribute> parse_attribute(std::string_view text) {
  const std::size_t first = text.find('/');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = text.find('/', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  Attribute attribute{};
  if (!parse_word(text.substr(0, first), Stability::standard, &attribute.name) ||
      !parse_word(text.substr(first + 1, second - first - 1), Stability::standard,
                  &attribute.data) ||
      !parse_word(text.substr(second + 1), DependencyClass::common, &attribute.dependency)) {
    return std::nullopt;
  }
  return attribute;
}

Attribute description_attribute(const ProbeDescription& description,
                                const ProviderAttributes* provider) {
  if (provider == nullptr || description.provider.empty() || is_glob(description.provider)) {
    return kUnknownProvider;
  }
  Attribute attribute = provider->provider;
  if (!description.module.empty()) attribute = least(attribute, provider->module);
  if (!description.function.empty()) attribute = least(attribute, provider->function);
  if (!description.name.empty()) attribute = least(attribute, provider->name);
  return attribute;
}

}  // namespace dtmalloc::dtrace
