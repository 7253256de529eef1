# SPDX-License-Identifier: BSD-2-Clause
# Cells (cells.awk) -> the budget: what must hold, what is aimed at, what was measured.
# Out: id, what, must, aim, value, best, worst, verdict; tab-separated. Numbers are upper bounds.
# verdict: aim, must, MISSED, noisy, not measured; for what has no must: aim, short of the aim.
BEGIN {
  FS = OFS = "\t"
  npeers = split("glibc jemalloc mimalloc tcmalloc", peer, " ")
}

{
  value[$1, $2] = $5; low[$1, $2] = $6; high[$1, $2] = $7; is_noisy[$1, $2] = $8
}

# A cell becomes the current figure; take_worst keeps the larger one of several.
function clear() { have = 0; missing = 0; v = b = w = noisy = 0 }
function take(row, name) { take_scaled(row, name, 1) }
function take_scaled(row, name, by) {
  if (!((row, name) in value)) { missing = 1; return }
  keep(value[row, name] * by, low[row, name] * by, high[row, name] * by, is_noisy[row, name])
}
function keep(nv, nb, nw, nn) {
  if (!have || nv > v) { v = nv; b = nb; w = nw }
  if (nn) noisy = 1
  have = 1
}
# Over the best of the peers: the largest of the ratios.
function take_best_peer(row, by,   i, name, top) {
  top = ""
  for (i = 1; i <= npeers; i++) {
    name = "ours/" peer[i]
    if ((row, name) in value && (top == "" || value[row, name] > value[row, top])) top = name
  }
  if (top == "") { missing = 1; return }
  take_scaled(row, top, by)
}
# The same of the inlined path.
function take_inlined(row) {
  if (!((row, "ours/inlined") in value)) { missing = 1; return }
  take_best_peer(row, 1 / value[row, "ours/inlined"])
}
# One cell over another one of another row.
function take_quotient(row, name, row2, name2) {
  if (!((row, name) in value) || !((row2, name2) in value) || value[row2, name2] <= 0) {
    missing = 1
    return
  }
  keep(value[row, name] / value[row2, name2], low[row, name] / high[row2, name2],
       high[row, name] / low[row2, name2], is_noisy[row, name] || is_noisy[row2, name2])
}

function line(id, what, must, aim,   verdict) {
  if (!have || missing) {
    print id, what, must, aim, "", "", "", "not measured"
  } else {
    if (noisy) verdict = "noisy"
    else if (aim != "" && v <= aim) verdict = "aim"
    else if (must == "") verdict = "short of the aim"
    else verdict = v <= must ? "must" : "MISSED"
    printf "%s\t%s\t%s\t%s\t%.3g\t%.3g\t%.3g\t%s\n", id, what, must, aim, v, b, w, verdict
  }
  clear()
}

END {
  clear()
  n = split("16 32 64 128 256 384 512 1024", small, " ")
  m = split("4096 8192 16384 32768 65536", big, " ")
  for (i = 1; i <= n; i++) take("pairs/tight/" small[i], "ours/mimalloc")
  line("G1", "tight pair, worst class of 16 to 1024 bytes, over mimalloc", 0.6, "")
  for (i = 1; i <= n; i++) take_best_peer("pairs/tight/" small[i], 1)
  line("G1", "the same over the best peer", 1.05, "")
  for (i = 1; i <= n; i++) take_inlined("pairs/tight/" small[i])
  line("G1", "the same, inlined", "", 0.8)
  for (i = 1; i <= m; i++) take("pairs/tight/" big[i], "ours/mimalloc")
  line("G2", "tight pair, worst class of 4 to 64 KiB, over mimalloc", 0.35, "")
  for (i = 1; i <= m; i++) take_best_peer("pairs/tight/" big[i], 1)
  line("G2", "the same over the best peer", 0.85, 0.6)

  take_best_peer("pairs/random/8-1024/types:64", 1)
  line("G3", "random 8-1024 bytes, 10,000 live, 64 types, over the best peer", 1.10, "")
  take_inlined("pairs/random/8-1024/types:64")
  line("G3", "the same, inlined", 1.05, 0.95)
  take_best_peer("pairs/random/16-64K", 1)
  line("G4", "random 16 bytes to 64 KiB over the best peer", 1.0, 0.9)

  take_best_peer("threads/handed/64", 1)
  take_best_peer("threads/handed/8-1024", 1)
  line("G5", "producer and consumer over the best peer", 0.2, 0.1)
  take_best_peer("threads/private/8-1024/unwritten/threads:2", 1)
  line("G6", "two threads, blocks not written, over the best peer", 1.1, 1.0)
  take_best_peer("threads/private/8-1024/written/threads:2", 1)
  line("G6", "two threads, blocks written, over the best peer", 1.4, 1.0)

  take("instructions", "pair")
  line("G7", "instructions of a pair, out of line", 64, 52)
  take("instructions", "pair inlined")
  line("G7", "instructions of a pair, inlined", 48, 36)
  take("instructions", "saved registers")
  line("G7", "registers saved by kern_malloc and kern_free", 0, 0)
  take("instructions", "disabled probe")
  line("G8", "instructions of a disabled probe", 3, 2)
  take("pairs/tight/64", "ours/absent")
  take("pairs/random/8-1024/types:64", "ours/absent")
  line("G8", "disabled probes in time: a pair over one without hooks", 1.05, 1.02)
  take("instructions", "statistics")
  line("G9", "instructions of the statistics, a pair", 14, 10)

  take("pairs/tight/64", "firing")
  line("G10", "empty hook, ns a firing", 3, 2)
  take("instructions", "firing enabled")
  line("G10", "empty hook, instructions a firing", 30, "")
  take("probe/callback/malloc_and_free", "firing")
  line("G10", "empty C++ callback of the framework, ns a firing", 3, 2)
  take("probe/program/count_by_probefunc", "firing")
  line("G11", "count() by probe, ns a firing", 4, 2.5)
  take("probe/program/count_by_pointer", "firing")
  line("G11", "count() by pointer, ns a firing", 4, 2.5)
  take_quotient("probe/program/count_by_probefunc", "firing", "probe/lttng/enabled", "firing")
  take_quotient("probe/program/count_by_pointer", "firing", "probe/lttng/enabled", "firing")
  line("G11", "count() over an event of LTTng-UST", 0.0333, "")
  line("G11", "count() over that of bpftrace", 0.01, "")
  take("probe/program/count_by_shortdesc", "firing")
  line("G12", "count() by type name, ns a firing", 5, 3)
  take("probe/program/quantize", "firing")
  line("G12", "quantize(arg3), ns a firing", 6, 3)
  take("probe/program/predicate_count", "firing")
  line("G13", "predicate and count(), ns a firing", 15, 5)
  take_scaled("probe/program/predicate_count", "firing", 1 / 11)
  line("G13", "the same, ns an instruction of its 11", 1, "")
  take("probe/program/record_2", "firing")
  line("G14", "record of 32 bytes without a clock, ns a firing", 5, 3)
  take_quotient("probe/program/record_2_clock", "firing", "probe/lttng/enabled", "firing")
  line("G14", "record with the host's clock over an event of LTTng-UST", 0.2, "")

  take("types/operations/cpus:4", "many/types:64")
  line("G15", "10,000 types over 64 types on 4 CPUs", 1.7, 1.4)
  take("types/resident/10000 types/4 of 64 cpus", "resident")
  line("G15", "MiB resident for 10,000 types on 4 CPUs", 4, 3)
  take("types/vmstat-m/10000 types/64 cpus", "report")
  line("G15", "report of 10,000 types, ms", 5, 2)
  take("replay/binary", "replay")
  line("G16", "replay of a binary trace, ns an operation (50 and 70 M ops/s)", 20, 14.3)
  take("replay/text", "replay")
  line("G16", "replay of a text trace, ns an operation (10 and 20 M ops/s)", 100, 50)
  take("replay/parse", "parse")
  line("G16", "text parsed and checked, ns a byte (500 and 800 MB/s)", 2, 1.25)
  take("replay/parse", "parse/newlines")
  line("G16", "text parse over finding the newlines", 4, "")
  take_quotient("replay/text", "replay", "replay/binary", "replay")
  line("G16", "text over binary", 4, "")
}
