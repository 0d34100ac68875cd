# shellcheck shell=sh
# `version_of PROGRAM`: what it says of its version; nothing when there is no such program. To ask it costs a quarter of a
# second and more: the answer is kept as long as the file does not change.

version_of() {
  path=$(command -v "$1") || return 0
  file=$(ls -lniL "$path" 2>/dev/null)
  kept=$H/versions/$1
  if [ -s "$kept" ] && { IFS= read -r known && IFS= read -r told; } <"$kept" && [ "$known" = "$file" ]; then
    printf '%s\n' "$told"
    return 0
  fi
  told=$("$path" --version 2>&1 </dev/null | head -n 1)
  printf '%s\n' "${told:-unknown}"
  case $told in *[0-9].[0-9]*) (umask 077 && mkdir -p "$H/versions" && printf '%s\n%s\n' "$file" "$told" >"$kept.$$" && mv -f "$kept.$$" "$kept") ;; esac
}
