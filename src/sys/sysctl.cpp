// SPDX-License-Identifier: BSD-2-Clause
// Looking up sysctl names.
#include <dtmalloc/sys/error.hpp>
#include <dtmalloc/sys/sysctl.hpp>

namespace dtmalloc {
namespace {

// Whether `name` is `top` or lies below it.
bool within(std::string_view name, std::string_view top) {
  if (top.empty() || name == top) return true;
  return name.starts_with(top) && name[top.size()] == '.';
}

}  // namespace

void SysctlTree::add(SysctlNode node) {
  for (const Entry& entry : entries_)
    DTM_CHECK(entry.subtree || entry.node.name != node.name, "two sysctl nodes of one name");
  entries_.push_back({std::move(node), {}});
}

void SysctlTree::add_subtree(std::string prefix, std::function<std::vector<SysctlNode>()> nodes) {
  entries_.push_back({{.name = std::move(prefix)}, std::move(nodes)});
}

std::optional<SysctlNode> SysctlTree::find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (!entry.subtree) {
      if (entry.node.name == name) return entry.node;
    } else if (within(name, entry.node.name)) {
      for (SysctlNode& node : entry.subtree())
        if (node.name == name) return std::move(node);
    }
  }
  return std::nullopt;
}

std::vector<SysctlNode> SysctlTree::list(std::string_view name) const {
  std::vector<SysctlNode> out;
  for (const Entry& entry : entries_) {
    if (!entry.subtree) {
      if (within(entry.node.name, name)) out.push_back(entry.node);
    } else if (within(entry.node.name, name) || within(name, entry.node.name)) {
      for (SysctlNode& node : entry.subtree())
        if (within(node.name, name)) out.push_back(std::move(node));
    }
  }
  return out;
}

std::vector<std::string> SysctlTree::names() const {
  std::vector<std::string> out;
  for (const SysctlNode& node : list("")) out.push_back(node.name);
  return out;
}

}  // namespace dtmalloc
