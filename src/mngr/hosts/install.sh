# shellcheck shell=sh
# Puts onto a host what is missing there: `install MANAGER PROGRAM...`. What it says goes to stdout, and why it cannot to
# stderr.

install() {
  manager=$1 as=''
  shift
  if [ "$manager" != brew ] && [ "$(id -u)" != 0 ]; then
    as='sudo -n'
    $as true 2>/dev/null || { echo 'that takes root, and sudo asks for a password there' >&2; return 1; }
  fi
  packages=''
  for program in "$@"; do packages="$packages $(package_of "$program")"; done
  # shellcheck disable=SC2086
  case $manager in
    # A source that does not answer is no reason to give up: the package may come from another one.
    apt-get) $as apt-get update -q; $as env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages ;;
    apk) $as apk add $packages ;;
    dnf | yum) $as "$manager" install -y $packages ;;
    pacman) $as pacman -Sy --noconfirm $packages ;;
    zypper) $as zypper --non-interactive install $packages ;;
    brew) brew install $packages ;;
  esac 2>&1
}

package_of() { # package_of PROGRAM
  case $1:$manager in
    ps:dnf | ps:yum | ps:pacman) echo procps-ng ;;
    ps:*) echo procps ;;
    xargs:*) echo findutils ;;
    awk:*) echo gawk ;;
    tail:* | base64:*) echo coreutils ;;
    *) echo "$1" ;;
  esac
}
