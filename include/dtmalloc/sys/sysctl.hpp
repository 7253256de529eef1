// SPDX-License-Identifier: BSD-2-Clause
// SysctlTree: the variables of one machine under sysctl(8)'s names.
//
// Example:
//   tree.add({.name = "vm.kmem_zmax", .read = [] { return std::string("65536"); }, .tunable =
//   true}); std::string text = tree.find("vm.kmem_zmax")->read();          // "65536" for (const
//   SysctlNode& node : tree.list("vm.uma")) ...
//
// Units:         text, as sysctl(8) prints it after "name: ".
// Errors:        write() returns an errno; find() nothing for an unknown name.
// Thread safety: nodes are added while the machine boots; looking is safe from any thread, and a
//                node's functions are as safe as what they read.
// Source:        sysctl(8), sysctl(9), loader.conf(5); spec/malloc9.md 7.1.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc {

struct SysctlNode {
  std::string name;                         // "vm.uma.malloc_16.keg.ipers"
  std::string description = {};             // as sysctl -d prints it
  std::function<std::string()> read = {};   // the value as text
  std::function<std::string()> bytes = {};  // an opaque node's value; such a node has no text
  std::string format = {};                  // of an opaque node, as sysctl -o prints it
  std::function<int(std::string_view)> write = {};  // errno; none: read-only
  bool tunable = false;                             // may be set before boot
};

class SysctlTree {
 public:
  void add(SysctlNode node);
  // Nodes that come and go: asked for at each look. Their names begin with `prefix` and a dot.
  void add_subtree(std::string prefix, std::function<std::vector<SysctlNode>()> nodes);

  // The node of exactly this name.
  std::optional<SysctlNode> find(std::string_view name) const;
  // The node `name` or all nodes below it, in order of registration; "": all.
  std::vector<SysctlNode> list(std::string_view name) const;
  // Every name, for suggestions.
  std::vector<std::string> names() const;

 private:
  struct Entry {
    SysctlNode node;
    std::function<std::vector<SysctlNode>()> subtree;  // node.name is its prefix
  };
  std::vector<Entry> entries_;
};

}  // namespace dtmalloc
