// SPDX-License-Identifier: BSD-2-Clause
// Stability attributes: their order, their texts, those of a description.
// Counterpart:  dt_attr.c, dt_provider.c (dtrace_probe_info)
#pragma once

#include <dtmalloc/dtrace/probe.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dtmalloc::dtrace {

inline constexpr Attribute kMostStable{Stability::standard, Stability::standard,
                                       DependencyClass::common};
// Of a program's own names.
inline constexpr Attribute kProgramAttribute{Stability::stable, Stability::stable,
                                             DependencyClass::common};
// Of the kernel's symbols and types.
inline constexpr Attribute kKernelAttribute{Stability::private_, Stability::private_,
                                            DependencyClass::unknown};
// Of a description that names no provider.
inline constexpr Attribute kUnknownProvider{Stability::unstable, Stability::unstable,
                                            DependencyClass::common};

// Component by component.
Attribute least(const Attribute& a, const Attribute& b);
// Some component is less.
bool is_below(const Attribute& attribute, const Attribute& minimum);
std::string to_string(const Attribute& attribute);  // "Stable/Stable/Common"
std::optional<Attribute> parse_attribute(std::string_view text);
// Of the fields that a description gives. `provider`: the attributes of the provider it names, if
// it names one that exists.
Attribute description_attribute(const ProbeDescription& description,
                                const ProviderAttributes* provider);

}  // namespace dtmalloc::dtrace
