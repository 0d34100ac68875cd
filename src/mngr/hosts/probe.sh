# shellcheck shell=sh
# What there is on a host that nobody has been to: `probe HOME`, where HOME is empty, absolute or begins with ~.

probe() {
  # shellcheck disable=SC2088 # a user wrote it, and no shell has seen it
  case $1 in '') place=$HOME/.mngr ;; /*) place=$1 ;; '~') place=$HOME ;; '~/'*) place=$HOME/${1#'~/'} ;; *) place=$HOME/$1 ;; esac
  around=${place%/*} # by its real name: everything of one home is derived from it
  if [ -d "$place" ]; then place=$(cd "$place" && pwd -P); elif [ -d "$around" ]; then place=$(cd "$around" && pwd -P)/${place##*/}; fi
  printf 'home %s\n' "$place"
  echo "user $(id -u)"
  echo "system $(uname -sm)"
  for program in tmux git; do
    found=$(command -v "$program") || continue
    echo "$program $("$found" "$([ "$program" = tmux ] && echo -V || echo --version)" 2>/dev/null)"
  done
  for manager in apt-get apk dnf yum pacman zypper brew; do
    command -v "$manager" >/dev/null && echo "manager $manager" && break
  done
  echo "end probe"
}
