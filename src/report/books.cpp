// SPDX-License-Identifier: BSD-2-Clause
// Copies what a kernel's ledger knows.

#include <algorithm>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/report/ledger.hpp>
#include <dtmalloc/report/report.hpp>
#include <map>
#include <tuple>

#include "sys/visible.hpp"

namespace dtmalloc::report {
namespace {

std::vector<LeakSite> sites_of(const Ledger& ledger, const Kernel& kernel, std::uint64_t now) {
  std::map<std::tuple<std::string, bool, std::uint64_t, std::vector<std::string>>, LeakSite> sites;
  for (const LedgerBlock& block : ledger.live()) {
    const std::uint64_t size = block.size_class;
    LeakSite& site = sites[{block.type, block.guarded, size, block.allocated.stack}];
    if (site.blocks == 0 || block.allocated.sequence < site.first) {
      site.first = block.allocated.sequence;
      site.address = block.address;
      site.age = now - std::min(now, block.allocated.time);
    }
    ++site.blocks;
    site.bytes += block.bytes;
    site.requested += block.request;
  }
  std::vector<LeakSite> out;
  for (auto& [key, site] : sites) {
    std::uint64_t size = 0;
    std::tie(site.type, site.guarded, size, site.stack) = key;
    site.zone = site.guarded ? "guarded"
                : size == 0
                    ? "pages"
                    : (kernel.release().zone_prefix ? "malloc-" : "") + std::to_string(size);
    out.push_back(std::move(site));
  }
  std::sort(out.begin(), out.end(), [](const LeakSite& a, const LeakSite& b) {
    return std::tuple(b.bytes, b.blocks, a.first) < std::tuple(a.bytes, a.blocks, b.first);
  });
  return out;
}

}  // namespace

Books take_books(Kernel& kernel) {
  DTM_CHECK(kernel.ledger() != nullptr, "this report wants a kernel with a ledger");
  const Ledger& ledger = *kernel.ledger();
  Books books;
  books.now = kernel.cpus().clock().now();
  books.types = ledger.types();
  books.total = ledger.total();
  books.classes = ledger.classes();
  books.sites = sites_of(ledger, kernel, books.now);
  books.mismatches = ledger.mismatches();
  books.findings = ledger.findings();
  books.dropped = ledger.dropped();
  books.bounds = ledger.config();
  if (books.bounds.series != 0) books.series = ledger.series();
  return books;
}

AddressHistory take_history(Kernel& kernel, std::string name, std::uint64_t address) {
  DTM_CHECK(kernel.ledger() != nullptr, "this report wants a kernel with a ledger");
  const Ledger& ledger = *kernel.ledger();
  AddressHistory history;
  history.name = std::move(name);
  history.address = address;
  history.past = ledger.past(address);
  history.around = ledger.block(address);
  if (history.around && history.around->address == address)
    history.live = std::exchange(history.around, std::nullopt);
  for (const Finding& finding : ledger.findings())
    if (finding.address == address || finding.base == address) history.findings.push_back(finding);
  const LedgerDropped dropped = ledger.dropped();
  history.forgotten = dropped.past + dropped.blocks != 0;
  return history;
}

std::string print_type_names(const Kernel& kernel) {
  std::string out;
  for (const malloc_type* type : kernel.types()) out += visible(type->ks_shortdesc) + '\n';
  return out;
}

std::string print_type_names_json(const Kernel& kernel) {
  std::string out;
  for (const malloc_type* type : kernel.types())
    out += (out.empty() ? "" : ",") + json_string(type->ks_shortdesc);
  return "{\"types\":[" + out + "]}\n";
}

}  // namespace dtmalloc::report
