#!/bin/sh
# The first process of a test machine: its own hostname, mounts and terminals, sshd, and then it waits. It has been
# started in namespaces of its own (network.py does that), with a pipe as its standard input: whoever holds the other
# end holds the machine's power plug, and when that process is gone, however it went, so is the machine.
set -eu
directory=$1 name=$2
root=$directory/root

hostname "$name"
mount -t overlay -o "lowerdir=/,upperdir=$directory/files,workdir=$directory/work" overlay "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/run"

# Terminals of its own, and of the devices only those that every program expects.
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
cd "$root/dev"
mkdir pts shm
touch null zero full random urandom tty
for device in null zero full random urandom tty; do mount --bind "/dev/$device" "$device"; done
mount -t devpts -o newinstance,gid=5,mode=620,ptmxmode=666 devpts pts
mount -t tmpfs -o mode=1777 tmpfs shm
ln -s pts/ptmx ptmx
ln -s /proc/self/fd fd
ln -s fd/0 stdin
ln -s fd/1 stdout
ln -s fd/2 stderr

# Nothing of the outer machine's mounts stays within reach.
cd "$root"
mkdir -p run/sshd run/outside
pivot_root . run/outside
cd /
umount -l /run/outside
rmdir /run/outside

exec 3<&0 </dev/null
# Not the first process itself: a test may end sshd, and the machine lives on.
env -i PATH="$PATH" HOME=/root LANG=C.UTF-8 /usr/sbin/sshd -E /var/log/sshd.log 3<&-
# A shell that waits takes in the orphans of the machine, as a first process must.
cat <&3 >/dev/null &
exec 3<&-
wait $!
