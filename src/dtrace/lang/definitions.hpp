// SPDX-License-Identifier: BSD-2-Clause
// What programs define besides variables and types: inlines, translators, providers. All programs
// of a consumer share them.
// Counterpart:  dt_idnode_t, dt_xlator_t, dt_provider_t
// Invariants:   the trees are typed, and are not typed again: they mean the same at each use. They
//               stand for each use, so what uses them is no tree but a graph without cycles.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dtrace/dif/attributes.hpp"
#include "dtrace/lang/ast.hpp"

namespace dtmalloc::dtrace {

// A name inside a definition: the key of an inline, the input of a translator.
struct Binding {
  std::string name;
  TypeId type = kNoType;
  bool userland = false;
  const Node* argument = nullptr;  // while code of a use is generated
};

struct InlineDefinition {
  std::string name;
  TypeId type = kNoType;
  bool userland = false;
  bool array = false;
  std::deque<Binding> parameters;
  const Node* body = nullptr;
  Attribute attribute = kMostStable;
  std::uint32_t version = 0;  // of the language that brought it: #pragma D binding
};

struct Translator {
  TypeId output = kNoType;  // a struct or union
  Binding input;
  struct Conversion {
    std::string member;
    const Node* value;
  };
  std::vector<Conversion> members;
  Attribute attribute = kMostStable;

  const Node* find(const std::string& member) const {
    for (const Conversion& conversion : members) {
      if (conversion.member == member) return conversion.value;
    }
    return nullptr;
  }
};

struct ProviderDefinition {
  std::string name;
  struct Probe {
    std::string name;
    std::vector<TypeId> input, output;
    bool has_output = false;
  };
  std::vector<Probe> probes;
};

struct Definitions {
  std::vector<std::unique_ptr<InlineDefinition>> inlines;
  std::vector<std::unique_ptr<Translator>> translators;
  std::vector<ProviderDefinition> providers;
  std::map<std::size_t, std::uint32_t> versions;  // of variables that #pragma D binding names
  std::vector<std::deque<Node>> trees;            // of the programs that defined something

  std::size_t size() const { return inlines.size() + translators.size() + providers.size(); }
};

}  // namespace dtmalloc::dtrace
