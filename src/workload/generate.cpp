// SPDX-License-Identifier: BSD-2-Clause
// Workloads from a seed.
// Invariants:   a block is live in at most one list; the order in which operations are made is one
//               in which no thread waits for another
// Differs:      integers only, so that no platform rounds differently

#include <array>
#include <dtmalloc/sys/error.hpp>
#include <dtmalloc/vm/domainset.hpp>
#include <dtmalloc/workload/generate.hpp>
#include <dtmalloc/workload/workload.hpp>

#include "workload/random.hpp"

namespace dtmalloc::workload {
namespace {

struct Block {
  std::size_t name;
  int type;     // 0: M_TEMP, i: M_GEN<i>
  bool contig;  // realloc refuses it
};

struct Item {
  std::size_t name;
  int zone;
};

// What zones are made of, in turn. Items of a limited one are asked for with M_NOWAIT: nobody
// sleeps for what its own thread holds.
struct ZoneKind {
  std::uint32_t size;
  const char* attributes;
  bool limited;
};
constexpr std::array<ZoneKind, 6> kZoneKinds{{{24, "", false},
                                              {1000, " limit=60", true},
                                              {64, " flags=NOFREE", false},
                                              {200, " align=64 flags=NOBUCKET", false},
                                              {5000, " flags=MAXBUCKET|NOTRIM", false},
                                              {320, " limit=40 flags=ZINIT|ROUNDROBIN", true}}};
const ZoneKind& zone_kind(int zone) {
  return kZoneKinds[static_cast<std::size_t>(zone) % kZoneKinds.size()];
}

class Generator {
 public:
  explicit Generator(const GenerateOptions& options)
      : o_(options),
        random_(options.seed),
        actors_(options.threads == 0 ? 1 : static_cast<std::size_t>(options.threads)) {
    for (const SizeRange& range : o_.sizes) weight_ += range.weight;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      actors_[i].cpu = o_.threads == 0 ? 0 : static_cast<int>(i) % o_.cpus;
      actors_[i].first_cpu = actors_[i].cpu;
    }
  }

  std::string text() {
    for (std::size_t i = 0; i < o_.operations; ++i) {
      ebb_ = o_.wave != 0 && i / o_.wave % 2 != 0;
      operation();
    }
    return header() + (o_.threads == 0 ? actors_[0].text : threads()) + closing_frees();
  }

 private:
  struct Actor {
    std::string text;
    std::vector<Block> live;
    std::vector<Item> items;
    int cpu = 0, first_cpu = 0;
  };

  bool chance(int percent) { return random_.below(100) < static_cast<std::uint64_t>(percent); }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + random_.below(high - low + 1);
  }
  std::uint64_t size() {
    std::uint64_t at = random_.below(weight_);
    for (const SizeRange& range : o_.sizes) {
      if (at < range.weight) return between(range.low, range.high);
      at -= range.weight;
    }
    return 1;
  }
  // malloc_exec and contigmalloc take no empty request.
  std::uint64_t some_size() { return size() | 1; }

  static std::string symbol(int type) {
    return type == 0 ? "M_TEMP" : "M_GEN" + std::to_string(type);
  }
  static std::string name(const Block& block) { return "b" + std::to_string(block.name); }

  // Draws are statements of their own: the order of evaluation inside an expression is the
  // compiler's.
  std::string flags() {
    std::string text = chance(o_.nowait_share) ? " M_NOWAIT" : " M_WAITOK";
    if (chance(o_.zero_share)) text += "|M_ZERO";
    return text;
  }

  // Each kind of set with domains that the machine has.
  std::string domain_set() {
    const auto domains = static_cast<std::uint64_t>(o_.domains);
    const std::string domain = std::to_string(random_.below(domains));
    const std::uint64_t mask = between(1, (std::uint64_t{1} << domains) - 1);
    switch (random_.below(6)) {
      case 0:
        return "rr";
      case 1:
        return "ft";
      case 2:
        return "il";
      case 3:
        return "pref:" + domain;
      case 4:
        return "fixed:" + domain;
      default:
        return "mask:" + std::to_string(mask);
    }
  }

  Block take(std::vector<Block>& live, std::size_t at) {
    const Block block = live[at];
    live[at] = live.back();
    live.pop_back();
    return block;
  }

  void operation() {
    Actor& actor = actors_[random_.below(actors_.size())];
    if (o_.cpus > 1 && chance(o_.other_cpu_share)) {
      actor.cpu = static_cast<int>(random_.below(static_cast<std::uint64_t>(o_.cpus)));
      line(actor, "cpu " + std::to_string(actor.cpu));
    }
    if (o_.zones > 0 && chance(o_.zone_share)) return zone_operation(actor);
    const int kind = static_cast<int>(random_.below(100));
    const int others = o_.realloc_share + o_.other_share;
    const int frees = ebb_ ? 100 - others - o_.free_share : o_.free_share;
    if (kind < frees) {
      if (free(actor)) return;
    } else if (kind < frees + o_.realloc_share) {
      if (reallocate(actor)) return;
    } else if (kind < frees + others) {
      return allocate_otherwise(actor);
    }
    allocate(actor);
  }

  void allocate(Actor& actor) {
    const Block block = new_block();
    const std::uint64_t bytes = size();
    const std::string how = flags();
    line(actor,
         name(block) + " = malloc " + std::to_string(bytes) + ' ' + symbol(block.type) + how);
    actor.live.push_back(block);
  }

  void allocate_otherwise(Actor& actor) {
    Block block = new_block();
    std::string call;
    const std::uint64_t kind = random_.below(o_.domains > 1 ? 9 : 4);
    switch (kind) {
      case 0: {
        const std::uint64_t count = between(0, 12);
        const std::uint64_t bytes = size() / (count == 0 ? 1 : count);
        call = "mallocarray " + std::to_string(count) + ' ' + std::to_string(bytes);
        break;
      }
      case 1: {
        const std::uint64_t bytes = size();
        const std::uint64_t align = std::uint64_t{1} << between(0, 12);
        call = "malloc_aligned " + std::to_string(bytes) + ' ' + std::to_string(align);
        break;
      }
      case 2:
        call = "malloc_exec " + std::to_string(some_size());
        break;
      case 4:
        call = "malloc_domainset " + std::to_string(size());
        break;
      case 5:
        call = "malloc_domainset_exec " + std::to_string(some_size());
        break;
      case 6: {
        const std::uint64_t bytes = size();
        const std::uint64_t align = std::uint64_t{1} << between(0, 12);
        call = "malloc_domainset_aligned " + std::to_string(bytes) + ' ' + std::to_string(align);
        break;
      }
      case 7: {
        const std::uint64_t count = between(1, 12);
        const std::uint64_t bytes = size() / count;
        call = "mallocarray_domainset " + std::to_string(count) + ' ' + std::to_string(bytes);
        break;
      }
      case 8:
        call = "contigmalloc_domainset " + std::to_string(some_size());
        block.contig = true;
        break;
      default:
        call = "contigmalloc " + std::to_string(some_size());
        block.contig = true;
    }
    if (kind >= 4) call += ' ' + domain_set();
    const std::string how = flags();
    line(actor, name(block) + " = " + call + ' ' + symbol(block.type) + how);
    actor.live.push_back(block);
  }

  bool reallocate(Actor& actor) {
    if (actor.live.empty()) return false;
    const std::size_t at = random_.below(actor.live.size());
    if (actor.live[at].contig) return false;
    const Block old = take(actor.live, at);
    const Block block{names_++, old.type, false};
    const std::uint64_t bytes = size();
    const std::string how = flags();
    // A failed realloc leaves the old block, whose name nobody frees any more.
    const bool may_fail = how.find("M_NOWAIT") != std::string::npos;
    const bool keeps_old = chance(50) && !(may_fail && o_.free_all);
    line(actor, name(block) + (keeps_old ? " = realloc " : " = reallocf ") + name(old) + ' ' +
                    std::to_string(bytes) + ' ' + symbol(block.type) + how);
    actor.live.push_back(block);
    return true;
  }

  bool free(Actor& actor) {
    std::vector<Block>* live = &actor.live;
    if (actors_.size() > 1 && chance(o_.foreign_free_share)) {
      live = &actors_[random_.below(actors_.size())].live;
    }
    if (live->empty()) return false;
    const Block block = take(*live, random_.below(live->size()));
    std::string text = (chance(20) ? "zfree " : "free ") + name(block);
    if (chance(o_.wrong_type_share)) text += ' ' + symbol(any_type());
    line(actor, text);
    return true;
  }

  void zone_operation(Actor& actor) {
    const std::uint64_t kind = random_.below(20);
    const int zone = static_cast<int>(random_.below(static_cast<std::uint64_t>(o_.zones)));
    if (kind == 0) {
      static constexpr std::array<const char*, 3> kWays{"trim", "drain", "drain_cpu"};
      std::string text = std::string("reclaim ") + kWays[random_.below(kWays.size())];
      if (chance(50)) text += " zone=\"gen zone " + std::to_string(zone) + '"';
      return line(actor, text);
    }
    if (kind < 9 && !actor.items.empty()) {
      const std::size_t at = random_.below(actor.items.size());
      line(actor, free_text(actor.items[at]));
      actor.items[at] = actor.items.back();
      return actor.items.pop_back();
    }
    const Item item{names_++, zone};
    const std::string how = flags();
    line(actor, "b" + std::to_string(item.name) + " = uma_zalloc GEN" + std::to_string(zone) +
                    (zone_kind(zone).limited ? std::string(" M_NOWAIT") : how));
    actor.items.push_back(item);
  }
  static std::string free_text(const Item& item) {
    return "uma_zfree GEN" + std::to_string(item.zone) + " b" + std::to_string(item.name);
  }

  Block new_block() {
    const int type = any_type();
    return {names_++, type, false};
  }
  int any_type() {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(o_.types) + 1));
  }

  void line(Actor& actor, const std::string& text) {
    if (o_.threads != 0) actor.text += "  ";
    actor.text += text + '\n';
  }

  std::string header() const {
    std::string text = "# generated: seed " + std::to_string(o_.seed) + ", " +
                       std::to_string(o_.operations) + " operations\n";
    text += "kernel cpus=" + std::to_string(o_.cpus);
    if (o_.domains != 1) text += " domains=" + std::to_string(o_.domains);
    if (o_.mem != 0) text += " mem=" + print_size(o_.mem);
    text += " seed=" + std::to_string(o_.seed);
    if (o_.invariants) text += " invariants";
    text += '\n';
    for (int i = 1; i <= o_.types; ++i) {
      text += "type " + symbol(i) + " \"gen" + std::to_string(i) + "\"\n";
    }
    for (int i = 0; i < o_.zones; ++i) {
      text += "zone GEN" + std::to_string(i) + " \"gen zone " + std::to_string(i) +
              "\" size=" + std::to_string(zone_kind(i).size) + zone_kind(i).attributes + '\n';
    }
    return text;
  }

  std::string threads() const {
    std::string text;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      text += "thread \"gen" + std::to_string(i) +
              "\" cpu=" + std::to_string(actors_[i].first_cpu) + " {\n" + actors_[i].text + "}\n";
    }
    return text + "join\n";
  }

  std::string closing_frees() const {
    std::string text;
    if (!o_.free_all) return text;
    for (const Actor& actor : actors_) {
      for (const Block& block : actor.live) text += "free " + name(block) + '\n';
      for (const Item& item : actor.items) text += free_text(item) + '\n';
    }
    return text;
  }

  const GenerateOptions& o_;
  Random random_;
  std::vector<Actor> actors_;
  std::uint64_t weight_ = 0;
  std::size_t names_ = 0;
  bool ebb_ = false;  // allocations and frees have changed places
};

Diagnostic wrong(std::string message, std::string expected) {
  Diagnostic d;
  d.tag = "WL_GENERATE";
  d.message = std::move(message);
  d.expected = std::move(expected);
  return d;
}

}  // namespace

std::vector<SizeRange> default_sizes() {
  std::vector<SizeRange> sizes{{0, 16, 8},        {1, 128, 30},      {100, 512, 20},
                               {500, 4096, 15},   {4000, 65536, 10}, {65000, 70000, 3},
                               {60000, 300000, 4}};
  for (const std::uint64_t edge : {16u, 32u, 64u, 128u, 256u, 384u, 512u, 1024u, 2048u, 4096u,
                                   8192u, 16384u, 32768u, 65536u}) {
    sizes.push_back({edge - 1, edge + 1, 1});
  }
  return sizes;
}

std::optional<Diagnostic> check(const GenerateOptions& o) {
  if (o.cpus < 1 || o.cpus > MAXCPU)
    return wrong("a machine cannot have so many CPUs", "1 .. 1024");
  if (o.domains < 1 || o.domains > kMaxDomains)
    return wrong("a machine cannot have so many domains", "1 .. 8");
  if (o.types < 0 || o.types > 100000) return wrong("so many types cannot be made", "0 .. 100000");
  if (o.zones < 0 || o.zones > 1000) return wrong("so many zones cannot be made", "0 .. 1000");
  if (o.threads < 0 || o.threads > 10000) {
    return wrong("so many threads cannot be made", "0 .. 10000");
  }
  for (const int share :
       {o.free_share, o.realloc_share, o.other_share, o.nowait_share, o.zero_share,
        o.other_cpu_share, o.foreign_free_share, o.wrong_type_share, o.zone_share}) {
    if (share < 0 || share > 100) return wrong("a share is out of range", "0 .. 100 percent");
  }
  if (o.free_share + o.realloc_share + o.other_share > 100) {
    return wrong("the shares of the operations are more than all", "at most 100 percent");
  }
  std::uint64_t weight = 0;
  for (const SizeRange& range : o.sizes) {
    if (range.low > range.high || range.high >> 40 != 0) {
      return wrong("a range of sizes is empty or too large", "LOW .. HIGH, below 1T");
    }
    weight += range.weight;
  }
  if (weight == 0) return wrong("no size can be drawn", "a range with a weight");
  return std::nullopt;
}

std::string generate_text(const GenerateOptions& options) {
  DTM_CHECK(!check(options), "generate() wants options that check() accepts");
  return Generator(options).text();
}

Workload generate(const GenerateOptions& options) {
  Result<Workload> workload = parse(generate_text(options), "generated.wl");
  DTM_CHECK(workload.has_value(), "what is generated can be parsed");
  return std::move(*workload);
}

}  // namespace dtmalloc::workload
