# shellcheck shell=sh
# What this machine has to offer: `machine` prints "cores N", "load N", "memory_total BYTES" and "memory_free BYTES", as far as
# it can be told. Linux has it in /proc, macOS in sysctl and vm_stat. A container may have less memory than its machine, which
# only its control group tells; of what that has in use, files that nobody has touched lately can be had back.

machine() {
  echo "cores $(nproc || getconf _NPROCESSORS_ONLN || sysctl -n hw.ncpu)"
  if [ -r /proc/meminfo ]; then
    read -r load _ </proc/loadavg && echo "load $load"
    memory
  else
    sysctl -n vm.loadavg | awk '{ print "load", $2 }'
    echo "memory_total $(sysctl -n hw.memsize)"
    vm_stat | awk '
      /page size of/ { page = $8 }
      /^Pages (free|inactive|speculative):/ { pages += $NF }
      END { if (page) printf "memory_free %.0f\n", pages * page }'
  fi
} 2>/dev/null

memory() {
  group=/sys/fs/cgroup
  {
    cat /proc/meminfo $group/memory.stat
    [ ! -r $group/memory.max ] || sed 's/^/limit /' $group/memory.max
    [ ! -r $group/memory.current ] || sed 's/^/used /' $group/memory.current
  } | awk '
    $1 == "MemTotal:" { total = $2 * 1024 }
    $1 == "MemAvailable:" { free = $2 * 1024 }
    $1 == "inactive_file" { idle = $2 }
    $1 == "limit" && $2 != "max" { limit = $2 }
    $1 == "used" { used = $2 }
    END {
      if (limit && limit < total) { total = limit; if (limit - used + idle < free) free = limit - used + idle }
      if (total) printf "memory_total %.0f\n", total
      if (free) printf "memory_free %.0f\n", free
    }'
}
