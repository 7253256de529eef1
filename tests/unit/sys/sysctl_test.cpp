// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <dtmalloc/sys/sysctl.hpp>

namespace dtmalloc {
namespace {

SysctlTree some_tree() {
  SysctlTree tree;
  tree.add({.name = "vm.kmem_zmax", .read = [] { return std::string("65536"); }});
  tree.add_subtree("vm.uma", [] {
    return std::vector<SysctlNode>{{.name = "vm.uma.malloc_16.size"},
                                   {.name = "vm.uma.malloc_16.keg.ipers"},
                                   {.name = "vm.uma.malloc_1.size"}};
  });
  tree.add({.name = "vm.uma_kmem_total"});
  return tree;
}

TEST(Sysctl, FindsExactNamesOnly) {
  const SysctlTree tree = some_tree();
  ASSERT_TRUE(tree.find("vm.kmem_zmax").has_value());
  EXPECT_EQ(tree.find("vm.kmem_zmax")->read(), "65536");
  EXPECT_TRUE(tree.find("vm.uma.malloc_16.keg.ipers").has_value());
  EXPECT_FALSE(tree.find("vm.uma.malloc_16").has_value());
  EXPECT_FALSE(tree.find("vm.uma.malloc_2.size").has_value());
  EXPECT_FALSE(tree.find("vm").has_value());
}

TEST(SysctlDeathTest, ANameIsTakenOnce) {
  SysctlTree tree = some_tree();
  EXPECT_DEATH(tree.add({.name = "vm.kmem_zmax"}), "two sysctl nodes of one name");
}

TEST(Sysctl, ListsWhatLiesBelowAName) {
  const SysctlTree tree = some_tree();
  auto names = [&](std::string_view top) {
    std::string out;
    for (const SysctlNode& node : tree.list(top)) out += node.name + "\n";
    return out;
  };
  EXPECT_EQ(names("vm.uma.malloc_1"), "vm.uma.malloc_1.size\n");
  EXPECT_EQ(names("vm.uma.malloc_16.keg"), "vm.uma.malloc_16.keg.ipers\n");
  EXPECT_EQ(names("vm.uma_kmem_total"), "vm.uma_kmem_total\n");
  EXPECT_EQ(names(""),
            "vm.kmem_zmax\nvm.uma.malloc_16.size\nvm.uma.malloc_16.keg.ipers\n"
            "vm.uma.malloc_1.size\nvm.uma_kmem_total\n");
  EXPECT_EQ(tree.names().size(), 5u);
}

}  // namespace
}  // namespace dtmalloc
