// SPDX-License-Identifier: BSD-2-Clause
// Call sites, their program counters and their names.
#include "sys/call_sites.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace dtmalloc {
namespace {

TEST(CallSites, APlaceInAFunction) {
  CallSites sites;
  const std::uint64_t foo = sites.pc("foo+0x1c");
  EXPECT_EQ(sites.pc("foo+0x1c"), foo);
  EXPECT_EQ(sites.pc("foo"), foo - 0x1c);
  EXPECT_EQ(sites.pc("foo+0x20"), foo + 4);
  const auto code = sites.at(foo);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->module, "kernel");
  EXPECT_EQ(code->function, "foo");
  EXPECT_EQ(code->start, foo - 0x1c);
  EXPECT_FALSE(sites.at(code->start - 1));
  EXPECT_FALSE(sites.at(code->start + code->size));
  EXPECT_EQ(sites.find("", "foo")->start, code->start);
  EXPECT_EQ(sites.find("kernel", "foo")->start, code->start);
  EXPECT_FALSE(sites.find("m", "foo"));
}

TEST(CallSites, Modules) {
  CallSites sites;
  const std::uint64_t kernel = sites.pc("f");
  const std::uint64_t module = sites.pc("m.ko`f+0x8");
  EXPECT_NE(module, kernel + 8);
  EXPECT_EQ(sites.first("m.ko")->start, module - 8);
  EXPECT_EQ(sites.at(module)->module, "m.ko");
  EXPECT_FALSE(sites.first("n.ko"));
  EXPECT_EQ(sites.print({module}).substr(22), "at m.ko`f+0x8\n");
}

TEST(CallSites, AFunctionThatProvesLarger) {
  CallSites sites;
  const std::uint64_t small = sites.pc("f+0x10");
  const std::uint64_t large = sites.pc("f+0x123456");
  EXPECT_EQ(sites.at(small)->function, "f");
  EXPECT_EQ(sites.at(large)->function, "f");
  EXPECT_EQ(large - sites.at(large)->start, 0x123456u);
  EXPECT_EQ(sites.pc("f+0x10"), small);
}

TEST(CallSites, NamesThatAreNoPlaces) {
  CallSites sites;
  for (const char* name :
       {"", "[unknown]", "+0x1", "f+0x", "f+0xzz", "f+0xffffffffffffffff", "`x"}) {
    const std::uint64_t pc = sites.pc(name);
    EXPECT_NE(pc, 0u) << name;
    ASSERT_TRUE(sites.at(pc)) << name;
    EXPECT_EQ(sites.at(pc)->start, pc) << name;
  }
  EXPECT_EQ(sites.print({1}), "#0 0x1 at ??\n");
}

TEST(CallSites, ThreadsAgree) {
  CallSites sites;
  std::vector<std::uint64_t> seen[4];
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) mine.push_back(sites.pc("f" + std::to_string(i % 500)));
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& other : seen) EXPECT_EQ(other, seen[0]);
}

}  // namespace
}  // namespace dtmalloc
