# SPDX-License-Identifier: BSD-2-Clause
# What tests/build/hotpath.sh prints -> cells of the row `instructions` (cells.awk).
BEGIN { OFS = "\t" }
function cell(name, hundredths) {
  v = sprintf("%.2f", hundredths / 100)
  print "instructions", name, "instructions", "instructions", v, v, v, 0
}
/no push, no call$/ { clean++ }
/^hundredths of an instruction a pair/ {
  absent = $(NF - 2) + 0
  disabled = $NF + 0
  cell("pair", disabled)
  cell("pair without hooks", absent)
  cell("disabled probe", (disabled - absent) / 2)
}
/^hundredths of an instruction of an inlined pair/ { cell("pair inlined", $NF) }
/^hundredths of an instruction for statistics/ { cell("statistics", $NF) }
/^hundredths of an instruction a firing/ {
  sub(/:$/, "", $(NF - 1))
  cell("firing " $(NF - 1), $NF)
}
END { if (clean == 2) cell("saved registers", 0) }
